"""What every process must know of lamps: machine, projection, and the step that lights one."""

from collections.abc import Mapping

from fairlead import errors
from fairlead.area import parts
from fairlead.engine import messages, projections, visibility
from tests.toy_area import machine

ROWS = "lamps"


def core() -> parts.Core:
    folded = projections.one_by_one(_fold)
    lamps = projections.Projection(ROWS, 1, key=_key, fold=folded)
    step = parts.StepKind("light-lamp", start, machine.LAMP.name)
    return parts.Core((machine.LAMP,), (lamps,), (step,))


def start(parent: messages.StreamName, _: str, words: Mapping[str, object]) -> messages.Send:
    match words:
        case {"name": str(name), "watts": int(watts)}:
            light = machine.Light(name, watts, parent=parent)
            return messages.Send(machine.stream(name), light)
        case _:
            raise errors.Rejected("a lamp needs name and watts", hint="name: desk, watts: 40")


def _key(event: visibility.EventView) -> str | None:
    return event.stream if event.stream.startswith("lamp/") else None


def _fold(row: projections.Row | None, event: visibility.EventView) -> projections.Row:
    return {**(row or {}), "name": event.stream.partition("/")[2], "last": event.type}
