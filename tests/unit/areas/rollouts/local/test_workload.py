"""What a workload says of the processes of a slot."""

from pathlib import Path
from typing import Any, cast

import pytest

from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.local.desired_state import DesiredState, DesiredStates, Held
from fairlead.areas.rollouts.local.workload import Place, Workload
from fairlead.clients.processes import Instance, Phase

END = "ended with code 1, saying: no configuration"


class Programs:
    """A supervisor of one process that is as a test says."""

    def __init__(self, phase: Phase, reason: str, last_end: str = "") -> None:
        name = f"shop.{Slot.CANARY.value}-v2.0"
        self._instance = Instance(name, phase, 8000, None, 1, reason, last_end)

    def instances(self) -> tuple[Instance, ...]:
        return (self._instance,)


@pytest.mark.parametrize(
    ("programs", "trouble"),
    [
        (Programs(Phase.STARTING, "no answer"), ""),
        (Programs(Phase.BACKING_OFF, END, END), f"backing off: {END}"),
        (Programs(Phase.STARTING, "no answer", END), f"starting again: {END}"),
        (Programs(Phase.CRASH_LOOPING, END, END), f"crash looping: {END}"),
        (Programs(Phase.HEALTHY, ""), ""),
    ],
    ids=["first start", "ended", "next start", "ended again", "healthy"],
)
async def test_why_it_ended_is_said_until_it_is_healthy(
    tmp_path: Path, programs: Programs, trouble: str
) -> None:
    """A deadline falls at any moment, also just after one more start."""
    place = Place(tmp_path, DesiredStates(tmp_path), cast("Any", programs), lambda _: None)
    desired = DesiredState("shop", 8080, slots={Slot.CANARY: Held("v2", 1)})

    pods = await Workload(place, desired).pods(Slot.CANARY)

    assert pods is not None
    assert pods.trouble == trouble


async def test_a_start_that_takes_long_is_said_with_the_end_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.areas.rollouts.local.workload._YOUNG_SECONDS", 0.0)
    programs = Programs(Phase.STARTING, "no answer", END)
    place = Place(tmp_path, DesiredStates(tmp_path), cast("Any", programs), lambda _: None)
    desired = DesiredState("shop", 8080, slots={Slot.CANARY: Held("v2", 1)})

    pods = await Workload(place, desired).pods(Slot.CANARY)

    assert pods is not None
    assert pods.trouble == f"starting: no answer; before: {END}"
