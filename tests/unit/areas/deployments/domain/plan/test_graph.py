"""A plan that could never end is refused before anything runs."""

import pytest

from fairlead import errors
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.plan.graph import Branch, Plan, Step, check, last, ready


def test_a_circle_is_refused_with_its_steps() -> None:
    plan = Plan("full", (Step("A", "x", ("B",)), Step("B", "x", ("C",)), Step("C", "x", ("A",))))

    with pytest.raises(errors.Rejected, match="wait for each other: A -> B -> C -> A"):
        check(plan)


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ((Step("A", "x"), Step("A", "x")), "two steps of one name: A"),
        ((Step("A", "x", ("B",)),), "one that is not there: B"),
    ],
)
def test_a_plan_that_names_no_or_two_steps_is_refused(steps: tuple[Step, ...], told: str) -> None:
    with pytest.raises(errors.Rejected, match=told):
        check(Plan("full", steps))


def test_a_branch_is_checked_with_what_comes_before_it() -> None:
    branch = Branch(Impact.NOP, (Step("A", "x", ("B",)),))

    with pytest.raises(errors.Rejected, match="one that is not there: B"):
        check(Plan("full", (Step("C", "x"),), (branch,)))


def test_steps_are_ready_once_all_they_wait_for_is_done() -> None:
    steps = (Step("A", "x"), Step("B", "x", ("A",)), Step("C", "x", ("A", "B")))

    assert [each.name for each in ready(steps, ())] == ["A"]
    assert [each.name for each in ready(steps[1:], ("A",))] == ["B"]
    assert last(steps) == ("C",)
