"""What is seen is kept where a decision can turn on it; the rest passes without a commit."""

import dataclasses
import datetime as dt
from typing import Any

import pytest

from fairlead.areas.rollouts.domain import events as rollout_events
from fairlead.areas.rollouts.domain import messages, states
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.areas.rollouts.domain.observation import NOTHING, ObservedRoute, Pods
from fairlead.areas.rollouts.domain.phases import shifting
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Scale, Strategy
from fairlead.engine.messages import Decision
from fairlead.values import Percent
from tests.unit.areas.rollouts.domain.stories import live
from tests.unit.areas.rollouts.domain.world import Habits, World

SPEC = Spec(Strategy(steps=(Pace(Percent(10), approve=True),), scale=Scale(40)))
SLOW = Habits(ready_after=300)


def test_pods_that_get_ready_one_by_one_pass_until_all_of_them_are() -> None:
    world = _moving()

    written = [_see(world, canary=_pods(world, ready)).events for ready in range(1, 41)]

    # The first says that there is one at all; the last one lets the canary join.
    assert [ready for ready, events in enumerate(written, 1) if events] == [1, 40]
    assert [type(event) for event in written[-1]] == [
        rollout_events.ObservationRecorded,
        rollout_events.RouteRequested,
    ]


def test_a_look_that_was_asked_for_keeps_what_it_sees() -> None:
    world = _moving()
    _see(world, canary=_pods(world, 1))
    _see(world, canary=_pods(world, 7))
    assert shifting.waiting_for(world.state()) == "1 of 40 canary pods ready"

    world.now += states.FIRST_OBSERVATION
    asked = _keep(world, messages.Tick())
    kept = _see(world, canary=_pods(world, 8))
    passed = _see(world, canary=_pods(world, 9))

    assert [type(event) for event in asked.events] == [rollout_events.ObservationRequested]
    assert [type(event) for event in kept.events] == [rollout_events.ObservationRecorded]
    assert passed == Decision()
    assert shifting.waiting_for(world.state()) == "8 of 40 canary pods ready"


def test_proxies_that_show_a_route_before_they_know_the_pods_pass() -> None:
    world = _moving()
    _see(world, canary=_pods(world, 40))
    order = world.state().rollout.route_order

    early = _see(world, canary=_pods(world, 40), route=ObservedRoute(order, 0))
    whole = _see(world, canary=_pods(world, 40, known=40), route=ObservedRoute(order, 0))

    assert early == Decision()
    assert [type(event) for event in whole.events] == [
        rollout_events.ObservationRecorded,
        rollout_events.RouteRequested,
    ]


def test_a_canary_that_stands_while_paused_goes_on_at_once_when_resumed() -> None:
    world = _moving()
    _see(world, canary=_pods(world, 40))
    order = world.state().rollout.route_order
    _keep(world, messages.Pause("ada"))
    _see(world, canary=_pods(world, 40, known=40), route=ObservedRoute(order, 0))

    resumed = _keep(world, messages.Resume("ada"))

    assert any(isinstance(event, rollout_events.RouteRequested) for event in resumed.events)


@pytest.mark.parametrize("ready", [40, 39, 1])
def test_at_a_step_only_the_loss_of_the_last_pod_is_news(ready: int) -> None:
    world = _watching()

    passed = _see(world, canary=_pods(world, ready, known=ready))
    lost = _see(world, canary=_pods(world, 0))

    assert passed == Decision()
    assert rollout_events.RollbackStarted in [type(event) for event in lost.events]


@pytest.mark.parametrize("change", [{"desired": 5}, {"ready": 2}, {"trouble": "no room"}])
def test_what_happens_to_the_primary_is_always_kept(change: dict[str, Any]) -> None:
    # a rollback that begins in the next moment is planned by it.
    world = _watching()
    primary = dataclasses.replace(world.place("shop").observed().primary or NOTHING, **change)

    seen = _see(world, primary=primary)

    assert rollout_events.ObservationRecorded in [type(event) for event in seen.events]


def test_words_about_trouble_are_kept_for_they_are_shown() -> None:
    world = _moving()

    seen = _see(world, canary=dataclasses.replace(_pods(world, 0), trouble="no such image"))

    assert [type(event) for event in seen.events] == [rollout_events.ObservationRecorded]


def _moving() -> World:
    world = live(SPEC, SLOW)
    state = world.run_until(states.Shifting)
    # The canary's place is there and empty.
    world.run(lambda: state.rollout.canary.order in world.place("shop").orders.values(), longest=1)
    _see(world, canary=_pods(world, 0))
    return world


def _watching() -> World:
    world = live(SPEC)
    world.run_until(states.Analysing)
    return world


def _pods(world: World, ready: int, known: int = 0) -> Pods:
    return Pods(world.state().run.target.revision, 40, ready, known, world.state().rollout.order)


def _see(world: World, **parts: Any) -> Decision:
    world.now += dt.timedelta(milliseconds=10)
    seen = dataclasses.replace(world.place("shop").observed(), **parts)
    return _keep(world, messages.Observed(seen))


def _keep(world: World, command: messages.Command) -> Decision:
    decision = ROLLOUT.decide(world.state(), command, world.now)
    world.send(command)
    return decision
