"""What a rollout shows of itself: one sentence, and conditions in the words that tools know."""

import dataclasses
import datetime as dt

from fairlead.analysis.limits import Limits
from fairlead.areas.rollouts.domain import messages, states, view
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.checks.spec import Check
from fairlead.values import Percent
from tests.unit.areas.rollouts.domain.stories import ended, live
from tests.unit.areas.rollouts.domain.world import BAD, Habits, World


def conditions(world: World) -> dict[str, tuple[str, str]]:
    return {each.type: (each.status, each.reason) for each in view.conditions(world.state())}


def test_a_stable_rollout_is_ready_and_nothing_else() -> None:
    world = live()
    ended(world)

    assert view.sentence(world.state()).startswith("v2 has had all traffic since ")
    assert conditions(world) == {
        "Ready": ("True", "Stable"),
        "Progressing": ("False", "Stable"),
        "Stalled": ("False", "Stable"),
        "Degraded": ("False", "AsDesired"),
    }


def test_a_rollout_is_found_by_what_a_person_asks_for() -> None:
    world = live()
    world.run_until(states.Analysing)
    running = view.attributes(world.state())
    world.send(messages.Pause("ada", "lunch"))

    assert running == {
        "phase": "Progressing",
        "namespace": "",
        "stable": "v1",
        "canary": "v2",
        "waiting": False,
    }
    assert view.attributes(world.state()) == {**running, "phase": "Paused", "waiting": True}
    assert view.attributes(states.Unknown()) == {"phase": "Unknown"}


def test_a_running_rollout_progresses_and_is_not_known_to_be_ready() -> None:
    world = live()
    world.run_until(states.Analysing)

    assert view.sentence(world.state()).startswith("at 10 % since ")
    assert conditions(world)["Ready"] == ("Unknown", "Progressing")
    assert conditions(world)["Progressing"] == ("True", "Progressing")


def test_pods_that_have_traffic_are_not_said_to_be_none() -> None:
    """A step begins with a request for its pods, and those of the step before serve on."""
    world = live()
    said = set()

    def second_step() -> bool:
        state = world.state()
        if isinstance(state, states.Shifting) and state.step == 1:
            said.add(view.sentence(state).partition(": ")[2])
        return isinstance(state, states.Analysing) and state.step == 1

    world.run(second_step)

    assert said >= {"1 of 2 canary pods ready"}
    assert not {each for each in said if each.startswith("0 of ")}


def test_a_paused_rollout_does_not_progress_and_says_who_paused_it() -> None:
    world = live()
    world.run_until(states.Analysing)
    world.send(messages.Pause("ada", "lunch"))

    assert view.sentence(world.state()).endswith("; paused by ada: lunch")
    assert conditions(world)["Progressing"] == ("False", "Paused")


def test_a_pause_between_two_runs_is_said_of_the_next_one() -> None:
    world = live()
    ended(world)
    world.send(messages.Pause("ada", "lunch"))

    assert view.sentence(world.state()).endswith("; the next rollout is paused by ada: lunch")


def test_a_pause_without_a_reason_is_said_once() -> None:
    world = live()
    world.run_until(states.Analysing)
    world.send(messages.Pause("ada"))

    said = view.sentence(world.state())
    notes = [each for each in world.effects if isinstance(each, messages.Notify)]
    assert said.endswith("; paused by ada")
    assert said.count("paused") == 1
    assert notes[-1].text == "paused by ada"


def test_a_rolled_back_version_leaves_the_rollout_degraded_with_its_reason() -> None:
    world = live(habits=Habits(verdicts={"v2": BAD}))
    world.run_until(states.RollingBack)
    rolling_back = view.sentence(world.state())
    why = ended(world).why

    assert rolling_back.startswith("rolling back since ")
    assert view.sentence(world.state()).endswith(f"; v2 was rolled back: {why}")
    assert conditions(world)["Ready"] == ("False", "RolledBack")
    assert conditions(world)["Degraded"] == ("True", "RolledBack")


ENDLESS = Check("errors", success="result < 1", limits=Limits(interval=dt.timedelta(seconds=30)))
SLOW = Spec(Strategy(steps=(Pace(Percent(10), dt.timedelta(minutes=5), approve=True),)), (ENDLESS,))


def test_a_time_that_is_over_is_not_waited_for_any_more() -> None:
    world = live(SLOW)
    world.run_until(states.Analysing)
    world.run(longest=200)
    before = view.sentence(world.state(), world.now)
    world.run(longest=600)

    assert before.endswith("good so far, holding until 12:05 at least, waiting for approval")
    assert view.sentence(world.state(), world.now).endswith(
        ", 1 of 1 checks good so far, waiting for approval"
    )


def test_a_check_without_a_count_is_waited_for_until_its_first_measurement() -> None:
    world = live(SLOW)
    world.run_until(states.Analysing)

    assert "waiting for 1 of 1 checks" in view.sentence(world.state(), world.now)


def test_a_step_without_a_hold_named_no_time_that_could_pass() -> None:
    """It was reached a moment after what was observed, as that is dated before anyone looks."""
    world = live(Spec(Strategy(steps=(Pace(Percent(10), approve=True),))))
    state = world.run_until(states.Analysing)
    seen = dataclasses.replace(state.rollout.observed, at=state.rollout.since - dt.timedelta(0, 1))
    reached = dataclasses.replace(state, rollout=dataclasses.replace(state.rollout, observed=seen))

    assert not view.is_outdated(reached, world.now + dt.timedelta(hours=1))


def test_what_is_published_leaves_out_what_is_over_then() -> None:
    world = live(SLOW)
    world.run_until(states.Analysing)
    world.run(longest=600)
    world.send(messages.Pause("ada", "lunch"))

    published = [each for each in world.effects if isinstance(each, messages.PublishStatus)]

    assert "holding until" not in published[-1].status.message


COUNTED = Check("lag", success="result < 1", limits=Limits(count=3, interval=dt.timedelta(0, 30)))


def test_an_object_is_told_what_is_no_longer_waited_for() -> None:
    """Nobody comes to approve, so nothing else happens that would be published."""
    world = live(dataclasses.replace(SLOW, checks=(COUNTED,)))
    world.run_until(states.Analysing)
    world.run(longest=3600)

    published = [each for each in world.effects if isinstance(each, messages.PublishStatus)]

    assert [each.status.message.partition(", ")[2] for each in published[-3:]] == [
        "waiting for 1 of 1 checks, holding until 12:05 at least, waiting for approval",
        "1 of 1 checks passed, holding until 12:05 at least, waiting for approval",
        "1 of 1 checks passed, waiting for approval",
    ]
