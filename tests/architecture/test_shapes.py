"""What is stored changes its shape only with its version, and old rows stay readable."""

import pytest

from fairlead import bootstrap
from fairlead.engine.machine import AnyMachine
from tools import shapes

MACHINES = {machine.name: machine for machine in bootstrap.installation().machines}


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_no_shape_changed_without_its_version(machine: AnyMachine) -> None:
    assert list(shapes.faults(shapes.read(machine.name), shapes.current(machine))) == []


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_a_row_of_every_version_there_ever_was_can_be_read(machine: AnyMachine) -> None:
    assert list(shapes.unreadable(machine, shapes.read(machine.name))) == []


def test_every_machine_of_every_area_is_in_the_folder_and_nothing_else() -> None:
    kept = {path.name.partition(".")[0] for path in shapes.FOLDER.iterdir()}

    assert kept == {*MACHINES}
