"""The plan: every strategy becomes a row of steps, the last of which has all the traffic."""

import datetime as dt
import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from fairlead.areas.rollouts.domain.plan.strategy import NO_TIME, Kind, Pace, Scale, Strategy
from fairlead.traffic import routes, weights
from fairlead.values import ALL, NONE, Percent

USUAL_STEP = 10
USUAL_MOST = 50
PARTIES = 3
"""Primary, canary and baseline: up to a third each, the last two have the same load."""


@dataclass(frozen=True, slots=True)
class Step:
    """One place on the way: the route, the load to be ready for, what must pass here."""

    route: routes.Route
    load: Percent
    """The part of all requests that may meet the canary, for its scale."""

    pause: dt.timedelta = NO_TIME
    approve: bool = False
    fixed: int | None = None

    @property
    def weight(self) -> Percent:
        return self.route.weight


Plan = tuple[Step, ...]


# Every decision asks for it, several times over, and few strategies are in use at once.
@functools.lru_cache(maxsize=1024)
def plan(strategy: Strategy) -> Plan:
    """The steps of this strategy, the full one last."""
    full = Step(_full(strategy), ALL, strategy.bake)
    match strategy.kind:
        case Kind.CANARY:
            first = (_mirrored(strategy),) if strategy.mirror else ()
            before = first + tuple(_weighted(strategy))
        case Kind.BLUE_GREEN:
            # Switched at once, so all pods must stand before anybody looks at the preview.
            route = routes.Route(joined=True, mirror=strategy.mirror)
            before = (Step(route, ALL, strategy.pause),)
        case Kind.AB:
            route = routes.Route(joined=True, matches=strategy.matches, affinity=strategy.affinity)
            before = (Step(route, ALL, strategy.pause, fixed=strategy.scale.fixed),)
    before = tuple(step for step in before if step.weight < ALL)
    if before and strategy.approve:
        last = before[-1]
        before = (*before[:-1], Step(last.route, last.load, last.pause, True, last.fixed))
    return (*before, full)


def paces(strategy: Strategy) -> tuple[Pace, ...]:
    """The weights of a canary, whichever way they were written."""
    if strategy.steps:
        return tuple(
            Pace(pace.weight, pace.pause or strategy.pause, pace.approve) for pace in strategy.steps
        )
    size = strategy.step_weight or USUAL_STEP
    most = strategy.max_weight or max(size, ALL if strategy.step_weight else USUAL_MOST)
    rising = [*range(size, most, size), most]
    return tuple(Pace(Percent(weight), strategy.pause) for weight in rising)


def pods(scale: Scale, load: int, replicas: int) -> int:
    """How many pods carry this load, where all of it is carried by so many."""
    if load >= ALL:
        return max(1, replicas)
    if scale.fixed is not None:
        return scale.fixed
    return max(1, math.ceil(replicas * load / ALL))


def _full(strategy: Strategy) -> routes.Route:
    return routes.Route(weights.giving(ALL), joined=True, affinity=strategy.affinity)


def _mirrored(strategy: Strategy) -> Step:
    route = routes.Route(joined=True, mirror=strategy.mirror)
    return Step(route, strategy.mirror, strategy.pause, fixed=strategy.scale.fixed)


def _weighted(strategy: Strategy) -> Iterator[Step]:
    before = weights.ALL_TO_PRIMARY
    for pace in paces(strategy):
        split = _beside(before, pace.weight) if strategy.baseline else weights.giving(pace.weight)
        affinity = strategy.affinity if pace.weight > NONE else None
        route = routes.Route(split, True, bool(split.baseline), affinity=affinity)
        yield Step(route, pace.weight, pace.pause, pace.approve, strategy.scale.fixed)
        before = split


def _beside(before: weights.Split, weight: int) -> weights.Split:
    """The canary's weight with a baseline that has as much, while the primary has no less.

    From there on the baseline gets only what keeps the primary's weight from rising: an
    autoscaler may have made the primary smaller, and it must not be met by more than it had.
    """
    rest = ALL - weight
    primary = rest - weight if weight * PARTIES <= ALL else rest
    return weights.giving(weight, rest - min(primary, before.primary))
