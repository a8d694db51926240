"""Whole rollouts, told from want to end, in a world where each part takes its time."""

import dataclasses

import pytest

from fairlead.areas.rollouts.domain import events as rollout_events
from fairlead.areas.rollouts.domain import messages, states, view
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.traffic import weights
from tests.unit.areas.rollouts.domain.stories import MINUTE, SPEC, asked_weights, ended, live
from tests.unit.areas.rollouts.domain.world import BAD, Habits, version


@pytest.mark.requirement("canary R18")
def test_a_good_version_takes_its_steps_and_becomes_the_primary() -> None:
    world = live()

    outcome = ended(world)

    assert outcome.ending is rollout_events.Ending.PROMOTED
    assert asked_weights(world) == [0, 10, 50, 100, 0]
    primary = world.place("shop").slots[Slot.PRIMARY]
    assert primary is not None
    assert primary.version == version("v2")
    assert world.place("shop").slots[Slot.CANARY] is None
    assert world.place("shop").hurt == []
    assert [kept.revision for kept in world.state().rollout.kept] == ["v1"]


@pytest.mark.requirement("canary R18")
def test_a_bad_version_is_rolled_back_at_its_first_step_and_says_why() -> None:
    world = live(habits=Habits(verdicts={"v2": BAD}))

    outcome = ended(world)

    assert outcome.ending is rollout_events.Ending.ROLLED_BACK
    assert "at 10 %" in outcome.why
    assert "errors: 1 of 1 measurement failed, limit 0" in outcome.why
    assert asked_weights(world) == [0, 10, 0]
    assert view.phase(world.state()) is view.Phase.ROLLED_BACK
    assert world.place("shop").hurt == []


def test_pods_come_first_then_the_mesh_then_weight_and_the_way_back_is_the_reverse() -> None:
    world = live()
    ended(world)

    writes = [
        (effect.slot, effect.version.revision)
        if isinstance(effect, messages.EnsureVersion)
        else (effect.route.joined, int(effect.route.weight))
        if isinstance(effect, messages.SetRoute)
        else "removed"
        for effect in world.effects
        if isinstance(effect, messages.EnsureVersion | messages.SetRoute | messages.RemoveCanary)
    ]

    assert writes == [
        (Slot.PRIMARY, "v1"), (False, 0),
        (Slot.CANARY, "v2"), (True, 0), (True, 10),
        (Slot.CANARY, "v2"), (True, 50),
        (Slot.CANARY, "v2"), (True, 100),
        (Slot.PRIMARY, "v2"), (True, 0), (False, 0), "removed",
    ]  # fmt: skip


def test_the_canary_waits_for_the_mesh_and_not_for_time() -> None:
    world = live(habits=Habits(lag=120))
    weights = []

    while not isinstance(world.state(), states.Analysing):
        world.run(longest=5)
        weights.append(world.state().rollout.route.weight)
        if world.state().rollout.route.weight:
            assert world.place("shop").known(Slot.CANARY)

    assert weights[0] == 0
    assert world.place("shop").hurt == []


@pytest.mark.requirement("canary R14")
def test_a_newer_version_first_returns_traffic_to_stable_and_removes_the_old_canary() -> None:
    world = live()
    world.run(lambda: bool(world.state().rollout.route.weight))
    before = len(world.effects)

    world.want("v3", SPEC)
    state = world.run_until(states.Shifting)

    since = [each for each in world.effects[before:] if not isinstance(each, messages.Observe)]
    first = next(each for each in since if isinstance(each, messages.SetRoute))
    removed = next(n for n, e in enumerate(since) if isinstance(e, messages.RemoveCanary))
    made = next(n for n, e in enumerate(since) if isinstance(e, messages.EnsureVersion))
    assert first.route.weight == 0
    assert removed < made
    assert state.run.target == version("v3")
    assert state.rollout.outcome.ending is rollout_events.Ending.SUPERSEDED
    assert ended(world).ending is rollout_events.Ending.PROMOTED
    assert world.place("shop").hurt == []


def test_going_back_to_the_stable_version_mid_run_ends_the_run_and_starts_none() -> None:
    world = live()
    world.run_until(states.Analysing)

    world.want("v1", SPEC)

    assert ended(world).ending is rollout_events.Ending.REVERTED
    assert world.state().rollout.runs == 1
    assert view.phase(world.state()) is view.Phase.STABLE


@pytest.mark.requirement("canary R12", "canary R13", "canary R20", "canary R22")
def test_the_same_request_again_starts_nothing_and_writes_nothing() -> None:
    world = live()
    ended(world)
    events, effects = len(world.told()), len(world.effects)

    for _ in range(3):
        world.want("v2", SPEC)
        world.observe()

    assert (len(world.told()), len(world.effects)) == (events, effects)


@pytest.mark.requirement("canary R21")
def test_replicas_alone_scale_the_primary_without_a_run() -> None:
    world = live()
    ended(world)
    before = len(world.effects)

    world.want("v2", SPEC, replicas=7)

    asked = [each for each in world.effects[before:] if isinstance(each, messages.EnsureVersion)]
    assert [(each.slot, each.replicas, each.version) for each in asked] == [
        (Slot.PRIMARY, 7, version("v2"))
    ]
    assert isinstance(world.state(), states.Idle)


@pytest.mark.requirement("canary R20")
def test_a_changed_config_starts_a_run_though_the_template_is_the_same() -> None:
    world = live()
    ended(world)

    changed = dataclasses.replace(version("v2"), configs="c2", revision="v2-c2")
    world.send(messages.Request("shop", SPEC, changed, 3))

    assert isinstance(world.state(), states.Shifting)


@pytest.mark.requirement("canary R24", "canary R25")
def test_the_override_flag_jumps_ahead_once_and_is_reset_once() -> None:
    world = live(habits=Habits(verdicts={"v3": BAD, "v4": BAD}))
    ended(world)

    world.want("v3", SPEC, override=True)
    first = ended(world)
    # The reset has not been seen yet, and the next change is already there.
    world.want("v4", SPEC, override=True)
    second = ended(world)

    resets = [each for each in world.effects if isinstance(each, messages.ResetOverride)]
    v3 = [e for e in world.effects if isinstance(e, messages.Measure) and e.canary.label == "v3"]
    assert (first.ending, first.target.label) == (rollout_events.Ending.PROMOTED, "v3")
    assert v3 == []
    assert second.ending is rollout_events.Ending.ROLLED_BACK
    assert len(resets) == 1

    world.want("v4", SPEC, override=False)
    world.want("v5", SPEC, override=True)
    assert ended(world).ending is rollout_events.Ending.PROMOTED
    assert world.place("shop").hurt == []


@pytest.mark.requirement("canary R19")
def test_deleting_mid_canary_makes_and_changes_nothing() -> None:
    world = live()
    world.run_until(states.Analysing)
    before = len(world.effects)

    world.send(messages.Delete())
    world.run(longest=600)

    after = [type(each) for each in world.effects[before:]]
    assert set(after) <= {messages.ReleaseResources, messages.Notify}
    assert after.count(messages.ReleaseResources) == 1
    assert isinstance(world.state(), states.Gone)
    assert world.timers == {}


@pytest.mark.requirement("canary R26")
@pytest.mark.parametrize("step", [states.Analysing, states.Idle])
def test_weights_changed_by_hand_are_put_back(step: type) -> None:
    world = live()
    world.run_until(step) if step is states.Analysing else ended(world)
    world.now += MINUTE
    place, weight = world.place("shop"), world.state().rollout.route.weight
    order, route = place.route

    by_hand = dataclasses.replace(route, joined=True, split=weights.giving(77))
    place.routes.append((world.now, order, by_hand))
    world.observe()
    world.run(lambda: place.route[1].weight == weight)

    assert any(isinstance(event, rollout_events.Drifted) for event in world.told())
    assert place.route[1].weight == weight


@pytest.mark.requirement("canary R26")
def test_a_primary_or_canary_meddled_with_while_idle_is_put_right() -> None:
    world = live()
    ended(world)
    world.now += MINUTE
    place = world.place("shop")
    primary = place.slots[Slot.PRIMARY]
    assert primary is not None
    del primary.ready_at[1:]
    place.slots[Slot.CANARY] = dataclasses.replace(primary, ready_at=[world.now])

    world.observe()
    world.run(longest=10)

    assert len(primary.ready_at) == 3
    assert place.slots[Slot.CANARY] is None


@pytest.mark.requirement("canary R27")
def test_the_status_says_where_it_is_and_is_enough_to_go_on() -> None:
    world = live(generation=4)
    world.run_until(states.Analysing)

    status = world.forget()
    world.send(messages.Adopt(status))
    world.send(messages.Request("shop", SPEC, version("v2"), 3, generation=4))

    assert status.phase == "Progressing"
    assert (status.canary_weight, status.primary_weight) == (10, 90)
    assert status.observed_generation == 4
    assert (status.stable_hash, status.desired_hash) == ("t1-v1", "t1-v2")
    assert isinstance(world.state(), states.Analysing)
    assert ended(world).ending is rollout_events.Ending.PROMOTED
    assert world.place("shop").hurt == []


@pytest.mark.parametrize("place", [states.Shifting, states.Analysing, states.RollingBack])
def test_a_run_that_nobody_remembers_starts_over_from_what_runs(place: type) -> None:
    world = live()
    world.run_until(states.Analysing)
    if place is states.RollingBack:
        world.send(messages.Abort("ada"))
    world.run_until(place)
    world.forget()

    world.send(messages.Request("shop", SPEC, version("v2"), 3, running=version("v1")))

    assert world.run_until(states.Analysing).rollout.stable == version("v1")
    assert ended(world).ending is rollout_events.Ending.PROMOTED
    assert world.place("shop").hurt == []


def test_a_promotion_that_nobody_remembers_is_finished() -> None:
    world = live()
    world.run_until(states.Promoting)
    world.forget()

    world.send(messages.Request("shop", SPEC, version("v2"), 3, running=version("v2")))

    assert world.run_until(states.Idle).rollout.stable == version("v2")
    world.run(longest=10)
    world.now += MINUTE
    world.observe()
    world.run(longest=60)
    assert world.place("shop").slots[Slot.CANARY] is None
    assert world.place("shop").hurt == []


@pytest.mark.parametrize("place", [states.Idle, states.Analysing])
def test_what_is_adopted_from_a_status_is_not_written_back_into_it(place: type) -> None:
    # A pod that starts anew would otherwise write the status of every object it looks after.
    world = live()
    world.run_until(place)
    status = world.forget()
    world.effects.clear()

    world.send(messages.Adopt(status))

    assert isinstance(world.state(), place)
    assert [type(each) for each in world.effects] == [messages.Observe]


def test_a_store_that_knows_better_does_not_learn_from_a_status() -> None:
    world = live()
    world.run_until(states.Analysing)
    status = view.status(world.state())
    ended(world)

    world.send(messages.Adopt(status))

    assert isinstance(world.state(), states.Idle)


def test_a_version_that_never_gets_ready_rolls_back_at_its_deadline() -> None:
    world = live(habits=Habits(broken=frozenset({"v2"})))

    outcome = ended(world)

    assert outcome.why == "0 of 1 canary pods ready after 10 min"
    assert asked_weights(world) == [0]


@pytest.mark.parametrize("moment", [states.Analysing, states.Shifting])
def test_a_canary_that_loses_its_pods_rolls_back_at_once(moment: type) -> None:
    world = live()
    world.run(lambda: bool(world.state().rollout.route.weight))
    world.run_until(moment)
    world.habits.broken = frozenset({"v2"})
    world.place("shop").crash(Slot.CANARY)

    world.observe()

    assert isinstance(world.state(), states.RollingBack)
    assert ended(world).why == "the canary has no ready pod at 10 %"
