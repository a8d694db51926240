"""Pytest plug-in: what happens to tests marked `cluster`.

They all run on one worker, because they share one cluster. Where its programs are not built
they are left out and one line at the end says how to get them, unless FAIRLEAD_TEST_CLUSTER is
`required` (as in CI): then they fail, for a test that is never run guards nothing.
"""

import os
from collections.abc import Iterator

import pytest

from tools.cluster import control_plane, parts

# What every machine with envtest has, and enough for the tests that need no controllers.
LEAST = frozenset({"etcd", "kube-apiserver"})
_LEFT_OUT = pytest.StashKey[int]()


def need(found: parts.Parts, *names: str) -> None:
    """Skips a test that needs more than there is; where all is required, it fails."""
    lacking = [name for name in found.missing() if name in names]
    if lacking:
        told = f"not built: {', '.join(lacking)}; {parts.HOW}"
        pytest.fail(told, pytrace=False) if _required() else pytest.skip(told)


@pytest.fixture(scope="session")
def cluster(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[control_plane.ControlPlane]:
    """Here, not in the conftest beside it: contract suites elsewhere run on the same one."""
    _assert_alone(tmp_path_factory)
    found = parts.find()
    need(found, *LEAST)
    plane = control_plane.ControlPlane(found, tmp_path_factory.mktemp("cluster"))
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("cluster")]
    for item in marked:
        # Before xdist looks at it, which is why this hook goes first.
        item.add_marker(pytest.mark.xdist_group("cluster"))
    if not marked or _required() or LEAST.isdisjoint(parts.find().missing()):
        return
    items[:] = [item for item in items if not item.get_closest_marker("cluster")]
    config.hook.pytest_deselected(items=marked)
    _leave_out(config, len(marked))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    left_out = config.stash.get(_LEFT_OUT, 0)
    if left_out:
        terminalreporter.write_line(
            f"{left_out} tests left out, a real Kubernetes is not built here: {parts.HOW}",
            yellow=True,
        )


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Workers collect, but only the controller talks: this is how it hears of it."""
    config: pytest.Config = getattr(node, "config")  # noqa: B009  xdist gives no type
    output: dict[str, int] = getattr(node, "workeroutput", {})
    config.stash[_LEFT_OUT] = max(config.stash.get(_LEFT_OUT, 0), output.get("left_out", 0))


def _required() -> bool:
    return os.environ.get("FAIRLEAD_TEST_CLUSTER") == "required"


def _leave_out(config: pytest.Config, count: int) -> None:
    config.stash[_LEFT_OUT] = count
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = count


def _assert_alone(factory: pytest.TempPathFactory) -> None:
    """Groups of tests have been dropped in silence before: then each worker starts a cluster."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    try:
        # The workers' own folders lie in one folder of the run.
        (factory.getbasetemp().parent / "cluster-of-this-run").touch(exist_ok=False)
    except FileExistsError:
        pytest.fail("a second worker starts a cluster\nhint: run with --dist loadgroup")
