"""What an area does for objects of a Kubernetes cluster."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairlead import loading
from fairlead import settings as settings_
from fairlead.area import Area
from fairlead.kubernetes.controller.registration import Registrar
from fairlead.kubernetes.kinds import Kind


@dataclass(frozen=True, slots=True)
class OperatorPart:
    """Kinds, and who performs the effects behind them."""

    kinds: Sequence[Kind] = ()
    registrar: Callable[[settings_.Settings], Registrar] | None = None
    """Makes what performs effects of the area's own; the runtime performs those that all kinds
    share."""

    kinds_of: Callable[[settings_.Settings], Sequence[Kind]] | None = None
    """The kinds, where settings add to them."""


def load(area: Area) -> OperatorPart | None:
    """None where the area has no kind of object."""
    return loading.make(area.operator, OperatorPart) if area.operator else None
