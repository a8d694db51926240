"""Within a step: the canary and its baseline follow the total up, and sleep waits for the end."""

import pytest

from fairlead.areas.rollouts.domain import events, messages, states, view
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Scale, Strategy
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.values import Percent
from tests.unit.areas.rollouts.domain.stories import MINUTE, ended, live
from tests.unit.areas.rollouts.domain.world import SECOND, Habits, World

HALF = Spec(Strategy(steps=(Pace(Percent(50), approve=True),)))
COMPARED = Spec(Strategy(steps=(Pace(Percent(20), approve=True),), baseline=True))
BAKING = Spec(Strategy(steps=(Pace(Percent(50)),), bake=30 * MINUTE))


def asked(world: World, slot: Slot) -> list[int | None]:
    """How many pods were asked for in this slot, each time."""
    asks = (each for each in world.effects if isinstance(each, messages.EnsureVersion))
    return [each.replicas for each in asks if each.slot is slot]


def autoscale(world: World, count: int) -> None:
    """An autoscaler gives the primary so many pods, and they are ready."""
    side = world.place("shop").slots[Slot.PRIMARY]
    assert side is not None
    side.ready_at = [world.now - SECOND] * count
    world.observe()


def at_half(replicas: int | None = 4, spec: Spec = HALF) -> World:
    world = live(spec, replicas=replicas)
    world.run_until(states.Analysing)
    return world


def test_the_canary_of_a_step_grows_with_the_replicas() -> None:
    world = at_half()

    world.want("v2", HALF, replicas=40)
    world.run(longest=60)

    assert asked(world, Slot.CANARY) == [2, 20]
    assert asked(world, Slot.PRIMARY)[-1] == 40
    assert world.place("shop").ready(Slot.CANARY) == 20
    assert isinstance(world.state(), states.Analysing)
    assert world.place("shop").hurt == []


def test_at_all_traffic_the_canary_grows_to_all_replicas() -> None:
    world = live(BAKING, replicas=4)
    world.run(lambda: world.place("shop").route[1].weight == 100)
    world.run_until(states.Analysing)

    world.want("v2", BAKING, replicas=40)
    world.run(longest=60)

    assert asked(world, Slot.CANARY) == [2, 4, 40]


def test_the_canary_of_a_step_grows_with_an_autoscaled_primary_and_never_shrinks_with_it() -> None:
    world = at_half(None)

    for count in (4, 40, 39, 12, 40, 41):
        autoscale(world, count)
        world.run(longest=30)

    assert asked(world, Slot.CANARY) == [1, 2, 20, 21]
    assert world.place("shop").hurt == []


def test_a_primary_that_gave_half_away_still_says_how_many_carry_all() -> None:
    world = live(HALF, replicas=None)
    autoscale(world, 10)
    world.run_until(states.Analysing)
    autoscale(world, 5)

    world.send(messages.Approve("ada"))
    world.run(lambda: world.place("shop").route[1].weight == 100)

    assert asked(world, Slot.CANARY)[-1] == 10
    ended(world)
    assert world.place("shop").ready(Slot.PRIMARY) == 10


def test_the_baseline_grows_beside_the_canary() -> None:
    world = live(COMPARED, replicas=10)
    world.run_until(states.Analysing)

    world.want("v2", COMPARED, replicas=40)
    world.run(longest=60)

    assert asked(world, Slot.CANARY) == [2, 8]
    assert asked(world, Slot.BASELINE) == [2, 8]


def test_a_fixed_scale_stays_fixed() -> None:
    spec = Spec(Strategy(steps=(Pace(Percent(50), approve=True),), scale=Scale(2)))
    world = live(spec, replicas=4)
    world.run_until(states.Analysing)

    world.want("v2", spec, replicas=40)
    world.run(longest=60)

    assert asked(world, Slot.CANARY) == [2]


def test_weight_waits_for_the_pods_of_the_new_size() -> None:
    world = live(HALF, habits=Habits(ready_after=60), replicas=4)
    world.run(longest=30)

    world.want("v2", HALF, replicas=40)
    world.run(longest=40)
    assert world.place("shop").route[1].weight == 0
    world.run_until(states.Analysing)

    assert set(asked(world, Slot.CANARY)) == {2, 20}
    assert world.place("shop").ready(Slot.CANARY) == 20


def test_growth_late_in_a_shift_gets_a_deadline_of_its_own() -> None:
    world = live(HALF, habits=Habits(ready_after=9 * 60), replicas=4)
    world.run(longest=8 * 60)

    world.want("v2", HALF, replicas=40)
    world.run_until(states.Analysing, longest=15 * 60)

    assert world.place("shop").ready(Slot.CANARY) == 20


def test_without_a_change_of_scale_nothing_is_asked_again() -> None:
    world = at_half()
    before = len(world.effects)

    for _ in range(5):
        world.run(longest=30)
        world.observe()

    assert not [e for e in world.effects[before:] if isinstance(e, messages.EnsureVersion)]


@pytest.mark.parametrize("step", [10, 50])
def test_replicas_0_mid_run_shrinks_nothing_and_says_so(step: int) -> None:
    spec = Spec(Strategy(steps=(Pace(Percent(step), approve=True),)))
    world = at_half(4, spec)

    world.want("v2", spec, replicas=0)
    world.run(longest=60)

    assert world.place("shop").ready(Slot.PRIMARY) == 4
    assert asked(world, Slot.PRIMARY)[1:] == []
    assert "scaling to 0 replicas waits until the run ends" in view.sentence(world.state())
    assert world.place("shop").hurt == []


def test_a_run_that_was_put_to_sleep_ends_at_full_size_and_then_sleeps_at_once() -> None:
    world = at_half()
    world.want("v2", HALF, replicas=0)

    world.send(messages.Approve("ada"))
    promoting = world.run_until(states.Promoting)
    outcome = ended(world)
    world.run(longest=10)

    assert promoting.rollout.full == 4
    assert asked(world, Slot.CANARY) == [2, 4]
    assert asked(world, Slot.PRIMARY)[1:] == [4, 0]
    assert outcome.ending is events.Ending.PROMOTED
    assert world.place("shop").ready(Slot.PRIMARY) == 0
    assert not [each for each in world.told() if isinstance(each, events.Drifted)]


def test_a_rollback_of_one_put_to_sleep_needs_all_pods_of_the_stable_version() -> None:
    world = at_half()
    world.want("v2", HALF, replicas=0)
    side = world.place("shop").slots[Slot.PRIMARY]
    assert side is not None
    side.ready_at = [world.now] + [world.now + 5 * SECOND] * 3
    world.observe()

    world.send(messages.Abort("ada"))
    world.run(longest=2)

    assert world.place("shop").route[1].weight == 50
    assert ended(world).ending is events.Ending.ROLLED_BACK


def test_a_primary_that_its_autoscaler_holds_small_gets_a_failing_canary_s_traffic_at_once() -> (
    None
):
    world = live(HALF, replicas=None)
    autoscale(world, 10)
    world.run_until(states.Analysing)
    autoscale(world, 5)
    world.habits.ready_after = 1

    world.send(messages.Abort("ada"))
    world.run(longest=0.2)
    autoscale(world, 5)
    world.run(longest=3)

    assert asked(world, Slot.PRIMARY)[-1] is None
    assert world.place("shop").route[1].weight == 0


def test_a_promoted_primary_takes_back_what_its_pods_can_carry() -> None:
    world = live(HALF, replicas=None)
    autoscale(world, 6)
    world.run_until(states.Analysing)
    world.send(messages.Approve("ada"))
    world.run_until(states.Promoting)
    weights = []
    world.run(longest=0.2)
    for count in (2, 2, 3, 4, 5):
        autoscale(world, count)
        world.run(longest=3)
        weights.append(int(world.place("shop").route[1].weight))

    outcome = ended(world)

    assert weights == [59, 59, 38, 17, 0]
    assert outcome.ending is events.Ending.PROMOTED
    assert world.place("shop").hurt == []
