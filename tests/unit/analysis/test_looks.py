"""However often one looks, the chance of a false alarm is spent once."""

import dataclasses

import pytest

from fairlead.analysis import looks
from fairlead.analysis.looks import Plan

PLANNED = Plan(samples=30, every=3)


@pytest.mark.parametrize("spending", [looks.SERIES, looks.COUNTS])
@pytest.mark.parametrize("plan", [PLANNED, Plan(samples=5), Plan()])
def test_all_looks_together_spend_no_more_than_there_is(
    plan: Plan, spending: looks.Spending
) -> None:
    spent = sum(
        looks.look(plan, samples, 0.02, spending).chance
        for samples in range(plan.every, 3000, plan.every)
    )

    assert 0 < spent + 0.02 * spending.apart <= 0.02


def test_almost_all_is_kept_for_the_planned_end() -> None:
    early, end, late = (looks.look(PLANNED, samples, 0.02).chance for samples in (15, 30, 33))

    assert end > 0.8 * 0.02
    assert early < end / 100
    assert early < late < end


def test_what_is_judged_side_by_side_shares_the_chance() -> None:
    ten = dataclasses.replace(PLANNED, parts=10)

    alone, shared = looks.look(PLANNED, 30, 0.02), looks.look(ten, 30, 0.02)

    assert shared.chance == pytest.approx(alone.chance / 10)


def test_one_look_has_it_all_at_any_number_of_samples() -> None:
    few, many = (looks.look(looks.ONCE, samples, 0.02) for samples in (5, 500))

    assert few == many
    assert str(few) == "one look"


def test_a_look_says_where_it_stands() -> None:
    assert str(looks.look(PLANNED, 12, 0.02)) == "look 4 of 10 planned"
    assert str(looks.look(Plan(), 12, 0.02)) == "look 12, no end planned"


def test_changes_that_move_no_centre_have_their_own_part() -> None:
    taken = looks.look(PLANNED, 30, 0.02)

    assert looks.apart(taken).chance < taken.chance / 5
