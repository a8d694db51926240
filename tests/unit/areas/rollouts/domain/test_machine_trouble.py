"""What the platform says about pods that are not ready reaches the people who wait for them."""

import dataclasses
import datetime as dt
from typing import cast

from fairlead.areas.rollouts.domain import messages, view
from fairlead.areas.rollouts.domain.events import Event, RollbackStarted
from fairlead.areas.rollouts.domain.machine import ROLLOUT, decide
from fairlead.areas.rollouts.domain.observation import Observation, ObservedRoute, Pods
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.states import Shifting, State, Unknown
from tests.unit.areas.rollouts.domain.world import START, version

CRASHED = "crash looping: ended with code 1, saying: no configuration"


def told(state: State, command: messages.Command, seconds: float) -> tuple[State, list[object]]:
    decision = decide(state, command, START + dt.timedelta(seconds=seconds))
    for event in decision.events:
        state = ROLLOUT.evolve(state, cast("Event", event))
    return state, [*decision.events, *decision.effects]


def seen(state: State, seconds: float, *, trouble: str) -> Observation:
    assert not isinstance(state, Unknown)
    primary = Pods("v1", 1, 1, 1, 1)
    canary = Pods("v2", 1, 0, 0, state.rollout.order, trouble)
    route = ObservedRoute(state.rollout.route_order, 0)
    return Observation(START + dt.timedelta(seconds=seconds), primary, canary, route)


def moving() -> State:
    state: State = Unknown()
    spec = Spec(deadline=dt.timedelta(minutes=1))
    state, _ = told(state, messages.Request("shop", spec, version("v1"), 1), 0)
    for second in (1, 2):
        observed = dataclasses.replace(seen(state, second, trouble=""), canary=None)
        state, _ = told(state, messages.Observed(observed), second)
    state, _ = told(state, messages.Request("shop", spec, version("v2"), 1), 3)
    assert isinstance(state, Shifting)
    return state


def test_trouble_stands_in_the_sentence_and_in_the_published_status() -> None:
    given = moving()

    then, out = told(given, messages.Observed(seen(given, 4, trouble=CRASHED)), 4)

    assert view.sentence(then).endswith(f"0 of 1 canary pods ready ({CRASHED})")
    (published,) = [each for each in out if isinstance(each, messages.PublishStatus)]
    assert CRASHED in published.status.message


def test_the_same_trouble_again_is_no_news() -> None:
    given = moving()
    given, _ = told(given, messages.Observed(seen(given, 4, trouble=CRASHED)), 4)

    _, out = told(given, messages.Observed(seen(given, 5, trouble=CRASHED)), 5)

    assert out == []


def test_a_canary_that_never_got_ready_is_rolled_back_with_its_trouble() -> None:
    given = moving()
    given, _ = told(given, messages.Observed(seen(given, 4, trouble=CRASHED)), 4)

    _, out = told(given, messages.Tick(), 64)

    (home,) = [each for each in out if isinstance(each, RollbackStarted)]
    assert home.why == f"0 of 1 canary pods ready ({CRASHED}) after 1 min"
