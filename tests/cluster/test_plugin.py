"""What a run says and does about tests that need the cluster, with and without it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.cluster import parts

_ROOT = Path(__file__).parents[2]
_LINE = f"tests left out, a real Kubernetes is not built here: {parts.HOW}"


@pytest.mark.parametrize("workers", [(), ("-n", "2", "--dist", "loadgroup")], ids=["one", "two"])
def test_without_programs_they_are_left_out_with_one_line(
    workers: tuple[str, ...], tmp_path: Path
) -> None:
    answer = _pytest(tmp_path, {}, *workers)

    told = [line for line in answer.stdout.splitlines() if "Kubernetes" in line]
    assert len(told) == 1
    assert told[0].endswith(_LINE)
    assert int(told[0].split()[0]) > 10
    assert "passed" not in answer.stdout


def test_where_they_are_required_they_fail_with_the_reason(tmp_path: Path) -> None:
    chosen = ("-k", "latency or lost")

    answer = _pytest(tmp_path, {"FAIRLEAD_TEST_CLUSTER": "required"}, *chosen, "-n", "2")

    assert answer.returncode == int(pytest.ExitCode.TESTS_FAILED)
    assert "not built: etcd, kube-apiserver; run `make test-cluster`" in answer.stdout
    assert "passed" not in answer.stdout


def test_a_run_without_cluster_tests_is_silent(tmp_path: Path) -> None:
    answer = _pytest(tmp_path, {}, "--collect-only", path="tests/cluster/test_plugin.py")

    assert "collected" in answer.stdout
    assert "Kubernetes" not in answer.stdout


def _pytest(
    cache: Path, more: dict[str, str], *words: str, path: str = "tests/cluster/test_proxy.py"
) -> subprocess.CompletedProcess[str]:
    hidden = ("KUBEBUILDER_ASSETS", "FAIRLEAD_TEST_CLUSTER", "PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", path, *words],
        cwd=_ROOT,
        env={**kept, **more, "FAIRLEAD_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
