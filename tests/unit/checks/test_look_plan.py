"""How often a check will look, by its limits and the step's time."""

import dataclasses
import datetime as dt

import pytest

from fairlead.analysis.limits import Limits
from fairlead.analysis.looks import Plan
from fairlead.checks import look_plan
from fairlead.checks.spec import Check
from fairlead.checks.subject import Side
from tests.unit.checks.about import NOW, about

SECOND = dt.timedelta(seconds=1)
BASE = dataclasses.replace(about(since=NOW), weight=10, steps=3, hold=60 * SECOND)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(), Plan(parts=3, share=0.1, once=True)),
        (Limits(count=1, interval=2 * SECOND), Plan(parts=3, share=0.1, once=True)),
        (Limits(interval=6 * SECOND), Plan(samples=30, every=3, parts=3, share=0.1)),
        (Limits(count=4, interval=2 * SECOND), Plan(samples=8, every=1, parts=3, share=0.1)),
    ],
)
def test_looks_are_planned_by_the_limits_or_the_time_of_the_step(
    limits: Limits, expected: Plan
) -> None:
    check = Check("judge", limits=limits, window=2 * SECOND)

    assert look_plan.of(check, BASE) == expected


def test_a_step_shorter_than_the_fewest_samples_is_planned_for_those() -> None:
    check = Check("judge", limits=Limits(interval=2 * SECOND), window=2 * SECOND)

    assert look_plan.of(check, dataclasses.replace(BASE, hold=SECOND)).samples == 5


@pytest.mark.parametrize("weight", [0.01, 0.5, 12.5])
def test_a_part_of_a_percent_is_no_equal_part(weight: float) -> None:
    subject = dataclasses.replace(BASE, weight=weight)

    assert look_plan.of(Check("judge"), subject).share == weight / 100


@pytest.mark.parametrize(("weight", "control"), [(10, Side.BASELINE), (100, Side.PRIMARY)])
def test_a_baseline_and_the_time_before_have_as_many_requests(weight: int, control: Side) -> None:
    subject = dataclasses.replace(BASE, weight=weight, control=control)

    assert look_plan.of(Check("judge"), subject).share == 0.5
