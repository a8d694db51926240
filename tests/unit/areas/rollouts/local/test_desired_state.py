"""Files of the local platform: named by a label, and never outside of their folder."""

from pathlib import Path

import pytest

from fairlead import errors
from fairlead.areas.rollouts.domain.status import RolloutStatus
from fairlead.areas.rollouts.local.desired_state import DesiredState, DesiredStates
from fairlead.areas.rollouts.workloads import ProgramWords

PATHS = ["../evil", "/evil", "a/../../evil", "desired/evil/x", "a/", "..", "", "Shop", "a" * 31]
PROGRAM = ProgramWords(command=["true"])


@pytest.mark.parametrize("name", PATHS)
def test_a_name_that_is_no_label_makes_no_file_and_reads_none(tmp_path: Path, name: str) -> None:
    states = DesiredStates(tmp_path / "local")

    for attempt in (
        lambda: states.write(DesiredState(name, 8080)),
        lambda: states.keep_program(name, "v1", PROGRAM),
        lambda: states.keep_program("shop", name, PROGRAM),
        lambda: states.program("shop", name),
        lambda: states.keep_status(name, RolloutStatus()),
        lambda: states.status(name),
        lambda: states.forget(name),
        lambda: states.forget_programs(name, ()),
    ):
        with pytest.raises(errors.Rejected, match=r"invalid (workload|project) name"):
            attempt()

    assert list(tmp_path.rglob("*")) == []


def test_what_was_kept_under_a_label_is_found_again(tmp_path: Path) -> None:
    states = DesiredStates(tmp_path)

    states.write(DesiredState("shop", 8080))
    states.keep_program("shop", "4f1c", PROGRAM)
    states.keep_status("shop", RolloutStatus(phase="Stable"))

    assert [one.name for one in states.all()] == ["shop"]
    assert states.program("shop", "4f1c") == PROGRAM
    assert states.status("shop") == RolloutStatus(phase="Stable")
