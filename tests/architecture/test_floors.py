"""The floors of the house hold, and the check that says so can say no.

The contracts are those of pyproject.toml. They are tried on our own package and on a
scratch house in a temporary folder, built from the contracts' own list of floors: sound
at first, then with one thing wrong.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.sources import ROOT

Contract = dict[str, Any]
LINT = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--no-logo", "--config"]


@dataclass(frozen=True, slots=True)
class House:
    """A package `fairlead` in a folder of its own, with the contracts of pyproject.toml."""

    root: Path

    def add(self, module: str, text: str = "") -> None:
        """Make the module, and the packages above it."""
        path = self.root.joinpath(*module.split("."))
        for folder in reversed(path.relative_to(self.root).parents):
            (self.root / folder).mkdir(exist_ok=True)
            if folder != Path():
                (self.root / folder / "__init__.py").touch()
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        file.write_text(text, encoding="utf-8")

    def check(self) -> tuple[bool, str]:
        return check(self.root, contracts())


@pytest.fixture
def house(tmp_path: Path) -> House:
    built = House(tmp_path)
    built.add("fairlead.errors")
    for module in sorted(declared()):
        built.add(module)
    return built


def test_our_own_house_keeps_every_contract() -> None:
    # A floor may be declared before it is built; what is there must be in order.
    kept, said = check(ROOT / "src", [standing(contract) for contract in contracts()])

    assert kept, said


def test_the_top_contract_is_exhaustive() -> None:
    top = next(one for one in contracts() if one.get("containers") == ["fairlead"])

    assert top["type"] == "layers"
    assert top["exhaustive"] is True


def test_what_a_domain_may_see_of_engine_and_runtime_is_all_it_is_not_forbidden() -> None:
    """A new module of either is forbidden to domains until somebody says otherwise."""
    named = next(one for one in contracts() if one["name"].startswith("a domain sees"))
    seen = {
        f"fairlead.{floor}.{path.stem}"
        for floor in ("engine", "kubernetes")
        for path in (ROOT / "src" / "fairlead" / floor).iterdir()
        if path.stem not in ("__init__", "__pycache__")
    } - set(named["forbidden_modules"])

    assert seen == {
        "fairlead.engine.children",
        "fairlead.engine.machine",
        "fairlead.engine.messages",
        "fairlead.engine.recurrence",
        "fairlead.kubernetes.messages",
    }


def test_a_sound_house_is_kept(house: House) -> None:
    kept, said = house.check()

    assert kept, said


@pytest.mark.parametrize(
    ("module", "text", "broken"),
    [
        ("fairlead.engine.runner", "import fairlead.web", "fairlead.engine.runner"),
        ("fairlead.errors", "from fairlead import settings", "fairlead.errors"),
        ("fairlead.clients.git", "from fairlead import web", "fairlead.clients.git"),
        (
            "fairlead.areas.content.area",
            "from fairlead.areas import gitops",
            "fairlead.areas.content.area",
        ),
        (
            "fairlead.areas.rollouts.domain.machine",
            "from fairlead.engine import outbox",
            "fairlead.areas.rollouts.domain.machine",
        ),
        (
            "fairlead.areas.content.domain.machine",
            "from fairlead.checks import registry",
            "areas.content.domain.machine",
        ),
        ("fairlead.checks.registry", "from fairlead.areas import content", "checks.registry"),
        ("fairlead.areas.content.domain.machine", "import asyncio", "areas.content.domain"),
        ("fairlead.kubernetes.client.pool", "from fairlead.kubernetes import cache", "client.pool"),
        ("fairlead.values", "import asyncio", "fairlead.values"),
        ("fairlead.engine.messages", "from fairlead.engine import runner", "engine.messages"),
    ],
)
def test_an_import_up_or_across_a_floor_is_refused(
    house: House, module: str, text: str, broken: str
) -> None:
    house.add(module, text)

    kept, said = house.check()

    assert not kept
    assert "BROKEN" in said
    assert broken in said


def test_siblings_that_import_each_other_are_refused(house: House) -> None:
    house.add("fairlead.analysis.looks", "from fairlead.analysis import policy")
    house.add("fairlead.analysis.policy", "from fairlead.analysis import looks")

    kept, said = house.check()

    assert not kept
    assert "no cycle between siblings BROKEN" in said


@pytest.mark.parametrize("area", ["rollouts", "content", "resources", "deployments"])
def test_a_part_of_an_area_without_a_declared_place_is_refused(house: House, area: str) -> None:
    house.add(f"fairlead.areas.{area}.newcomer")

    kept, said = house.check()

    assert not kept
    assert "newcomer" in said


def test_a_domain_may_know_what_a_check_asks(house: House) -> None:
    house.add("fairlead.areas.content.domain.machine", "from fairlead.checks import spec")

    kept, said = house.check()

    assert kept, said


@pytest.mark.parametrize("module", ["fairlead.newcomer", "fairlead.newcomer.inner"])
def test_a_package_without_a_declared_floor_is_refused(house: House, module: str) -> None:
    house.add(module)

    kept, said = house.check()

    assert not kept
    assert "newcomer" in said


def test_a_new_area_must_declare_who_may_know_it(house: House) -> None:
    house.add("fairlead.areas.newcomer")

    kept, said = house.check()

    assert not kept
    assert "newcomer" in said


def settings() -> dict[str, Any]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)["tool"]["importlinter"]
    return found


def contracts() -> list[Contract]:
    found: list[Contract] = settings()["contracts"]
    return found


def declared() -> Iterator[str]:
    """Every module that the contracts name inside the house."""
    for contract in contracts():
        named = [*contract.get("source_modules", []), *contract.get("forbidden_modules", [])]
        yield from (each for each in named if each.startswith("fairlead.") and "*" not in each)
        for container in contract.get("containers", []):
            for layer in contract["layers"]:
                yield from (f"{container}.{name}" for name in re.findall(r"\w+", layer))


def standing(contract: Contract) -> Contract:
    """The contract with what is not yet built made optional."""
    built = dict(contract)
    if "source_modules" in contract:
        built["source_modules"] = [
            name for name in contract["source_modules"] if "*" in name or exists(name)
        ]
    if "layers" in contract:
        built["layers"] = [re.sub(r"\(?(\w+)\)?", r"(\1)", layer) for layer in contract["layers"]]
    return built


def exists(module: str) -> bool:
    path = ROOT.joinpath("src", *module.split("."))
    return (path / "__init__.py").exists() or path.with_suffix(".py").exists()


def check(root: Path, rules: list[Contract]) -> tuple[bool, str]:
    """Whether the package below `root` keeps the rules, and what the linter says."""
    tables = ["[tool.importlinter]", *pairs(settings())]
    for rule in rules:
        tables += ["[[tool.importlinter.contracts]]", *pairs(rule)]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "contracts.toml")
        config.write_text("\n".join(tables), encoding="utf-8")
        command = [*LINT, str(config)]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout + done.stderr


def pairs(table: dict[str, Any]) -> Iterator[str]:
    # Text, truth and lists of text are written alike in JSON and TOML.
    return (f"{key} = {json.dumps(value)}" for key, value in table.items() if key != "contracts")
