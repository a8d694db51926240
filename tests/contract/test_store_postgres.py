"""What only several sessions at once can show: locks, skipped rows, and the order of commits."""

import contextlib
import threading
from collections.abc import Iterator

import psycopg
import pytest

from fairlead import errors
from fairlead.engine import messages, visibility
from fairlead.engine.store import postgres, protocol
from tests.contract.test_store import (
    FENCE,
    KNOWS,
    NOW,
    claimed,
    effect,
    event,
    load,
    state_of,
    stream,
    timer,
    write,
)
from tests.engines import PATIENCE, Home, fed, until

Pair = tuple[protocol.Session, protocol.Session]


@pytest.fixture
def sessions(postgres_home: Home) -> Iterator[Pair]:
    """Two processes."""
    first, second = postgres_home.store().open(), postgres_home.store().open()
    write(first, streams=[stream(1), stream(2)], events=[event(1), event(2)])
    yield first, second
    first.close()
    second.close()


def test_a_careful_load_waits_for_the_other_and_sees_what_it_left(sessions: Pair) -> None:
    first, second = sessions
    seen: list[int] = []
    started = threading.Event()

    def wait() -> None:
        started.set()
        seen.append(load(second, "fan/1", careful=True).streams[0].version)

    with first.transaction() as transaction:
        transaction.load(protocol.Needed(["fan/1"], careful=True))
        waiting = threading.Thread(target=wait)
        waiting.start()
        started.wait()
        assert seen == []
        transaction.write(protocol.Writes(NOW, states=[state_of(1, 1, 2)], events=[event(1, 2)]))
    waiting.join(PATIENCE)

    assert seen == [2]


def test_a_stream_found_on_the_way_is_not_waited_for(sessions: Pair) -> None:
    """Each has one and wants the other's: whoever waits closes the circle."""
    first, second = sessions

    def needs_both() -> None:
        with second.transaction() as other:
            other.load(protocol.Needed(["fan/2"], careful=True))
            other.more(["fan/1"])

    with first.transaction() as transaction:
        transaction.load(protocol.Needed(["fan/1"], careful=True))
        with pytest.raises(protocol.Lost):
            needs_both()


def test_without_care_the_second_to_commit_loses(sessions: Pair) -> None:
    first, second = sessions

    def overtaken() -> None:
        with second.transaction() as late:
            late.load(protocol.Needed(["fan/1"]))
            write(first, states=[state_of(1, 1, 2)], events=[event(1, 2)])
            late.write(protocol.Writes(NOW, states=[state_of(1, 1, 2)], events=[event(1, 2)]))

    with pytest.raises(protocol.Lost):
        overtaken()

    assert load(second, "fan/1").streams[0].version == 2


def test_a_statement_whose_preparation_was_cut_short_is_prepared_again(sessions: Pair) -> None:
    """A batch is lost in the moment when its later statements would be prepared."""
    _, second = sessions

    def write_seq(seq: int, *, seen: int) -> None:
        with second.transaction() as transaction:
            transaction.load(protocol.Needed(["fan/1"]))
            states, events = [state_of(1, seen, seq)], [event(1, seq)]
            transaction.write(protocol.Writes(NOW, states=states, events=events))

    for seq, seen in [(9, 8), (9, 8), (2, 1), (3, 2), (9, 8)]:
        with contextlib.suppress(protocol.Lost):
            write_seq(seq, seen=seen)

    write_seq(4, seen=3)
    assert load(second, "fan/1").streams[0].version == 4


def test_a_careful_look_at_a_hold_keeps_it_from_being_freed_meanwhile(sessions: Pair) -> None:
    first, second = sessions
    ((fence, _),) = first.rows("register_worker", name="a", now=0, lease=50, serves="[]")
    write(first, effects=[effect(1, owner=fence)])
    hold, freed = messages.Hold(1, 1, 0, fence), list[list[int]]()
    freeing = threading.Thread(
        target=lambda: freed.append(second.script([("free_effects", {"fences": [fence]})]))
    )

    with first.transaction() as transaction:
        loaded = transaction.load(protocol.Needed(["fan/1"], settles=[hold], careful=True))
        freeing.start()
        assert loaded.held == frozenset({hold})
        transaction.write(protocol.Writes(NOW, settled=[hold]))
    freeing.join(PATIENCE)

    assert freed == [[0]]


def test_two_that_claim_at_once_get_different_effects(sessions: Pair, postgres_home: Home) -> None:
    first, second = sessions
    write(first, effects=[effect(1, n=n) for n in range(4)], timers=[timer(1), timer(2)])
    with psycopg.connect(postgres_home.address) as held:
        held.execute("SELECT 1 FROM outbox WHERE n < 2 FOR UPDATE")
        held.execute("SELECT 1 FROM timers WHERE stream = 1 FOR UPDATE")

        effects = claimed(second)
        timers = second.rows("claim_timers", fence=FENCE, knows=KNOWS, now=NOW, limit=9)

    assert effects == [(1, 1, 2), (1, 1, 3)]
    assert [row[0] for row in timers] == [2]


async def test_the_feed_keeps_a_streams_events_in_order_where_an_older_transaction_came_later(
    sessions: Pair,
) -> None:
    """Its number was drawn with its first lock; the feed goes by numbers."""
    first, second = sessions

    with second.transaction() as older:
        older.load(protocol.Needed(["fan/1"], careful=True))
        write(first, states=[state_of(2, 1, 2)], events=[event(2, 2)])
        older.more(["fan/2"])
        both = [event(2, 3), event(2, 4)]
        older.write(protocol.Writes(NOW, states=[state_of(2, 2, 4)], events=both))

    found = await fed(first, 5)
    assert [each.seq for each in found if each.seq > 1] == [2, 3, 4]


async def test_the_feed_never_skips_an_event_that_commits_late(
    sessions: Pair, postgres_home: Home
) -> None:
    """Drawn first, committed last: a reader that went by position would miss it for ever."""
    first, second = sessions
    seen: list[tuple[str, int]] = []
    place = visibility.Place()

    def read() -> list[tuple[str, int]]:
        nonlocal place
        found = visibility.feed(second, place)
        place = found[-1].place if found else place
        seen.extend((each.stream, each.seq) for each in found)
        return seen

    with psycopg.connect(postgres_home.address) as late:
        late.execute(
            "INSERT INTO events (stream, seq, type, version, data, cause, at)"
            " VALUES (1, 2, 'Loaded', 1, '{}', 'late', 0)"
        )
        write(first, states=[state_of(2, 1, 2)], events=[event(2, 2)])
        assert ("fan/2", 2) not in read()
        late.commit()

    async def all_seen() -> bool:
        return len(read()) == 4

    await until(all_seen)
    assert seen == [("fan/1", 1), ("fan/2", 1), ("fan/1", 2), ("fan/2", 2)]
    assert visibility.feed_end(second) == place


async def test_a_dump_restored_into_a_younger_cluster_is_adopted(
    sessions: Pair, postgres_home: Home
) -> None:
    """Its transaction numbers lie in our future: the feed would hide them, and show them twice."""
    first, _ = sessions
    first.rows("start_projection", name="p", version=1)
    first.rows("put_projected", name="p", rows='[["k","{}"]]')
    postgres_home.sql("UPDATE events SET tx = (tx::text::bigint + 5000000000)::text::xid8")
    postgres_home.sql("UPDATE projections SET tx = 5000000000, position = 2")
    assert visibility.feed(first, visibility.Place()) == []

    assert postgres_home.store().migrate() == []

    found = await fed(first, 2)
    assert [(each.stream, each.seq) for each in found] == [("fan/1", 1), ("fan/2", 1)]
    assert first.rows("get_projection", name="p") == [(1, 0, -1)]
    assert first.rows("list_projected", name="p", after="", limit=9) == []
    write(first, states=[state_of(2, 1, 2)], events=[event(2, 2)])

    async def goes_on() -> bool:
        later = visibility.feed(first, found[-1].place)
        return [(each.stream, each.seq) for each in later] == [("fan/2", 2)]

    await until(goes_on)


def test_a_healthy_database_is_not_renumbered(sessions: Pair, postgres_home: Home) -> None:
    before = postgres_home.sql("SELECT tx::text FROM events ORDER BY position")

    postgres_home.store().migrate()

    assert postgres_home.sql("SELECT tx::text FROM events ORDER BY position") == before


def test_a_connection_that_breaks_is_unavailable(sessions: Pair, postgres_home: Home) -> None:
    first, second = sessions
    postgres_home.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )

    with pytest.raises(errors.Unavailable, match="did not answer"):
        first.rows("count_rows")
    with pytest.raises(errors.Unavailable), second.transaction() as transaction:
        transaction.load(protocol.Needed(["fan/1"]))


def test_tables_that_are_gone_are_unavailable_with_a_hint(postgres_url: str) -> None:
    session = postgres.PostgresStore(postgres_url).open()
    try:
        with pytest.raises(errors.Unavailable) as refused:
            session.rows("count_rows")
    finally:
        session.close()

    assert refused.value.hint == "run fairlead store migrate"


def test_a_listener_hears_what_is_left_without_an_owner_only(postgres_home: Home) -> None:
    session = postgres_home.store().open()
    listener = postgres_home.store().listen(protocol.WORK_CHANNEL)
    assert listener is not None
    try:
        write(session, streams=[stream(1)], effects=[effect(1, owner=FENCE)])
        assert not listener.wait(0.01)
        write(session, effects=[effect(1, n=1)])
        assert listener.wait(PATIENCE)
    finally:
        listener.close()
        session.close()
