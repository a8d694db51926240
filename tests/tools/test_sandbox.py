"""A sandbox is one machine: all of its processes stop, go on and end together."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ha
from tools.servers import sandbox

pytestmark = pytest.mark.ha


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[sandbox.Sandbox]:
    """A program that refuses to be root, with a child that left its session."""
    ha.needed(sandbox.check)
    script = "test $(id -u) != 0 || exit 1; setsid sleep 60 & sleep 60"
    started = sandbox.Sandbox(["sh", "-c", script], tmp_path / "log")
    try:
        started.process.wait_until(lambda: len(started.pids()) == 3, 20)
        yield started
    finally:
        started.kill()


def test_all_of_its_processes_are_paused_and_go_on(machine: sandbox.Sandbox) -> None:
    machine.pause()
    assert {sandbox.state(pid) for pid in machine.pids()} == {"T"}

    machine.resume()
    assert "T" not in {sandbox.state(pid) for pid in machine.pids()}


def test_all_of_its_processes_end_at_once(machine: sandbox.Sandbox) -> None:
    inside = machine.pids()

    machine.kill()

    assert machine.pids() == []
    assert [pid for pid in inside if Path(f"/proc/{pid}").exists()] == []


def test_one_that_has_not_begun_has_no_processes_and_not_those_of_everybody(
    tmp_path: Path,
) -> None:
    ha.needed(sandbox.check)
    started = sandbox.Sandbox(["sleep", "60"], tmp_path / "log")
    try:
        assert len(started.pids()) <= 1
    finally:
        started.kill()
    assert started.pids() == []
