"""Traffic on its way between two slots, and somebody falls or changes their mind."""

import datetime as dt

from fairlead.areas.rollouts.domain import events, messages, states
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.values import Percent
from tests.unit.areas.rollouts.domain.stories import ended, live
from tests.unit.areas.rollouts.domain.world import Habits, World, version

BACK_IN_STEPS = Spec(Strategy(step_weight=100, promotion=(Percent(60), Percent(20))))
FAR = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)


def returning() -> World:
    """Some of the traffic is back on the re-made primary."""
    world = live(BACK_IN_STEPS)
    world.run_until(states.Promoting)
    world.run(lambda: world.place("shop").route[1].weight == 60)
    return world


def test_a_canary_joins_only_once_it_is_ready() -> None:
    world = live(BACK_IN_STEPS, Habits(ready_after=90))

    ended(world)

    assert world.place("shop").hurt == []


def test_an_abort_with_traffic_back_on_the_new_primary_rolls_back_through_the_canary() -> None:
    world = returning()

    world.send(messages.Abort("ada"))
    world.send(messages.Abort("ada"))
    world.run(
        lambda: world.state().rollout.stable == version("v1") and world.state().rollout.runs == 2
    )
    outcome = ended(world)

    assert isinstance(world.state(), states.Idle)
    assert (outcome.ending, outcome.target) == (events.Ending.PROMOTED, version("v1"))
    assert world.place("shop").hurt == []


def test_a_new_primary_that_falls_on_the_way_back_gives_all_to_the_canary() -> None:
    world = returning()
    world.habits.broken = frozenset({"v2"})
    world.place("shop").crash(Slot.PRIMARY)
    world.observe()

    world.run(lambda: world.place("shop").route[1].weight == 100, longest=60)
    assert world.place("shop").healthy()

    world.habits.broken = frozenset()
    world.place("shop").crash(Slot.PRIMARY)
    assert ended(world).ending is events.Ending.PROMOTED


def test_a_canary_that_falls_while_promoting_gives_way_to_what_stands_of_the_primary() -> None:
    world = live(BACK_IN_STEPS)
    world.run_until(states.Promoting)
    world.run(longest=1)
    primary = world.place("shop").slots[Slot.PRIMARY]
    assert primary is not None
    primary.ready_at = [world.now, FAR, FAR]
    world.habits.broken = frozenset({"v2"})
    world.place("shop").crash(Slot.CANARY)

    world.observe()
    world.run(lambda: world.place("shop").route[1].weight == 0, longest=60)

    assert world.place("shop").healthy()


def test_a_canary_under_traffic_stays_as_large_as_it_is_when_less_is_wanted() -> None:
    spec = Spec(Strategy(steps=(Pace(Percent(50), approve=True), Pace(Percent(60)))))
    world = live(spec, replicas=10)
    world.run_until(states.Analysing)

    world.want("v2", spec, replicas=2)
    world.send(messages.Approve("ada"))
    ended(world)

    asked = [
        effect.replicas
        for effect in world.effects
        if isinstance(effect, messages.EnsureVersion) and effect.slot is Slot.CANARY
    ]
    assert asked == [5, 5, 5]
