"""`python -m tools.cluster`: the door for people."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import plugin
from tools.cluster import parts

_ROOT = Path(__file__).parents[2]


@pytest.mark.cluster
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_up_prints_a_kubeconfig_that_works_and_ends_clean(ending: signal.Signals) -> None:
    plugin.need(parts.find(), "kubectl")
    with _cluster("up", "--no-nodes") as running:
        assert running.stdout is not None
        config = Path(running.stdout.readline().strip())
        kubectl = [str(parts.find().program("kubectl")), f"--kubeconfig={config}"]
        asked = subprocess.run([*kubectl, "get", "namespace", "default", "-o", "name"], check=True)

        running.send_signal(ending)

        assert running.wait(timeout=30) == 0
    assert asked.returncode == 0
    assert not config.parent.exists()


def test_up_without_programs_says_how_to_get_them(empty: dict[str, str]) -> None:
    with _cluster("up", environment=empty) as running:
        _, talk = running.communicate(timeout=30)

    assert running.returncode == 4
    assert talk.startswith("error: program of the test cluster not built: etcd\n")
    assert "hint: run `make test-cluster`" in talk


def test_status_names_every_missing_part(empty: dict[str, str]) -> None:
    with _cluster("status", environment=empty) as running:
        told, talk = running.communicate(timeout=30)

    names = [line.split()[0] for line in told.splitlines() if line.endswith("missing")]
    renderers = [name for name in names if name.startswith("helm-render-")]
    assert running.returncode == 1
    assert len(renderers) == 1
    assert [name for name in names if name not in renderers] == [
        *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"),
        *("kubectl", "stages", "crds/istio", "crds/gateway", "crds/argocd"),
    ]
    assert talk.startswith("hint: ")


@pytest.fixture
def empty(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has built nothing yet."""
    kept = {name: value for name, value in os.environ.items() if name != "KUBEBUILDER_ASSETS"}
    return {**kept, "FAIRLEAD_CACHE": str(tmp_path)}


def _cluster(*words: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tools.cluster", *words],
        cwd=_ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
