"""Pytest plug-in: what happens to tests marked `cluster`.

They all run on one worker, because they share one cluster. Where its programs are not built
they are left out and one line at the end says how to get them, unless FAIRLEAD_CLUSTER is
`required` (as in CI): then the run fails, for a test that is never run guards nothing.
"""

import functools
import os

import pytest
from tools.cluster import parts

# Enough for a cluster of this folder's fixtures; the kind a machine with envtest has.
LEAST = ("etcd", "kube-apiserver")
_LEFT_OUT = pytest.StashKey[int]()


@functools.cache
def missing() -> tuple[str, ...]:
    found = parts.find()
    return tuple(name for name in LEAST if name not in found.programs)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("cluster")]
    for item in marked:
        # Before xdist looks at it, which is why this hook goes first.
        item.add_marker(pytest.mark.xdist_group("cluster"))
    if not marked or not missing():
        return
    if os.environ.get("FAIRLEAD_CLUSTER") == "required":
        raise pytest.UsageError(f"the test cluster is not built: {missing()}\nhint: {parts.HOW}")
    items[:] = [item for item in items if item not in marked]
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


def _leave_out(config: pytest.Config, count: int) -> None:
    config.stash[_LEFT_OUT] = count
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = count
