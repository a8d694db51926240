"""Lamps as objects of a cluster: one kind, whose status the runtime writes."""

import msgspec

from fairlead.area.operator_part import OperatorPart
from fairlead.errors import Rejected
from fairlead.kubernetes.kinds import Kind, Snapshot
from fairlead.kubernetes.objects import Object, Resource
from fairlead.kubernetes.schema import KindSchema
from tests.toy_area import machine

LAMPS = Resource("toy.fairlead.dev", "v1", "lamps", "Lamp")


class LampSpec(msgspec.Struct):
    """A lamp as users write it."""

    watts: int = 40


class LampCondition(msgspec.Struct, rename="camel"):
    """A condition as Kubernetes spells it."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""


class LampStatus(msgspec.Struct):
    """Where the lamp stands."""

    round: int = 0
    watts: int = 0
    conditions: list[LampCondition] = msgspec.field(default_factory=list)


def operator_part() -> OperatorPart:
    return OperatorPart(kinds=(KIND,))


def observe(obj: Object, _: Snapshot) -> machine.Light:
    watts = (obj.get("spec") or {}).get("watts", 40)
    if not isinstance(watts, int):
        raise Rejected(f"spec.watts: not a number: {watts}", hint="write 40")
    return machine.Light(obj["metadata"]["name"], watts, KIND.subject(obj))


def delete(_: Object | None) -> machine.Delete:
    return machine.Delete()


KIND = Kind(LAMPS, machine.LAMP, KindSchema(LampSpec, LampStatus), observe=observe, delete=delete)
