"""How long a resource waits: by class, never all at once, never less than it was asked to."""

import datetime as dt
from dataclasses import replace

import pytest

from fairlead.areas.resources.domain.reconcile.messages import (
    Apply,
    ErrorClass,
    Failure,
    Refresh,
)
from fairlead.areas.resources.domain.reconcile.state import Phase
from tests.unit.areas.resources.domain.reconcile import samples
from tests.unit.areas.resources.domain.reconcile.samples import (
    DECLARED,
    HOUR,
    SAME,
    SECOND,
    THROTTLED,
)


@pytest.mark.parametrize(
    ("kind", "first", "longest"),
    [
        (ErrorClass.TRANSIENT, 2 * SECOND, dt.timedelta(minutes=2)),
        (ErrorClass.BUSY, 5 * SECOND, dt.timedelta(minutes=3)),
        (ErrorClass.REFUSED, dt.timedelta(minutes=10), 6 * HOUR),
    ],
)
def test_each_class_of_errors_has_its_pace(
    kind: ErrorClass, first: dt.timedelta, longest: dt.timedelta
) -> None:
    story, waits = samples.reading(), []
    for _ in range(12):
        story.failed(Failure(kind, "no"))
        assert story.state.until is not None
        waits.append(story.state.until - story.now)
        story.woken()

    assert first * 0.75 <= waits[0] <= first * 1.25
    assert longest * 0.75 <= waits[-1] <= longest * 1.25


def test_what_the_api_asks_for_is_waited_for_at_least() -> None:
    story = samples.writing().failed(THROTTLED)

    assert story.state.until is not None
    assert story.state.until - story.now >= 90 * SECOND


@pytest.mark.requirement("resources R15")
def test_it_is_looked_at_again_and_again_but_not_all_at_once() -> None:
    declared = [replace(DECLARED, id=f"{DECLARED.id}{number}") for number in range(200)]
    stories = [samples.reading(Apply(each)).seen(SAME) for each in declared]
    waits = [each.state.until - each.now for each in stories if each.state.until is not None]

    assert len(waits) == 200
    assert all(0.75 * HOUR <= each <= 1.25 * HOUR for each in waits)
    assert max(waits) - min(waits) > 0.4 * HOUR
    never = samples.reading(Apply(replace(DECLARED, refresh=None))).seen(SAME)
    assert (never.timer, never.state.phase) == (None, Phase.READY)


@pytest.mark.parametrize("kind", ErrorClass)
def test_whoever_knows_that_it_was_mended_need_not_wait_unless_the_api_asked_for_it(
    kind: ErrorClass,
) -> None:
    story = samples.writing().failed(Failure(kind, "no")).tell(Refresh())

    reads = kind is not ErrorClass.THROTTLED
    assert (story.state.phase is Phase.READING) == reads
    assert (story.timer is None) == reads
