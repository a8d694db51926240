"""Pages of a list: bounded by count and by bytes, never empty for the size of a row."""

import time

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.engine import visibility
from fairlead.engine.store import protocol
from tests.engines import Home, name

NOW = 1_000_000


def fill(session: protocol.Session, sizes: list[int]) -> None:
    """One stream with events of about these sizes, and as many streams, effects and rows."""
    data = ['"' + "x" * size + '"' for size in sizes]
    streams = [
        protocol.NewStream(n, f"fan/{n}", "fan", 1, "Cargo", 1, text, None)
        for n, text in enumerate(data, 1)
    ]
    events = [protocol.NewEvent(1, n, "Loaded", 1, text, "") for n, text in enumerate(data, 1)]
    effects = [
        protocol.NewEffect(1, n, 0, "Carry", 1, text, False, None) for n, text in enumerate(data, 1)
    ]
    with session.transaction() as transaction:
        transaction.load(protocol.Needed([]))
        transaction.write(protocol.Writes(NOW, streams=streams, events=events, effects=effects))
    for n, text in enumerate(data, 1):
        row = msgspec.json.encode([[f"{n:09}", text]]).decode()
        session.rows("put_projected", name="p", rows=row)
    # The feed stops behind the oldest transaction of the whole server, which other tests use too.
    while len(session.rows("feed", tx=0, position=0, limit=99)) < len(sizes):
        time.sleep(0.01)


LISTS: dict[str, dict[str, object]] = {
    "feed": {"tx": 0, "position": 0},
    "stream_events": {"name": "fan/1", "after": 0},
    "list_streams": {"machine": None, "ended": None, "before": None, "scope": ""},
    "list_effects": {"dead": None, "name": None, "stream": 0, "seq": 0, "n": 0},
    "list_projected": {"name": "p", "after": ""},
}


@pytest.mark.parametrize("query", LISTS)
def test_a_page_ends_by_its_count_by_its_bytes_or_with_the_list(
    session: protocol.Session, query: str
) -> None:
    fill(session, [1000] * 6)

    by_count = session.page(query, 2, 1_000_000, **LISTS[query])
    by_bytes = session.page(query, 100, 2500, **LISTS[query])
    at_least_one = session.page(query, 100, 1, **LISTS[query])
    everything = session.page(query, 6, 1_000_000, **LISTS[query])

    assert [(len(rows), more) for rows, more in (by_count, by_bytes, at_least_one)] == [
        (2, True),
        (3, True),
        (1, True),
    ]
    assert everything == (session.rows(query, **LISTS[query], limit=9), False)


@pytest.mark.parametrize("query", LISTS)
def test_a_list_without_rows_has_an_empty_page(session: protocol.Session, query: str) -> None:
    assert session.page(query, 9, 1000, **LISTS[query]) == ([], False)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    sizes=st.lists(st.integers(0, 3000), max_size=12),
    limit=st.integers(1, 8),
    most_bytes=st.integers(1, 6000),
)
def test_pages_one_after_another_are_the_whole_list(
    home: Home, sizes: list[int], limit: int, most_bytes: int
) -> None:
    session = home.store().open()
    for table in ("streams", "events", "outbox", "projected"):
        home.sql(f"DELETE FROM {table}")  # noqa: S608 - our own tables
    fill(session, sizes)
    seen: list[int] = []
    after, more = 0, True

    while more:
        values = {"name": "fan/1", "after": after}
        rows, more = session.page("stream_events", limit, most_bytes, **values)
        seen += [row[1] for row in rows]
        assert len(rows) <= limit
        assert sum(len(row[4]) for row in rows[:-1]) <= most_bytes
        after = seen[-1] if seen else 0

    session.close()
    assert seen == list(range(1, len(sizes) + 1))


def test_views_know_whether_more_follows(
    session: protocol.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visibility, "MOST_BYTES", 2500)
    fill(session, [1000] * 6)

    first = visibility.events(session, name("fan/1"))
    rest = visibility.events(session, name("fan/1"), after=first[-1].seq)

    assert ([one.seq for one in first], first.more) == ([1, 2, 3], True)
    assert ([one.seq for one in rest], rest.more) == ([4, 5, 6], False)
