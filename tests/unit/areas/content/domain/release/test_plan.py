"""How a share grows: by hand, by the same each time, by a factor; never faster than clients ask."""

import datetime as dt
from dataclasses import replace

import pytest

from fairlead import errors
from fairlead.areas.content.domain.population import Share
from fairlead.areas.content.domain.release.plan import Plan, Step, exponential, linear
from fairlead.checks.spec import Check, When

HOURS = dt.timedelta(hours=2)
CHECK = Check("archives", "x", low=1)


def test_linear_growth_is_the_same_share_more_each_time() -> None:
    shares = [step.share for step in linear(Share(2000), HOURS)]

    assert shares == [2000, 4000, 6000, 8000, 10_000]
    assert [step.share for step in linear(Share(3000), HOURS, Share(5000))] == [3000, 5000]


def test_exponential_growth_is_a_factor_each_time() -> None:
    shares = [step.share for step in exponential(Share(100), 2, HOURS, Share(1000))]

    assert shares == [100, 200, 400, 800, 1000]


@pytest.mark.requirement("content 23")
def test_a_bake_shorter_than_the_poll_interval_is_refused() -> None:
    short = Step(Share(100), HOURS - dt.timedelta(seconds=1))

    with pytest.raises(errors.Rejected, match=r"7199 s, they wait 7200 s"):
        Plan((short,))
    assert Plan((short,), poll_interval=dt.timedelta(hours=1)).steps == (short,)


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ((), "0 steps"),
        ((Step(Share(0), HOURS),), "share of a step: 0 %"),
        ((Step(Share(200), HOURS), Step(Share(200), HOURS)), "does not rise: 2 %, then 2 %"),
    ],
)
def test_steps_that_lead_nowhere_are_refused(steps: tuple[Step, ...], told: str) -> None:
    with pytest.raises(errors.Rejected, match=told):
        Plan(steps)


def test_growth_that_does_not_grow_is_refused() -> None:
    with pytest.raises(errors.Rejected):
        linear(Share(0), HOURS)
    with pytest.raises(errors.Rejected):
        exponential(Share(0), 2, HOURS)
    with pytest.raises(errors.Rejected):
        exponential(Share(100), 1, HOURS)


@pytest.mark.parametrize(
    "checks", [(CHECK, CHECK), (replace(CHECK, when=When.START),)], ids=["twice", "start"]
)
def test_checks_that_cannot_be_told_apart_or_come_too_soon_are_refused(
    checks: tuple[Check, ...],
) -> None:
    with pytest.raises(errors.Rejected):
        Plan((Step(Share(100), HOURS),), checks=checks)


def test_the_last_step_without_a_check_that_counts_asks_a_person() -> None:
    steps = (Step(Share(100), HOURS), Step(Share(200), HOURS))
    last = replace(CHECK, when=When.PROMOTION)

    assert [Plan(steps).asks_person(step) for step in (0, 1)] == [False, True]
    assert not Plan(steps, checks=(last,)).asks_person(1)
    assert Plan(steps, checks=(replace(last, dry_run=True),)).asks_person(1)
    assert Plan(steps, checks=(last,)).at(0) == ()
