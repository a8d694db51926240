"""What the stories of rollouts share: a spec, a world in which version 1 is live, questions."""

import datetime as dt
from typing import Any

from fairlead.analysis.limits import Limits
from fairlead.areas.rollouts.domain import events, states
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.checks.spec import Check
from fairlead.values import Percent
from tests.unit.areas.rollouts.domain.world import Habits, World

MINUTE = dt.timedelta(minutes=1)
TWICE = Limits(count=2, interval=dt.timedelta(seconds=30))
ERRORS = Check("errors", success="result < 1", limits=TWICE)
STEPS = Strategy(steps=(Pace(Percent(10)), Pace(Percent(50))))
SPEC = Spec(STEPS, (ERRORS,))


def live(spec: Spec = SPEC, habits: Habits | None = None, **more: Any) -> World:
    """A world in which version 1 is live and version 2 was asked for."""
    world = World(habits)
    world.want("v1", spec, **more)
    world.run_until(states.Idle)
    world.want("v2", spec, **more)
    return world


def asked_weights(world: World) -> list[int]:
    asked = [
        event.route.weight for event in world.told() if isinstance(event, events.RouteRequested)
    ]
    return [weight for n, weight in enumerate(asked) if n == 0 or weight != asked[n - 1]]


def ended(world: World) -> states.Outcome:
    outcome: states.Outcome | None = world.run_until(states.Idle).rollout.outcome
    assert outcome is not None
    return outcome
