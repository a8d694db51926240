"""Our Services in one list of weighted destinations, as VirtualService and HTTPRoute have it.

Canary and baseline take their weights from the primary's; other destinations keep theirs.
So a list is always what somebody wrote (`without_canary`) with our route on top (`routed`), and
the two undo each other.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes.routing.provider import Object
from fairlead.traffic import weights
from fairlead.traffic.routes import Route
from fairlead.values import ALL

LEAST = 10
"""The smallest weight that is shared where it stands beside others' weights."""


@dataclass(frozen=True, slots=True)
class Sides:
    """How to tell ours apart among destinations, and what a missing weight means."""

    leads: Callable[[Object, Slot], bool]
    """Whether an entry leads to this slot."""

    made: Callable[[Object, Slot], Object]
    """A slot's entry, made from the primary's."""

    unsaid: int
    """The weight of an entry beside others that names none."""

    def is_primary(self, item: Object) -> bool:
        return self.leads(item, Slot.PRIMARY)

    def is_canary(self, item: Object) -> bool:
        return self.leads(item, Slot.CANARY)

    def is_beside(self, item: Object) -> bool:
        """Whether we put it there."""
        return self.is_canary(item) or self.leads(item, Slot.BASELINE)

    def is_ours(self, item: Object) -> bool:
        return self.is_primary(item) or self.is_beside(item)

    def primaries(self, items: Iterable[Object]) -> list[Object]:
        return [item for item in items if self.is_primary(item)]

    def weight(self, item: Object) -> int:
        given = item.get("weight")
        return given if isinstance(given, int) else self.unsaid


def weigh(items: Sequence[Object], sides: Sides) -> int | None:
    """The weight that ours share; None where the primary stands alone, so all of it is."""
    ours = [item for item in items if sides.is_ours(item)]
    return None if len(ours) == len(items) else sum(map(sides.weight, ours))


def without_canary(items: Sequence[Object], sides: Sides, alone: int | None) -> list[Object]:
    """The list without us; `alone` is the weight of a primary that has nobody beside it."""
    if not any(map(sides.is_beside, items)):
        return list(items)
    total = weigh(items, sides)
    weight = alone if total is None else total
    return [
        _weighted(item, weight) if sides.is_primary(item) else item
        for item in items
        if not sides.is_beside(item)
    ]


def routed(items: Sequence[Object], sides: Sides, route: Route) -> list[Object]:
    """The list as somebody wrote it, with our route on top."""
    if not route.joined:
        return list(items)
    total = weigh(items, sides)
    primary, canary, baseline = _split(ALL if total is None else total, route.split)
    made: list[Object] = []
    for item in items:
        if not sides.is_primary(item):
            made.append(item)
            continue
        made += (_weighted(item, primary), _weighted(sides.made(item, Slot.CANARY), canary))
        if route.compared:
            made.append(_weighted(sides.made(item, Slot.BASELINE), baseline))
    return made


def seen(items: Sequence[Object], sides: Sides) -> int:
    """The canary's part of what ours carry, in percent."""
    ours = [item for item in items if sides.is_ours(item)]
    if not any(sides.is_canary(item) for item in ours):
        return 0
    canary = sum(sides.weight(item) for item in ours if sides.is_canary(item))
    stable = sum(sides.weight(item) for item in ours if not sides.is_canary(item))
    return weights.in_percent((stable, canary))[1] if stable + canary else 0


def problem(items: Sequence[Object], sides: Sides) -> str:
    """Why this list cannot be shared; empty if it can."""
    if len(sides.primaries(items)) > 1:
        return "the primary's Service occurs more than once; use one entry for it"
    total = weigh(items, sides)
    if total is not None and total < LEAST:
        return (
            f"the primary's weight beside others is too small to be shared, {total}; "
            f"multiply all weights here so that it is {LEAST} or more, best 100"
        )
    return ""


def _split(total: int, split: weights.Split) -> tuple[int, int, int]:
    """Whole weights; a weight that is not 0 or all never becomes it by rounding."""
    beside = [_part(total, split.canary), _part(total, split.baseline)]
    if split.primary and sum(beside) >= total:
        beside[beside.index(max(beside))] -= 1 + sum(beside) - total
    return total - sum(beside), beside[0], beside[1]


def _part(total: int, weight: int) -> int:
    part = (total * weight + ALL // 2) // ALL
    return min(max(part, 1), total - 1) if 0 < weight < ALL else part


def _weighted(item: Object, weight: int | None) -> Object:
    if weight is None:
        return {key: value for key, value in item.items() if key != "weight"}
    return {**item, "weight": weight}
