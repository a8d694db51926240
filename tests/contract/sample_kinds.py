"""Kinds for tests of what installs an operator: what they own and how they are shown."""

from typing import Annotated

import msgspec

from fairlead.engine.sample import depot
from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.objects import Resource
from fairlead.kubernetes.schema import Column, KindSchema

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


class Spec(msgspec.Struct):
    """A widget as it is ordered."""

    length: Annotated[int, msgspec.Meta(ge=1, le=400)]
    sails: int = 2


class Status(msgspec.Struct):
    phase: str = ""


def kind(plural: str, name: str, finalizer: str = "") -> Kind:
    return Kind(
        api=Resource("tests.fairlead.dev", "v1", plural, name),
        machine=depot.DEPOT,
        shown=KindSchema(Spec, Status, columns=(Column("Phase", ".status.phase"),)),
        observe=lambda obj, _: obj,
        delete=lambda _: None,
        children=(CONFIG_MAPS,),
        finalizer=finalizer,
    )


WIDGET = kind("widgets", "Widget")
GIZMO = kind("gizmos", "Gizmo", finalizer="tests.fairlead.dev/mooring")
