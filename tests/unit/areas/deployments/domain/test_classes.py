"""The ladder of classes: ordered by what a change asks of the running version."""

import itertools

from fairlead.areas.deployments.domain import classes


def test_classes_are_ordered_by_how_much_they_disturb() -> None:
    ladder = (
        classes.Impact.NOP,
        classes.Impact.PARALLEL,
        classes.Impact.BEFORE,
        classes.Impact.DOWNTIME,
    )

    for lower, higher in itertools.combinations(ladder, 2):
        assert lower < higher
        assert higher > lower
        assert lower <= higher
        assert higher >= lower
    assert tuple(sorted(classes.Impact, key=lambda impact: impact.rank)) == ladder


def test_the_worst_of_several_decides() -> None:
    given = (classes.Impact.PARALLEL, classes.Impact.DOWNTIME, classes.Impact.NOP)

    assert classes.worst(given) is classes.Impact.DOWNTIME


def test_nothing_at_all_is_a_nop() -> None:
    assert classes.worst(()) is classes.Impact.NOP
