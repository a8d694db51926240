# Two promises: `make demo` runs the main job, `make test` passes. Both set up .venv themselves.
PYTHON ?= python3
BIN := .venv/bin
# Tests share 2 cores; more workers than that only wait for each other.
JOBS ?= 2
SOAK_MINUTES ?= 60

.PHONY: help demo test test-cluster test-dataplane cluster gateway ha check bench soak peers format docs shapes manifests lock clean setup-runtime setup-test setup-bench

help: ## What can be made here
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

demo: setup-runtime ## Run the main job on embedded defaults; Ctrl-C ends it
	$(BIN)/fairlead demo

test: setup-test ## All tests, on SQLite and a real PostgreSQL
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

cluster: setup-test ## Build a real Kubernetes for tests, once (needs Go)
	$(BIN)/python -m tools.cluster build

gateway: setup-test ## Build Envoy Gateway for the data plane's tests, once
	$(BIN)/python -m tools.cluster gateway

ha: cluster ## Install Patroni and pgbouncer for tests of a PostgreSQL that fails over, once
	@$(BIN)/python -m tools.servers.high_availability

soak: ha ## Faults for an hour on such a PostgreSQL (SOAK_MINUTES=60): what was lost and doubled
	$(BIN)/python -m tests.durability.soak --minutes $(SOAK_MINUTES)

browser: setup-test ## Find a browser for the tests of the pages, or install it (Debian, root)
	@$(BIN)/python -m tools.servers.chromium

test-cluster: cluster ## Only the tests on that Kubernetes
	FAIRLEAD_TEST_CLUSTER=required $(BIN)/python -m pytest -m cluster

test-dataplane: cluster gateway ## Whole canaries on a real gateway, under load (needs root)
	FAIRLEAD_TEST_DATAPLANE=1 $(BIN)/python -m pytest -m dataplane

check: setup-test ## The gate: lint, format, types, floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -q tests/architecture tests/docs

bench: setup-bench ## Every figure as a ratio to a peer or a limit
	$(BIN)/python -m bench run

peers: setup-test ## Build what benchmarks compare with, once (needs Go)
	$(BIN)/python -m bench build

format: setup-test ## Let ruff set the layout
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup-test ## Regenerate the pages that are made from code
	$(BIN)/python -m tools.pages

shapes: setup-test ## Add new shapes of what is stored to tests/shapes
	$(BIN)/python -m tools.shapes

manifests: setup-test ## Regenerate what installs the operator
	$(BIN)/python -m tools.manifests

lock: ## Re-pin requirements/*.txt (needs uv)
	$(PYTHON) tools/lock.py --upgrade

clean: ## Remove what the above made
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .cache

setup-runtime:
	@$(PYTHON) tools/setup.py runtime

setup-test:
	@$(PYTHON) tools/setup.py test

setup-bench:
	@$(PYTHON) tools/setup.py bench
