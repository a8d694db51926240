"""One rollout closely: steps and checks are those of the run that is shown."""

import datetime as dt

import pytest

from fairlead import errors
from fairlead.areas.rollouts import detail, projection
from fairlead.areas.rollouts.domain import states
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.values import Percent
from tests.unit.areas.rollouts.domain import stories, world
from tests.unit.areas.rollouts.domain.world import BAD, Habits, World
from tests.unit.areas.rollouts.test_projection import views

NOW = world.START + dt.timedelta(hours=1)
OTHER = Spec(Strategy(steps=(Pace(Percent(30)),)))


def shown(told: World, run: int | None = None) -> detail.Detail:
    return detail.of(projection.follow(projection.BLANK, views(told)), NOW, run)


def steps(told: detail.Detail) -> list[tuple[int, str]]:
    return [(step.weight, step.state) for step in told.plan]


def ended(habits: Habits | None = None) -> World:
    told = stories.live(habits=habits)
    told.run_until(states.Shifting)
    told.run_until(states.Idle)
    return told


def test_a_finished_run_shows_its_own_steps_and_not_those_of_the_next() -> None:
    told = ended()
    told.want("v2", OTHER)

    assert steps(shown(told)) == [(10, "done"), (50, "done"), (100, "done")]


def test_a_run_that_was_rolled_back_shows_where() -> None:
    told = ended(Habits(verdicts={"v2": BAD}))
    told.want("v2", OTHER)

    assert steps(shown(told)) == [(10, "stopped"), (50, "unreached"), (100, "unreached")]


def test_an_earlier_run_is_shown_with_its_own_steps_and_checks() -> None:
    told = ended(Habits(verdicts={"v2": BAD}))
    told.want("v3", OTHER)
    told.run_until(states.Shifting)
    told.run_until(states.Idle)

    newest, first = shown(told), shown(told, 1)

    assert (newest.run, steps(newest)) == (2, [(30, "done"), (100, "done")])
    assert newest.checks == ()
    assert (first.run, steps(first)[0]) == (1, (10, "stopped"))
    (check,) = first.checks
    assert (check.phase, check.measured, check.step) == ("Failed", 1, 1)


def test_a_run_that_is_not_kept_is_not_found() -> None:
    with pytest.raises(errors.NotFound) as refused:
        shown(ended(), 7)

    assert (refused.value.message, refused.value.hint) == ("no such run is kept: 7", "kept runs: 1")


def test_before_the_first_run_the_steps_are_those_of_the_next() -> None:
    told = World()
    told.want("v1", stories.SPEC)
    told.run_until(states.Idle)

    assert (shown(told).run, steps(shown(told))[0]) == (None, (10, "ahead"))


def test_a_check_tells_of_its_own_step_only() -> None:
    """At the second step it has not been measured yet, however often it was at the first."""
    told = stories.live()
    told.run(lambda: isinstance(told.state(), states.Analysing) and told.state().step == 1)

    (check,) = shown(told).checks

    assert (check.phase, check.reason) == ("Waiting", "not measured yet")
    assert (check.measured, check.at, check.value) == (0, None, None)


def test_a_check_of_an_ended_run_that_was_never_asked_says_so() -> None:
    told = stories.live(habits=Habits(broken=frozenset({"v2"})))
    told.run_until(states.Shifting)
    told.run_until(states.Idle)

    (check,) = shown(told).checks

    assert (check.phase, check.reason, check.measured) == (
        "NoVerdict",
        "not measured in this run",
        0,
    )
