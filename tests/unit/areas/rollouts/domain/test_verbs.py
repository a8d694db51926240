"""Whole rollouts in which people, times and checks have their say."""

import dataclasses
import datetime as dt

import pytest

from fairlead import errors
from fairlead.analysis.conditions import Phase
from fairlead.analysis.limits import Limits, Tally
from fairlead.areas.rollouts.domain import (
    actions,
    declared_verbs,
    events,
    evolve,
    machine,
    messages,
    states,
    view,
)
from fairlead.areas.rollouts.domain.plan.spec import Spec, Version
from fairlead.areas.rollouts.domain.plan.strategy import Kind, Pace, Scale, Strategy
from fairlead.areas.rollouts.domain.plan.windows import Window
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.domain.status import RolloutStatus
from fairlead.checks.spec import Check, CheckKind, Finding, When
from fairlead.traffic.routes import Match, Where
from fairlead.values import Percent
from tests.unit.areas.rollouts.domain.stories import (
    ERRORS,
    MINUTE,
    SPEC,
    STEPS,
    asked_weights,
    ended,
    live,
)
from tests.unit.areas.rollouts.domain.world import (
    BAD,
    SECOND,
    START,
    Habits,
    World,
    refused,
    version,
)


def test_a_timed_pause_is_kept_and_an_approval_is_waited_for() -> None:
    paces = (Pace(Percent(10), 10 * MINUTE), Pace(Percent(50), approve=True))
    world = live(Spec(Strategy(steps=paces)))
    world.run_until(states.Analysing)
    began = world.now

    world.run(lambda: world.state().rollout.route.weight == 50)
    assert world.now - began >= 10 * MINUTE
    world.run(longest=24 * 3600)
    assert view.phase(world.state()) is view.Phase.AWAITING_APPROVAL
    assert "waiting for approval" in view.sentence(world.state())

    world.send(messages.Approve("ada"))

    assert ended(world).ending is events.Ending.PROMOTED


def test_a_pause_holds_every_step_up_and_resume_goes_on() -> None:
    world = live(Spec(STEPS))
    world.run_until(states.Shifting)

    world.send(messages.Pause("ada", "let us see"))
    world.run(longest=3600)

    assert world.state().rollout.route.weight == 0
    assert view.phase(world.state()) is view.Phase.PAUSED
    assert "paused by ada: let us see" in view.sentence(world.state())
    world.send(messages.Resume("ada"))
    assert ended(world).ending is events.Ending.PROMOTED


def test_a_paused_canary_that_turns_bad_still_rolls_back() -> None:
    endless = Check("errors", limits=Limits(interval=dt.timedelta(seconds=30)))
    world = live(Spec(Strategy(steps=(Pace(Percent(10), 60 * MINUTE),)), (endless,)))
    world.run_until(states.Analysing)
    world.send(messages.Pause("ada"))
    world.run(longest=120)
    world.habits.verdicts["v2"] = BAD

    assert ended(world).ending is events.Ending.ROLLED_BACK


def test_an_unclear_verdict_pauses_with_its_reason_and_is_asked_anew_after_resume() -> None:
    world = live(habits=Habits(verdicts={"v2": Phase.INCONCLUSIVE}))
    world.run_until(states.Analysing)
    world.run(lambda: world.state().rollout.paused is not None)

    halted = world.state().rollout.paused
    world.habits.verdicts.clear()
    world.send(messages.Resume("ada"))

    assert (halted.by, "1 of 1 measurement inconclusive" in halted.why) == ("analysis", True)
    assert ended(world).ending is events.Ending.PROMOTED


def test_no_data_waits_and_after_its_patience_pauses_for_a_person() -> None:
    world = live(habits=Habits(verdicts={"v2": None}))
    world.run_until(states.Analysing)
    began = world.now

    world.run(lambda: world.state().rollout.paused is not None)

    assert world.now - began >= SPEC.patience
    assert "no verdict" in world.state().rollout.paused.why
    assert world.state().rollout.route.weight == 10


def counted(world: World) -> Tally:
    tallies: dict[str, Tally] = world.state().round.tallies
    return tallies.get("errors", Tally())


def test_metrics_that_cannot_be_asked_roll_a_rollout_back_only_after_their_limit() -> None:
    world = live(habits=Habits(verdicts={"v2": Phase.ERROR}))
    world.run_until(states.Analysing)

    # Asked again every ten seconds; four errors are borne, and one answer forgives them.
    world.run(lambda: counted(world).consecutive_errors == 4)
    assert world.state().rollout.route.weight == 10
    world.habits.verdicts.clear()
    world.run(lambda: counted(world).count == 1)
    assert counted(world).consecutive_errors == 0
    world.habits.verdicts["v2"] = Phase.ERROR
    outcome = ended(world)

    asked = [event.at for event in world.told() if isinstance(event, events.MeasurementRequested)]
    assert outcome.ending is events.Ending.ROLLED_BACK
    assert "5 errors in a row, limit 4" in outcome.why
    assert dt.timedelta(seconds=10) <= asked[1] - asked[0] < dt.timedelta(seconds=11)


def test_a_gate_that_stays_closed_holds_the_start_and_lets_pass_when_it_opens() -> None:
    gate = Check("change board", kind=CheckKind.GATE, when=When.START)
    world = live(Spec(STEPS, (gate,)), Habits(verdicts={"v2": None}))
    world.run(longest=600)
    assert isinstance(world.state(), states.Queued)
    assert "waiting for 1 of 1 checks" in view.sentence(world.state())

    world.habits.verdicts.clear()

    assert ended(world).ending is events.Ending.PROMOTED


def test_promote_fully_skips_steps_checks_and_bake_time_but_not_the_order_of_writes() -> None:
    spec = Spec(dataclasses.replace(STEPS, bake=60 * MINUTE), (ERRORS,))
    world = live(spec, Habits(verdicts={"v2": BAD}))
    world.run_until(states.Shifting)

    world.send(messages.PromoteFully("ada"))

    assert ended(world).ending is events.Ending.PROMOTED
    assert asked_weights(world) == [0, 100, 0]
    assert world.now - START < 10 * MINUTE
    assert world.place("shop").hurt == []


def test_bake_time_keeps_the_old_version_and_a_bad_number_in_it_rolls_back() -> None:
    endless = Check("errors", limits=Limits(interval=dt.timedelta(seconds=30)))
    world = live(Spec(Strategy(step_weight=100, bake=30 * MINUTE), (endless,)))
    world.run(lambda: world.state().rollout.route.weight == 100)
    world.run_until(states.Analysing)
    assert view.phase(world.state()) is view.Phase.BAKING
    world.run(longest=600)
    world.habits.verdicts["v2"] = BAD

    outcome = ended(world)

    assert outcome.ending is events.Ending.ROLLED_BACK
    assert world.state().rollout.stable == version("v1")
    assert world.place("shop").hurt == []


def test_promotion_in_steps_goes_back_to_the_primary_bit_by_bit() -> None:
    strategy = Strategy(step_weight=100, promotion=(Percent(60), Percent(20)))
    world = live(Spec(strategy))

    ended(world)

    assert asked_weights(world) == [0, 100, 60, 20, 0]


def test_a_primary_that_cannot_be_remade_leaves_traffic_on_the_canary_and_says_so() -> None:
    world = live(Spec(STEPS))
    world.run_until(states.Promoting)
    world.habits.broken = frozenset({"v2"})
    world.run(lambda: world.state().stalled != "", longest=7200)

    assert view.phase(world.state()) is view.Phase.STALLED
    assert "0 of 3 pods of the new primary ready" in view.sentence(world.state())
    assert world.place("shop").route[1].weight == 100
    world.habits.broken = frozenset()
    world.place("shop").crash(Slot.PRIMARY)
    world.run(longest=600)
    assert isinstance(world.state(), states.Idle)


def test_abort_while_promoting_makes_the_old_primary_again_before_traffic_moves() -> None:
    world = live(Spec(STEPS))
    world.run_until(states.Promoting)

    world.send(messages.Abort("ada"))

    assert ended(world).ending is events.Ending.ROLLED_BACK
    primary = world.place("shop").slots[Slot.PRIMARY]
    assert primary is not None
    assert primary.version == version("v1")
    assert world.place("shop").hurt == []


def test_a_small_primary_grows_before_it_takes_everything_back() -> None:
    # An autoscaler has made the primary small while the canary carried half.
    world = live(Spec(Strategy(steps=(Pace(Percent(50), approve=True),))), replicas=None)
    world.run_until(states.Analysing)
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
    assert place.route[1].weight == 50
    assert ended(world).ending is events.Ending.ROLLED_BACK
    assert place.hurt == []


def test_roll_back_to_a_kept_revision_takes_no_steps_and_does_not_bounce() -> None:
    world = live()
    ended(world)

    world.send(messages.RollBackTo("v1", "ada"))
    outcome = ended(world)
    world.want("v2", SPEC)
    world.run(longest=600)

    assert (outcome.ending, outcome.target) == (events.Ending.PROMOTED, version("v1"))
    assert isinstance(world.state(), states.Idle)
    assert world.state().rollout.stable == version("v1")


def test_without_a_revision_the_last_good_version_comes_back() -> None:
    world = live()
    ended(world)

    world.send(messages.RollBackTo("", "ada"))

    assert (ended(world).target, world.state().rollout.stable) == (version("v1"), version("v1"))
    # What it left was not good: a second rollback must not bring that back.
    with pytest.raises(errors.Rejected, match="already rolled back to: v1"):
        world.send(messages.RollBackTo("", "ada"))


def test_revisions_that_are_kept_are_told_by_the_names_that_people_gave_them() -> None:
    world = live()
    ended(world)
    state = world.state()
    kept = dataclasses.replace(state.rollout, kept=(Version("0af", "0af", label="v1"),))

    with pytest.raises(errors.NotFound) as caught:
        machine.decide(
            dataclasses.replace(state, rollout=kept), messages.RollBackTo("v9", "ada"), world.now
        )

    assert caught.value.hint == "kept revisions: 0af (v1)"


def test_a_first_version_has_none_before_it() -> None:
    world = World()
    world.want("v1", SPEC)
    world.run_until(states.Idle)

    with pytest.raises(errors.Rejected, match="no earlier version is kept"):
        world.send(messages.RollBackTo("", "ada"))


def test_an_object_of_a_cluster_is_not_deleted_by_a_person_here() -> None:
    version_ = version("v1")
    given = events.Initialized("shops/web/u1", SPEC, version_, 3, 1, START)
    state = evolve.evolve(states.Unknown(), given)

    with pytest.raises(errors.Rejected, match="belongs to an object of Kubernetes: web"):
        machine.decide(state, messages.Delete("ada"), START)
    assert machine.decide(state, messages.Delete(), START).events == (events.Removed(START),)
    assert declared_verbs.VERBS["delete"].name not in actions.open_now(state, START)


def test_retry_tries_the_same_version_again() -> None:
    world = live(habits=Habits(verdicts={"v2": BAD}))
    ended(world)
    world.habits.verdicts.clear()

    world.send(messages.Retry("ada"))

    assert ended(world).ending is events.Ending.PROMOTED


def test_a_window_holds_the_start_and_each_step_but_never_a_rollback() -> None:
    office = Window(("tue",), dt.time(14), dt.time(14, 5))
    paces = (Pace(Percent(10), 10 * MINUTE), Pace(Percent(50)))
    world = live(Spec(Strategy(steps=paces), windows=(office,)))
    assert "opens 2030-01-01 14:00" in view.sentence(world.state())

    world.run(lambda: world.state().rollout.route.weight == 10, longest=4 * 3600)
    assert world.now >= START + 2 * 60 * MINUTE
    world.run(longest=3 * 24 * 3600)
    assert world.state().rollout.route.weight == 10
    world.send(messages.Abort("ada"))

    assert world.run_until(states.Idle, longest=60).rollout.route.weight == 0


def test_blue_green_and_a_b_keep_the_split_until_they_switch() -> None:
    beta = (Match(Where.HEADER, "x-beta", "1"),)
    for strategy in (
        Strategy(kind=Kind.BLUE_GREEN, mirror=Percent(10)),
        Strategy(kind=Kind.AB, matches=beta),
    ):
        world = live(Spec(strategy, (ERRORS,)))
        ended(world)

        assert asked_weights(world) == [0, 100, 0]
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
    world.run_until(states.Analysing)
    due = world.timers["rollout/shop"][0]

    world.send(messages.Tick())

    assert world.timers["rollout/shop"][0] == due
    assert world.now + SECOND < due


def test_a_lost_answer_to_a_round_of_checks_is_asked_for_again() -> None:
    world = live(habits=Habits(verdicts={"v2": BAD}))
    world.run_until(states.Analysing)
    ticket = world.state().round.ticket
    world._queue.clear()

    world.run(lambda: world.state().round.ticket != ticket)
    world.send(messages.Judged(ticket, (Finding("errors", BAD, "late"),)))

    assert isinstance(world.state(), states.Analysing)
    assert ended(world).ending is events.Ending.ROLLED_BACK


def test_a_workload_that_sleeps_changes_its_version_in_its_sleep() -> None:
    world = World()
    world.want("v1", SPEC, replicas=0)
    world.run_until(states.Idle)

    world.want("v2", SPEC, replicas=0)
    state = world.run_until(states.Idle, longest=60)

    assert (state.rollout.stable, state.rollout.kept) == (version("v2"), (version("v1"),))
    assert asked_weights(world) == [0]


def test_a_workload_put_to_sleep_mid_run_sleeps_once_the_run_is_over() -> None:
    world = live()
    world.run_until(states.Analysing)

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
        error = refused(World(), messages.Adopt(RolloutStatus(memory=memory)))

        assert error is not None
        assert error.message.startswith("cannot adopt status: ")
        assert error.hint
