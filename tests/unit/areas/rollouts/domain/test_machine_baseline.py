"""A baseline: the stable version once more beside the canary, for the judge to compare with."""

from dataclasses import replace

import pytest

from fairlead import errors
from fairlead.areas.rollouts.domain import events, messages, states, view
from fairlead.areas.rollouts.domain.plan import steps
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Kind, Pace, Scale, Strategy
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.checks.spec import CheckKind
from fairlead.traffic.routes import Match, Where
from fairlead.values import Percent
from tests.unit.areas.rollouts.domain.stories import ERRORS, asked_weights, ended, live
from tests.unit.areas.rollouts.domain.world import BAD, SECOND, Habits, World

STEPS = Strategy(steps=(Pace(Percent(10)), Pace(Percent(50))), baseline=True)
SPEC = Spec(STEPS, (ERRORS,))


def splits(*weights: int) -> list[tuple[int, int, int]]:
    plan = steps.plan(Strategy(steps=tuple(Pace(Percent(n)) for n in weights), baseline=True))
    return [(s.route.split.primary, s.route.split.canary, s.route.split.baseline) for s in plan]


def measures(world: World) -> list[tuple[int, Slot]]:
    asked = [each for each in world.effects if isinstance(each, messages.Measure)]
    return [(each.weight, each.control) for each in asked]


def test_the_baseline_gets_as_much_as_the_canary_up_to_a_third() -> None:
    assert splits(5, 20, 33, 50) == [(90, 5, 5), (60, 20, 20), (34, 33, 33), (34, 50, 16),
                                     (0, 100, 0)]  # fmt: skip
    assert splits(10, 50) == [(80, 10, 10), (50, 50, 0), (0, 100, 0)]


@pytest.mark.parametrize("weights", [(5, 20, 50), (30, 40, 50), (33, 34, 90), (0, 10, 100)])
def test_the_primary_never_gets_more_on_the_way_up(weights: tuple[int, ...]) -> None:
    primaries = [primary for primary, _, _ in splits(*weights)]

    assert primaries == sorted(primaries, reverse=True)


def test_a_strategy_without_weights_has_no_baseline() -> None:
    beta = (Match(Where.HEADER, "x-beta", "1"),)
    for other in ({"kind": Kind.BLUE_GREEN}, {"kind": Kind.AB, "matches": beta}):
        with pytest.raises(errors.Rejected, match="a baseline is only for kind canary"):
            Strategy(baseline=True, **other)


def test_a_good_version_is_compared_with_its_baseline_and_promoted() -> None:
    world = live(SPEC)

    assert ended(world).ending is events.Ending.PROMOTED
    assert asked_weights(world) == [0, 10, 50, 100, 0]
    assert measures(world) == [(10, Slot.BASELINE)] * 2 + [(50, Slot.PRIMARY)] * 2 + [
        (100, Slot.PRIMARY)] * 2  # fmt: skip
    place = world.place("shop")
    assert (place.hurt, place.slots[Slot.CANARY], place.slots[Slot.BASELINE]) == ([], None, None)


def test_with_all_requests_it_is_held_against_who_was_beside_it_before() -> None:
    """The primary of that time is warm: a canary that is not yet would look slow beside it."""
    strategy = Strategy(steps=(Pace(Percent(10)), Pace(Percent(25))), baseline=True)
    world = live(Spec(strategy, (ERRORS,)))

    assert ended(world).ending is events.Ending.PROMOTED
    assert set(measures(world)) == {(weight, Slot.BASELINE) for weight in (10, 25, 100)}


def test_pods_of_both_come_first_and_both_join_in_one_write() -> None:
    world = live(SPEC)
    world.run_until(states.Analysing)

    asked = [
        each
        for each in world.told()
        if isinstance(each, events.VersionRequested | events.RouteRequested)
    ]
    slots = [each.slot for each in asked if isinstance(each, events.VersionRequested)]
    routes = [each.route for each in asked if isinstance(each, events.RouteRequested)]
    assert slots == [Slot.PRIMARY, Slot.CANARY, Slot.BASELINE]
    held = [(route.joined, route.compared, route.split.baseline) for route in routes]
    assert held == [(False, False, 0), (True, True, 0), (True, True, 10)]
    status = view.status(world.state()).plain()
    weights = [status[f"{slot.value}Weight"] for slot in Slot]
    assert weights == [80, 10, 10]


def test_a_bad_version_rolls_back_with_its_baseline() -> None:
    world = live(SPEC, Habits(verdicts={"v2": BAD}))

    assert ended(world).ending is events.Ending.ROLLED_BACK
    assert asked_weights(world) == [0, 10, 0]
    place = world.place("shop")
    assert (place.hurt, place.slots[Slot.CANARY], place.slots[Slot.BASELINE]) == ([], None, None)


def test_a_baseline_that_never_gets_ready_rolls_the_run_back_at_its_deadline() -> None:
    world = World()
    world.want("v1", SPEC)
    world.run_until(states.Idle)
    world.habits = replace(world.habits, broken=frozenset({"v1"}))
    world.want("v2", SPEC)

    assert "0 of 1 baseline pods ready" in ended(world).why
    assert asked_weights(world) == [0]


def test_a_baseline_that_loses_its_pods_rolls_the_run_back_at_once() -> None:
    world = live(SPEC)
    world.run_until(states.Analysing)
    world.run(longest=5)

    world.place("shop").crash(Slot.BASELINE)
    world.observe()

    assert isinstance(world.state(), states.RollingBack)
    assert world.state().why == "the baseline has no ready pod at 10 %"
    assert world.state().rollout.route.split.primary == 100


def test_a_dead_primary_leaves_the_baseline_its_weight_until_somebody_is_ready() -> None:
    world = live(SPEC, Habits(ready_after=120))
    world.run_until(states.Analysing)
    world.run(longest=5)

    world.place("shop").crash(Slot.PRIMARY)
    world.observe()
    world.send(messages.Abort("ada"))
    world.run(longest=60)

    assert world.state().rollout.route.split.baseline == 10
    assert ended(world).ending is events.Ending.ROLLED_BACK
    assert world.place("shop").healthy()


def test_the_baseline_is_as_large_as_the_canary_and_never_smaller_under_traffic() -> None:
    strategy = Strategy(steps=(Pace(Percent(30)), Pace(Percent(40))), baseline=True)
    world = live(Spec(strategy, (ERRORS,)), replicas=10)
    ended(world)

    asked = [each for each in world.effects if isinstance(each, messages.EnsureVersion)]
    sizes = {slot: [e.replicas for e in asked if e.slot is slot] for slot in Slot}
    assert sizes[Slot.CANARY] == [3, 4, 10]
    # At 40 % it has 20 %, which two could carry.
    assert sizes[Slot.BASELINE] == [3, 3]
    assert world.place("shop").hurt == []


def test_a_fixed_scale_holds_for_both() -> None:
    world = live(Spec(replace(STEPS, scale=Scale(2)), (ERRORS,)), replicas=10)
    world.run_until(states.Analysing)

    asked = [each for each in world.effects if isinstance(each, messages.EnsureVersion)]
    assert [each.replicas for each in asked if each.slot is not Slot.PRIMARY] == [2, 2]


def test_who_skips_its_steps_makes_no_baseline() -> None:
    world = World()
    world.want("v1", SPEC)
    world.run_until(states.Idle)
    world.want("v2", SPEC, override=True)

    assert ended(world).ending is events.Ending.PROMOTED
    asked = [each for each in world.effects if isinstance(each, messages.EnsureVersion)]
    assert Slot.BASELINE not in {each.slot for each in asked}


def test_who_skips_its_steps_midway_does_not_wait_for_the_baseline() -> None:
    world = live(SPEC)
    world.habits = replace(world.habits, broken=frozenset({"v1"}))
    world.send(messages.PromoteFully("ada"))

    assert ended(world).ending is events.Ending.PROMOTED
    assert asked_weights(world) == [0, 100, 0]
    assert world.place("shop").hurt == []
    assert world.place("shop").slots[Slot.BASELINE] is None


def test_an_autoscaled_primary_grows_for_all_it_gave_away() -> None:
    world = live(SPEC, replicas=None)
    world.run_until(states.Analysing)
    side = world.place("shop").slots[Slot.PRIMARY]
    assert side is not None
    side.ready_at = [world.now - SECOND] * 8
    world.observe()

    world.send(messages.Abort("ada"))

    asked = [each for each in world.effects if isinstance(each, messages.EnsureVersion)]
    assert (asked[-1].slot, asked[-1].at_least) == (Slot.PRIMARY, 10)


def test_a_baseline_left_behind_is_removed() -> None:
    world = live(SPEC)
    ended(world)
    place = world.place("shop")
    place.slots[Slot.BASELINE] = place.slots[Slot.PRIMARY]
    world.now += 60 * SECOND
    world.observe()
    world.run(longest=30)

    drifts = [each.what for each in world.told() if isinstance(each, events.Drifted)]
    assert drifts == ["a baseline was left over"]
    assert place.slots[Slot.BASELINE] is None


def test_the_verdicts_of_two_judges_share_one_promise() -> None:
    config = {"metrics": [{"name": "latency", "query": "q"}]}
    judge = replace(ERRORS, name="judge", query="", kind=CheckKind.JUDGE, judge=config)
    world = live(Spec(STEPS, (ERRORS, judge, replace(judge, name="another"))))

    assert ended(world).ending is events.Ending.PROMOTED
    shares = {each.steps for each in world.effects if isinstance(each, messages.Measure)}

    assert shares == {2 * len(steps.plan(STEPS))}
