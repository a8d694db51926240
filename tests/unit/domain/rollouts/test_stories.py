"""Whole rollouts, told from want to end, in a world where each part takes its time."""

import dataclasses
import datetime as dt
from typing import Any

import pytest

from fairlead.domain.analysis.conditions import Phase
from fairlead.domain.analysis.limits import Limits
from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import messages, states, view
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.spec import Check, Source, Spec, When
from fairlead.domain.rollouts.strategy import Kind, Pace, Scale, Strategy
from fairlead.domain.rollouts.windows import Window
from fairlead.domain.traffic.routes import Match, Where
from fairlead.domain.values import Percent
from tests.unit.domain.rollouts.world import BAD, SECOND, START, Habits, World, refused, version

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


def kinds(world: World) -> list[str]:
    quiet = (told.Sighted, told.LookAsked)
    return [type(event).__name__ for event in world.told() if not isinstance(event, quiet)]


def asked_shares(world: World) -> list[int]:
    asked = [event.route.share for event in world.told() if isinstance(event, told.RouteAsked)]
    return [share for n, share in enumerate(asked) if n == 0 or share != asked[n - 1]]


def ended(world: World) -> states.Outcome:
    outcome: states.Outcome | None = world.run_until(states.Idle).book.outcome
    assert outcome is not None
    return outcome


@pytest.mark.requirement("canary R18")
def test_a_good_version_takes_its_steps_and_becomes_the_primary() -> None:
    world = live()

    outcome = ended(world)

    assert outcome.ending is told.Ending.PROMOTED
    assert asked_shares(world) == [0, 10, 50, 100, 0]
    primary = world.place("shop").slots[Slot.PRIMARY]
    assert primary is not None
    assert primary.version == version("v2")
    assert world.place("shop").slots[Slot.CANARY] is None
    assert world.place("shop").hurt == []
    assert [kept.revision for kept in world.state().book.kept] == ["v1"]


@pytest.mark.requirement("canary R18")
def test_a_bad_version_is_taken_back_at_its_first_step_and_says_why() -> None:
    world = live(habits=Habits(verdicts={"v2": BAD}))

    outcome = ended(world)

    assert outcome.ending is told.Ending.TAKEN_BACK
    assert "at 10 %" in outcome.why
    assert "errors: 1 failed, at most 0 may" in outcome.why
    assert asked_shares(world) == [0, 10, 0]
    assert view.phase(world.state()) is view.Phase.TAKEN_BACK
    assert world.place("shop").hurt == []


def test_pods_come_first_then_the_mesh_then_weight_and_the_way_back_is_the_reverse() -> None:
    world = live()
    ended(world)

    writes = [
        (effect.slot, effect.version.revision)
        if isinstance(effect, messages.EnsureVersion)
        else (effect.route.joined, int(effect.route.share))
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
    shares = []

    while not isinstance(world.state(), states.Watching):
        world.run(longest=5)
        shares.append(world.state().book.route.share)
        if world.state().book.route.share:
            assert world.place("shop").known(Slot.CANARY)

    assert shares[0] == 0
    assert world.place("shop").hurt == []


@pytest.mark.requirement("canary R14")
def test_a_newer_version_first_brings_traffic_home_and_removes_the_old_canary() -> None:
    world = live()
    world.run(lambda: bool(world.state().book.route.share))
    before = len(world.effects)

    world.want("v3", SPEC)
    state = world.run_until(states.Moving)

    since = [each for each in world.effects[before:] if not isinstance(each, messages.Look)]
    first = next(each for each in since if isinstance(each, messages.SetRoute))
    removed = next(n for n, e in enumerate(since) if isinstance(e, messages.RemoveCanary))
    made = next(n for n, e in enumerate(since) if isinstance(e, messages.EnsureVersion))
    assert first.route.share == 0
    assert removed < made
    assert state.run.target == version("v3")
    assert state.book.outcome.ending is told.Ending.SUPERSEDED
    assert ended(world).ending is told.Ending.PROMOTED
    assert world.place("shop").hurt == []


def test_going_back_to_the_stable_version_mid_run_ends_the_run_and_starts_none() -> None:
    world = live()
    world.run_until(states.Watching)

    world.want("v1", SPEC)

    assert ended(world).ending is told.Ending.REVERTED
    assert world.state().book.runs == 1
    assert view.phase(world.state()) is view.Phase.STABLE


@pytest.mark.requirement("canary R12", "canary R13", "canary R20", "canary R22")
def test_the_same_wish_again_starts_nothing_and_writes_nothing() -> None:
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
    world.send(messages.Want("shop", SPEC, changed, 3))

    assert isinstance(world.state(), states.Moving)


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
    assert (first.ending, first.target.label) == (told.Ending.PROMOTED, "v3")
    assert v3 == []
    assert second.ending is told.Ending.TAKEN_BACK
    assert len(resets) == 1

    world.want("v4", SPEC, override=False)
    world.want("v5", SPEC, override=True)
    assert ended(world).ending is told.Ending.PROMOTED
    assert world.place("shop").hurt == []


@pytest.mark.requirement("canary R19")
def test_deleting_mid_canary_makes_and_changes_nothing() -> None:
    world = live()
    world.run_until(states.Watching)
    before = len(world.effects)

    world.send(messages.Delete())
    world.run(longest=600)

    after = [type(each) for each in world.effects[before:]]
    assert set(after) <= {messages.LetGo, messages.Notify}
    assert after.count(messages.LetGo) == 1
    assert isinstance(world.state(), states.Gone)
    assert world.timers == {}


@pytest.mark.requirement("canary R26")
@pytest.mark.parametrize("step", [states.Watching, states.Idle])
def test_weights_changed_by_hand_are_put_back(step: type) -> None:
    world = live()
    world.run_until(step) if step is states.Watching else ended(world)
    world.now += MINUTE
    place, share = world.place("shop"), world.state().book.route.share
    order, route = place.route

    by_hand = dataclasses.replace(route, joined=True).with_share(77)
    place.routes.append((world.now, order, by_hand))
    world.observe()
    world.run(lambda: place.route[1].share == share)

    assert any(isinstance(event, told.Drifted) for event in world.told())
    assert place.route[1].share == share


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
    world.run_until(states.Watching)

    status = world.forget()
    world.send(messages.Adopt(status))
    world.send(messages.Want("shop", SPEC, version("v2"), 3, generation=4))

    assert status["phase"] == "Progressing"
    assert (status["canaryWeight"], status["primaryWeight"]) == (10, 90)
    assert status["observedGeneration"] == 4
    assert (status["stableHash"], status["wantedHash"]) == ("t1-v1", "t1-v2")
    assert isinstance(world.state(), states.Watching)
    assert ended(world).ending is told.Ending.PROMOTED
    assert world.place("shop").hurt == []


def test_a_store_that_knows_better_does_not_learn_from_a_status() -> None:
    world = live()
    world.run_until(states.Watching)
    status = view.status(world.state())
    ended(world)

    world.send(messages.Adopt(status))

    assert isinstance(world.state(), states.Idle)


def test_a_version_that_never_gets_ready_goes_home_at_its_deadline() -> None:
    world = live(habits=Habits(broken=frozenset({"v2"})))

    outcome = ended(world)

    assert outcome.why == "0 of 1 canary pods ready after 0:10:00"
    assert asked_shares(world) == [0]


@pytest.mark.parametrize("moment", [states.Watching, states.Moving])
def test_a_canary_that_loses_its_pods_goes_home_at_once(moment: type) -> None:
    world = live()
    world.run(lambda: bool(world.state().book.route.share))
    world.run_until(moment)
    world.habits.broken = frozenset({"v2"})
    world.place("shop").crash(Slot.CANARY)

    world.observe()

    assert isinstance(world.state(), states.GoingHome)
    assert ended(world).why == "the canary has no ready pod at 10 %"


def test_a_timed_pause_is_kept_and_an_approval_is_waited_for() -> None:
    paces = (Pace(Percent(10), 10 * MINUTE), Pace(Percent(50), approve=True))
    world = live(Spec(Strategy(steps=paces)))
    world.run_until(states.Watching)
    began = world.now

    world.run(lambda: world.state().book.route.share == 50)
    assert world.now - began >= 10 * MINUTE
    world.run(longest=24 * 3600)
    assert view.phase(world.state()) is view.Phase.AWAITING_APPROVAL
    assert "waiting for approval" in view.sentence(world.state())

    world.send(messages.Approve("ada"))

    assert ended(world).ending is told.Ending.PROMOTED


def test_a_pause_holds_every_step_up_and_resume_goes_on() -> None:
    world = live(Spec(STEPS))
    world.run_until(states.Moving)

    world.send(messages.Pause("ada", "let us see"))
    world.run(longest=3600)

    assert world.state().book.route.share == 0
    assert view.phase(world.state()) is view.Phase.PAUSED
    assert "paused by ada: let us see" in view.sentence(world.state())
    world.send(messages.Resume("ada"))
    assert ended(world).ending is told.Ending.PROMOTED


def test_a_paused_canary_that_turns_bad_still_goes_home() -> None:
    endless = Check("errors", limits=Limits(interval=dt.timedelta(seconds=30)))
    world = live(Spec(Strategy(steps=(Pace(Percent(10), 60 * MINUTE),)), (endless,)))
    world.run_until(states.Watching)
    world.send(messages.Pause("ada"))
    world.run(longest=120)
    world.habits.verdicts["v2"] = BAD

    assert ended(world).ending is told.Ending.TAKEN_BACK


def test_an_unclear_verdict_pauses_with_its_reason_and_is_asked_anew_after_resume() -> None:
    world = live(habits=Habits(verdicts={"v2": Phase.INCONCLUSIVE}))
    world.run_until(states.Watching)
    world.run(lambda: world.state().book.paused is not None)

    halted = world.state().book.paused
    world.habits.verdicts.clear()
    world.send(messages.Resume("ada"))

    assert (halted.by, "1 inconclusive" in halted.why) == ("analysis", True)
    assert ended(world).ending is told.Ending.PROMOTED


def test_no_data_waits_and_after_its_patience_pauses_for_a_person() -> None:
    world = live(habits=Habits(verdicts={"v2": None}))
    world.run_until(states.Watching)
    began = world.now

    world.run(lambda: world.state().book.paused is not None)

    assert world.now - began >= SPEC.patience
    assert "no verdict" in world.state().book.paused.why
    assert world.state().book.route.share == 10


def test_a_gate_that_stays_closed_holds_the_start_and_lets_pass_when_it_opens() -> None:
    gate = Check("change board", source=Source.GATE, when=When.START)
    world = live(Spec(STEPS, (gate,)), Habits(verdicts={"v2": None}))
    world.run(longest=600)
    assert isinstance(world.state(), states.Queued)
    assert "waiting for 1 of 1 checks" in view.sentence(world.state())

    world.habits.verdicts.clear()

    assert ended(world).ending is told.Ending.PROMOTED


def test_promote_fully_skips_steps_checks_and_bake_time_but_not_the_order_of_writes() -> None:
    spec = Spec(dataclasses.replace(STEPS, bake=60 * MINUTE), (ERRORS,))
    world = live(spec, Habits(verdicts={"v2": BAD}))
    world.run_until(states.Moving)

    world.send(messages.PromoteFully("ada"))

    assert ended(world).ending is told.Ending.PROMOTED
    assert asked_shares(world) == [0, 100, 0]
    assert world.now - START < 10 * MINUTE
    assert world.place("shop").hurt == []


def test_bake_time_keeps_the_old_version_and_a_bad_number_in_it_goes_home() -> None:
    endless = Check("errors", limits=Limits(interval=dt.timedelta(seconds=30)))
    world = live(Spec(Strategy(step_weight=100, bake=30 * MINUTE), (endless,)))
    world.run(lambda: world.state().book.route.share == 100)
    world.run_until(states.Watching)
    assert view.phase(world.state()) is view.Phase.BAKING
    world.run(longest=600)
    world.habits.verdicts["v2"] = BAD

    outcome = ended(world)

    assert outcome.ending is told.Ending.TAKEN_BACK
    assert world.state().book.stable == version("v1")
    assert world.place("shop").hurt == []


def test_promotion_in_steps_goes_back_to_the_primary_bit_by_bit() -> None:
    strategy = Strategy(step_weight=100, promotion=(Percent(60), Percent(20)))
    world = live(Spec(strategy))

    ended(world)

    assert asked_shares(world) == [0, 100, 60, 20, 0]


def test_a_primary_that_cannot_be_remade_leaves_traffic_on_the_canary_and_says_so() -> None:
    world = live(Spec(STEPS))
    world.run_until(states.Promoting)
    world.habits.broken = frozenset({"v2"})
    world.run(lambda: world.state().stalled != "", longest=7200)

    assert view.phase(world.state()) is view.Phase.STALLED
    assert "0 of 3 pods of the new primary ready" in view.sentence(world.state())
    assert world.place("shop").route[1].share == 100
    world.habits.broken = frozenset()
    world.place("shop").crash(Slot.PRIMARY)
    world.run(longest=600)
    assert isinstance(world.state(), states.Idle)


def test_abort_while_promoting_makes_the_old_primary_again_before_traffic_moves() -> None:
    world = live(Spec(STEPS))
    world.run_until(states.Promoting)

    world.send(messages.Abort("ada"))

    assert ended(world).ending is told.Ending.TAKEN_BACK
    primary = world.place("shop").slots[Slot.PRIMARY]
    assert primary is not None
    assert primary.version == version("v1")
    assert world.place("shop").hurt == []


def test_a_small_primary_grows_before_it_takes_everything_back() -> None:
    # An autoscaler has made the primary small while the canary carried half.
    world = live(Spec(Strategy(steps=(Pace(Percent(50), approve=True),))), replicas=None)
    world.run_until(states.Watching)
    place = world.place("shop")
    primary, canary = place.slots[Slot.PRIMARY], place.slots[Slot.CANARY]
    assert primary is not None
    assert canary is not None
    primary.ready_at = [world.now] * 2
    canary.ready_at = [world.now] * 2
    world.observe()
    world.run(longest=1)
    world.observe()
    before = len(world.effects)

    world.send(messages.Abort("ada"))
    world.run(longest=1)

    asked = [e for e in world.effects[before:] if isinstance(e, messages.EnsureVersion)]
    assert [(e.slot, e.at_least) for e in asked] == [(Slot.PRIMARY, 4)]
    assert place.route[1].share == 50
    assert ended(world).ending is told.Ending.TAKEN_BACK
    assert place.hurt == []


def test_roll_back_to_a_kept_revision_takes_no_steps_and_does_not_bounce() -> None:
    world = live()
    ended(world)

    world.send(messages.RollBackTo("v1", "ada"))
    outcome = ended(world)
    world.want("v2", SPEC)
    world.run(longest=600)

    assert (outcome.ending, outcome.target) == (told.Ending.PROMOTED, version("v1"))
    assert isinstance(world.state(), states.Idle)
    assert world.state().book.stable == version("v1")


def test_retry_tries_the_same_version_again() -> None:
    world = live(habits=Habits(verdicts={"v2": BAD}))
    ended(world)
    world.habits.verdicts.clear()

    world.send(messages.Retry("ada"))

    assert ended(world).ending is told.Ending.PROMOTED


def test_a_window_holds_the_start_and_each_step_but_never_the_way_home() -> None:
    office = Window(("tue",), dt.time(14), dt.time(14, 5))
    paces = (Pace(Percent(10), 10 * MINUTE), Pace(Percent(50)))
    world = live(Spec(Strategy(steps=paces), windows=(office,)))
    assert "opens 2030-01-01 14:00" in view.sentence(world.state())

    world.run(lambda: world.state().book.route.share == 10, longest=4 * 3600)
    assert world.now >= START + 2 * 60 * MINUTE
    world.run(longest=3 * 24 * 3600)
    assert world.state().book.route.share == 10
    world.send(messages.Abort("ada"))

    assert world.run_until(states.Idle, longest=60).book.route.share == 0


def test_blue_green_and_a_b_keep_the_split_until_they_switch() -> None:
    beta = (Match(Where.HEADER, "x-beta", "1"),)
    for strategy in (
        Strategy(kind=Kind.BLUE_GREEN, mirror=Percent(10)),
        Strategy(kind=Kind.AB, matches=beta),
    ):
        world = live(Spec(strategy, (ERRORS,)))
        ended(world)

        assert asked_shares(world) == [0, 100, 0]
        assert world.place("shop").hurt == []


def test_a_fixed_scale_holds_until_all_traffic_comes() -> None:
    world = live(Spec(Strategy(steps=(Pace(Percent(50)),), scale=Scale(2))), replicas=9)
    ended(world)

    asked = [
        effect.replicas
        for effect in world.effects
        if isinstance(effect, messages.EnsureVersion) and effect.slot is Slot.CANARY
    ]
    assert asked == [2, 9]


def test_an_early_tick_sets_its_timer_again() -> None:
    world = live()
    world.run_until(states.Watching)
    due = world.timers["rollout/shop"][0]

    world.send(messages.Tick())

    assert world.timers["rollout/shop"][0] == due
    assert world.now + SECOND < due


def test_a_lost_answer_to_a_round_of_checks_is_asked_for_again() -> None:
    world = live(habits=Habits(verdicts={"v2": BAD}))
    world.run_until(states.Watching)
    ticket = world.state().inquiry.ticket
    world._queue.clear()

    world.run(lambda: world.state().inquiry.ticket != ticket)
    world.send(messages.Judged(ticket, (messages.Finding("errors", BAD, "late"),)))

    assert isinstance(world.state(), states.Watching)
    assert ended(world).ending is told.Ending.TAKEN_BACK


def test_a_workload_that_sleeps_changes_its_version_in_its_sleep() -> None:
    world = World()
    world.want("v1", SPEC, replicas=0)
    world.run_until(states.Idle)

    world.want("v2", SPEC, replicas=0)
    state = world.run_until(states.Idle, longest=60)

    assert (state.book.stable, state.book.kept) == (version("v2"), (version("v1"),))
    assert asked_shares(world) == [0]


def test_a_workload_put_to_sleep_mid_run_sleeps_once_the_run_is_over() -> None:
    world = live()
    world.run_until(states.Watching)

    world.want("v2", SPEC, replicas=0)
    world.send(messages.Abort("ada"))
    world.run_until(states.Idle)
    assert world.place("shop").ready(Slot.PRIMARY) >= 1
    world.now += MINUTE
    world.observe()
    world.run(longest=10)

    assert world.place("shop").ready(Slot.PRIMARY) == 0


def test_an_unreadable_status_is_refused_with_a_hint() -> None:
    for memory in (
        {},
        {"shape": 99},
        {"shape": 1, "state": "Nowhere"},
        {"shape": 1, "state": "Idle"},
    ):
        error = refused(World(), messages.Adopt({"memory": memory}))

        assert error is not None
        assert error.message.startswith("status cannot be adopted: ")
        assert error.hint
