"""Places for effects: a reserve for each kind, at most half of a kind for one stream."""

import itertools

import pytest

from fairlead.engine import batch, bulkheads, messages

_numbers = itertools.count()


class Slow:
    """A kind that hangs."""


class Quick:
    """A kind that does not."""


SLOW, QUICK = ("", Slow), ("", Quick)


def asked(kind: type, stream: int = 0) -> batch.PendingEffect:
    """An effect of a stream of its own, unless one is named."""
    number = next(_numbers)
    hold = messages.Hold(stream or 1000 + number, number, 0, 1)
    return batch.PendingEffect(hold, messages.StreamName("fan/a"), kind())


def bulkheads_of(places: int, **limits: int) -> bulkheads.Bulkheads:
    kinds: dict[bulkheads.Kind, int | None] = {SLOW: limits.get("slow"), QUICK: None}
    return bulkheads.Bulkheads(places, kinds)


def entered(places: bulkheads.Bulkheads, kind: type, count: int, stream: int = 0) -> int:
    return sum(places.enter(asked(kind, stream)) for _ in range(count))


def test_a_kind_that_hangs_leaves_the_others_their_own_places() -> None:
    places = bulkheads_of(16)

    assert entered(places, Slow, 99) == 12
    assert places.rooms() == {SLOW: 0, QUICK: 4}
    assert entered(places, Quick, 99) == 4


def test_one_kind_alone_has_all_places() -> None:
    places = bulkheads.Bulkheads(16, {SLOW: None})

    assert places.room(SLOW) == 16


def test_no_more_than_all_places_are_ever_taken() -> None:
    places = bulkheads_of(5)

    assert entered(places, Slow, 9) + entered(places, Quick, 9) == 5


@pytest.mark.parametrize(("limit", "taken"), [(1, 1), (3, 3), (99, 12)])
def test_a_handler_may_ask_for_fewer(limit: int, taken: int) -> None:
    places = bulkheads_of(16, slow=limit)

    assert entered(places, Slow, 99) == taken


def test_one_stream_gets_half_of_what_its_kind_can_have() -> None:
    places = bulkheads_of(16)

    assert entered(places, Slow, 99, stream=7) == 6
    assert places.busy(SLOW) == [7]
    assert places.busy(QUICK) == []


def test_leaving_tells_whether_there_is_room_anew() -> None:
    places = bulkheads_of(4)
    first, second = asked(Slow), asked(Slow)
    places.enter(first)
    places.enter(second)

    assert not places.leave(second.hold)
    entered(places, Slow, 2)
    assert places.leave(first.hold)
    assert not places.leave(first.hold)
    assert places.used() == {SLOW: 2, QUICK: 0}
