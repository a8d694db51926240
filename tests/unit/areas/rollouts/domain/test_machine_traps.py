"""Traps that others fell into, as the reference tells them: ours must not."""

import dataclasses
import datetime as dt

import pytest

from fairlead.analysis.conditions import Phase
from fairlead.areas.rollouts.domain import events, messages, states, view
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.areas.rollouts.domain.observation import Observation
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.checks.spec import Check, CheckKind, When
from fairlead.values import Percent
from tests.unit.areas.rollouts.domain.stories import SPEC, STEPS, asked_weights, ended, live
from tests.unit.areas.rollouts.domain.world import BAD, SECOND, Habits, World, version


def test_a_version_wanted_while_another_rolls_back_is_not_lost() -> None:
    # Flagger writes the new hash down on the way out of a failure, and never sees it again.
    world = live(habits=Habits(verdicts={"v2": BAD}))
    world.run_until(states.RollingBack)

    world.want("v3", SPEC)

    outcome = world.run_until(states.Idle).rollout.outcome
    assert outcome is not None
    world.run(lambda: world.state().rollout.stable == version("v3"))
    assert world.state().rollout.stable == version("v3")


@pytest.mark.parametrize("phase", [states.Shifting, states.Promoting])
def test_a_version_that_is_under_way_starts_no_second_run_when_it_is_desired_too(
    phase: type,
) -> None:
    world = live()
    ended(world)
    world.send(messages.RollBackTo("v1", "ada"))
    world.run_until(phase)

    world.want("v1", SPEC)

    assert ended(world).ending is events.Ending.PROMOTED
    world.run(longest=600)
    assert (type(world.state()), world.state().rollout.runs) == (states.Idle, 2)
    assert world.state().rollout.desired == version("v1")


def test_a_change_of_what_was_live_before_the_rollout_waits_for_the_first_version() -> None:
    world = World(Habits())
    world.want("v1", SPEC)

    world.want("v2", SPEC, live=True)

    assert world.run_until(states.Shifting).rollout.stable == version("v1")
    assert ended(world).ending is events.Ending.PROMOTED
    assert asked_weights(world) == [0, 10, 50, 100, 0]


def test_a_rollout_that_waits_before_its_start_can_be_aborted() -> None:
    # In Flagger a rollback hook is never asked while a confirm-rollout gate is closed.
    gate = Check("board", kind=CheckKind.GATE, when=When.START)
    world = live(Spec(STEPS, (gate,)), Habits(verdicts={"v2": None}))

    world.send(messages.Abort("ada", "not today"))

    assert ended(world).why == "aborted by ada: not today"


def test_waiting_for_approval_keeps_the_weight_in_the_status() -> None:
    # In Flagger the status says 0 while the canary still has its weight.
    world = live(Spec(Strategy(steps=(Pace(Percent(20), approve=True),))))
    world.run_until(states.Analysing)

    status = view.status(world.state())

    assert (status.phase, status.canary_weight) == ("AwaitingApproval", 20)
    assert world.place("shop").route[1].weight == 20


@pytest.mark.parametrize("fully", [True, False])
def test_a_broken_stable_version_does_not_block_its_own_fix(*, fully: bool) -> None:
    # argo-rollouts#1838, #4839: stuck on a degraded stable.
    world = World(Habits())
    world.want("v1", SPEC)
    world.run_until(states.Idle)
    world.habits.broken = frozenset({"v1"})
    world.place("shop").crash(Slot.PRIMARY)

    world.want("v2", SPEC)
    if fully:
        world.send(messages.PromoteFully("ada"))

    assert ended(world).ending is events.Ending.PROMOTED
    assert world.place("shop").healthy()


def test_a_bad_canary_beside_a_dead_stable_version_keeps_traffic_until_somebody_is_ready() -> None:
    # argo-rollouts#2507, #4775: traffic sent to a version without pods on abort.
    world = live(Spec(Strategy(steps=(Pace(Percent(50), approve=True),))))
    world.run_until(states.Analysing)
    world.habits.broken = frozenset({"v1"})
    world.place("shop").crash(Slot.PRIMARY)
    world.observe()

    world.send(messages.Abort("ada"))
    world.run(longest=1800)
    assert world.state().rollout.route.weight == 50
    assert view.phase(world.state()) is view.Phase.STALLED
    assert "0 of 3 pods of the stable version ready" in view.sentence(world.state())

    world.habits.broken = frozenset()
    world.place("shop").crash(Slot.PRIMARY)
    assert ended(world).ending is events.Ending.ROLLED_BACK
    assert world.place("shop").healthy()


def test_start_checks_run_once_and_not_again_at_weight_0() -> None:
    # flagger#1248: a gate that fails at weight 0 runs the pre-rollout hooks again and again.
    start = Check("smoke", when=When.START)
    step = Check("errors")
    world = live(Spec(STEPS, (start, step)))
    ended(world)

    asked = [e.checks for e in world.told() if isinstance(e, events.MeasurementRequested)]

    assert asked.count(("smoke",)) == 1
    assert asked[1:] == [("errors",)] * 3


def test_an_unclear_step_is_not_stuck_after_resume() -> None:
    # argo-rollouts#3015.
    world = live(habits=Habits(verdicts={"v2": Phase.INCONCLUSIVE}))
    world.run(lambda: world.state().rollout.paused is not None)

    world.send(messages.Resume("ada"))
    world.run(lambda: world.state().rollout.paused is not None)
    world.habits.verdicts.clear()
    world.send(messages.Resume("ada"))

    assert ended(world).ending is events.Ending.PROMOTED


def test_an_old_observation_that_comes_late_moves_nothing() -> None:
    world = live()
    world.run_until(states.Analysing)
    old = dataclasses.replace(world.place("shop").observed(), at=world.now - 30 * SECOND)
    dead = Observation(old.at, old.primary, None, old.route)

    assert not ROLLOUT.decide(world.state(), messages.Observed(dead), world.now)
    assert asked_weights(world) == [0, 10]


def test_weights_never_flap_when_a_tool_applies_the_old_route_again() -> None:
    # A GitOps tool writes its manifest over ours mid-canary: put back once, not in a loop.
    world = live(Spec(Strategy(steps=(Pace(Percent(20), approve=True),))))
    world.run_until(states.Analysing)
    place = world.place("shop")
    _, first = place.routes[0][1], place.routes[0][2]

    place.routes.append((world.now, 0, first))
    for _ in range(5):
        world.observe()
    world.run(longest=dt.timedelta(minutes=1).total_seconds())

    drifts = [event for event in world.told() if isinstance(event, events.Drifted)]
    assert len(drifts) == 1
    assert place.route[1].weight == 20
