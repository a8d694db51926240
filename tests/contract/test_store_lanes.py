"""Ordered lanes and withdrawal, the same on every store: kept by the store itself."""

import contextlib
import json
import threading
from typing import Any

import psycopg
import pytest

from fairlead.engine import messages
from fairlead.engine.store import postgres, protocol, queries, sqlite
from tests.contract.test_store import (
    FENCE,
    NOW,
    SERVES,
    claimed,
    effect,
    event,
    load,
    state_of,
    stream,
    write,
)
from tests.contract.test_store_queues import MINE, claim
from tests.engines import Home

KEY = {"stream": 1, "seq": 1, "n": 0}


def lane(session: protocol.Session, length: int, number: int = 1) -> None:
    rows = [effect(number, n=n, in_order=True) for n in range(length)]
    write(session, streams=[stream(number, machine="lane")], effects=rows)


def hold(n: int, fence: int = FENCE) -> messages.Hold:
    return messages.Hold(1, 1, n, fence)


def withdrawal(data: str | None = None, seq: int = 9) -> protocol.Withdrawal:
    return protocol.Withdrawal(1, seq, "Carry", data)


def waiting(session: protocol.Session) -> list[tuple[int, int, int]]:
    rows = session.rows("list_effects", dead=None, name=None, stream=0, seq=0, n=0, limit=99)
    return [(row[1], row[2], row[3]) for row in rows]


def test_whoever_leaves_a_lane_lets_the_next_one_go(session: protocol.Session) -> None:
    lane(session, 4)

    assert claimed(session) == [(1, 1, 0)]
    write(session, settled=[hold(0)])
    assert claimed(session) == [(1, 1, 1)]
    write(session, postponed=[protocol.Postponement(1, 1, 1, FENCE, NOW, NOW, "dead")])
    assert claimed(session) == []
    session.rows("discard_effect", **KEY | {"n": 1})
    assert claimed(session) == [(1, 1, 2)]
    write(session, withdrawn=[withdrawal()])
    assert waiting(session) == [(1, 1, 2)]
    write(session, settled=[hold(2)])
    assert waiting(session) == []


def test_a_lane_stays_blocked_while_its_first_is_late_freed_given_back_or_moved(
    session: protocol.Session,
) -> None:
    lane(session, 2)
    claimed(session)

    write(session, postponed=[protocol.Postponement(1, 1, 0, FENCE, NOW + 5, None, "late")])
    assert claimed(session) == []
    assert claimed(session, now=NOW + 5) == [(1, 1, 0)]
    session.rows("release_effects", fence=FENCE)
    fence = registered(session)
    assert claimed(session, fence, now=NOW + 5) == [(1, 1, 0)]
    session.rows("free_effects", fences=[fence])
    values = {"names": ["lane/1"], "queue": MINE}
    session.script([("move_streams", values), ("move_effects", values)])
    late = {"fence": FENCE, "now": NOW + 5, "limit": 9}
    rows = session.rows("claim_effects", serves=json.dumps([(MINE, "lane", "Carry", 1)]), **late)
    assert [(row[2], row[6]) for row in rows] == [(0, 2)]


def test_one_in_the_middle_that_is_withdrawn_does_not_let_those_behind_it_pass(
    session: protocol.Session,
) -> None:
    lane(session, 1)
    rows = [
        protocol.NewEffect(1, 2, n, "Carry", 1, data, True, None) for n, data in enumerate("ab")
    ]
    write(session, states=[state_of(1, 1, 2)], effects=rows)

    write(session, withdrawn=[withdrawal("a")])

    assert waiting(session) == [(1, 1, 0), (1, 2, 1)]
    assert claimed(session) == [(1, 1, 0)]
    assert claimed(session) == []
    write(session, settled=[hold(0)])
    assert claimed(session) == [(1, 2, 1)]


def test_the_first_of_a_lane_that_is_added_as_the_last_leaves_is_not_blocked(
    session: protocol.Session,
) -> None:
    lane(session, 1)
    claimed(session)

    write(
        session,
        settled=[hold(0)],
        states=[state_of(1, 1, 2)],
        effects=[effect(1, 2, n, in_order=True) for n in range(2)],
    )

    assert claimed(session) == [(1, 2, 0)]
    assert claimed(session) == []


@pytest.mark.parametrize("first", ["leaves", "comes"])
def test_one_that_leaves_while_another_comes_does_not_stop_the_lane(
    postgres_home: Home, first: str
) -> None:
    """SQLite has one writer at a time, so there the one waits for the other."""
    with contextlib.closing(postgres_home.store().open()) as session:
        lane(session, 1)
        claimed(session)
        leaves = "DELETE FROM outbox WHERE stream = 1"
        comes = (
            "WITH s AS (UPDATE streams SET version = 2 WHERE id = 1 RETURNING queue, machine) "
            "INSERT INTO outbox (stream, seq, n, type, version, data, in_order, due_at, queue, "
            "machine) SELECT 1, 2, 0, 'Carry', 1, '{}', true, 1, queue, machine FROM s"
        )
        other: dict[str, dict[str, Any]] = {
            "leaves": {"states": [state_of(1, 1, 2)], "effects": [effect(1, 2, in_order=True)]},
            "comes": {"settled": [hold(0)]},
        }
        with psycopg.connect(postgres_home.address) as rival:
            rival.execute(leaves if first == "leaves" else comes)
            second = threading.Thread(target=write, args=[session], kwargs=other[first])
            second.start()
            waits = (
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            while postgres_home.sql(waits) == [(0,)]:
                pass
            rival.commit()
        second.join()

        assert claimed(session) == [(1, 2, 0)]


def test_withdrawn_is_what_nobody_holds_of_that_type_and_asked_before(
    session: protocol.Session,
) -> None:
    other = protocol.NewEffect(1, 1, 2, "Fetch", 1, "{}", False, None)
    rows = [effect(1), effect(1, n=1, owner=FENCE), other, effect(1, seq=2), effect(2)]
    write(session, streams=[stream(1), stream(2)], effects=rows)

    write(session, events=[event(1)], withdrawn=[withdrawal(seq=2)])

    assert waiting(session) == [(1, 1, 1), (1, 1, 2), (1, 2, 0), (2, 1, 0)]


def test_withdrawn_by_value_is_only_what_says_the_same(session: protocol.Session) -> None:
    rows = [
        protocol.NewEffect(1, 1, n, "Carry", 1, data, False, None) for n, data in enumerate("aba")
    ]
    write(session, streams=[stream(1)], effects=rows)

    write(session, events=[event(1)], withdrawn=[withdrawal("a")])

    assert waiting(session) == [(1, 1, 1)]


@pytest.mark.parametrize("how", ["failed", "dead", "given back", "freed"])
def test_what_was_held_when_it_was_withdrawn_is_not_tried_again(
    session: protocol.Session, how: str
) -> None:
    fence = registered(session)
    write(session, streams=[stream(1)], effects=[effect(1, owner=fence)])
    write(session, events=[event(1)], withdrawn=[withdrawal()])
    assert waiting(session) == [(1, 1, 0)]

    match how:
        case "failed":
            write(session, postponed=[protocol.Postponement(1, 1, 0, fence, NOW, None, "no")])
        case "dead":
            write(session, postponed=[protocol.Postponement(1, 1, 0, fence, NOW, NOW, "no")])
        case "given back":
            session.rows("release_effects", fence=fence)
        case _:
            session.rows("free_effects", fences=[fence])

    assert waiting(session) == []


def test_what_was_held_when_it_was_withdrawn_is_settled_as_usual(
    session: protocol.Session,
) -> None:
    write(session, streams=[stream(1)], effects=[effect(1, owner=FENCE)])
    write(session, events=[event(1)], withdrawn=[withdrawal()])

    write(session, settled=[hold(0)])

    assert waiting(session) == []


def test_a_claim_may_be_limited_by_kind_and_leave_streams_out(session: protocol.Session) -> None:
    for number in (1, 2, 3):
        write(session, streams=[stream(number)], effects=[effect(number, n=n) for n in range(3)])
    key = ("", "fan", "Carry", 1)

    assert claim(session, (*key, 2, [])) == [(1, ""), (1, "")]
    assert {number for number, _ in claim(session, (*key, 99, [1, 3]))} == {2}
    assert {number for number, _ in claim(session, key)} == {1, 3}


def test_the_newest_come_first_where_asked(session: protocol.Session) -> None:
    write(session, streams=[stream(1)], effects=[effect(1, owner=FENCE), effect(1, n=1)])
    write(session, postponed=[protocol.Postponement(1, 1, 0, FENCE, NOW + 1, None, "late")])
    asked: dict[str, Any] = {"fence": FENCE, "serves": SERVES, "now": NOW + 1, "limit": 1}

    taken = [session.rows("claim_newest", **asked)[0][2] for _ in range(2)]

    assert taken == [0, 1]


def test_a_lane_costs_the_same_however_long_it_is(home: Home) -> None:
    """Counted, not timed: the steps of SQLite's machine, the pages that PostgreSQL reads."""
    session = home.store().open()
    costs: dict[int, int] = {}
    for number, length in enumerate((20, 2000), 1):
        lane(session, length, number)
        write(session, settled=[messages.Hold(number, 1, 0, first(session, number))])
        asked = {"fence": FENCE, "serves": SERVES, "now": NOW, "limit": 256}
        costs[length] = sum(cost(session, q, **asked) for q in ("claim_effects", "next_effect"))
        load(session, f"lane/{number}")
    session.close()

    # A walk along the lane would cost a hundred times as much; pages come and go by a dozen.
    assert costs[2000] < 10 * costs[20]


def first(session: protocol.Session, number: int) -> int:
    assert (number, 1, 0) in claimed(session)
    return FENCE


def cost(session: protocol.Session, query: str, **values: Any) -> int:
    if isinstance(session, sqlite.SqliteSession):
        steps = [0]
        connection = session._connection
        connection.set_progress_handler(lambda: steps.append(0), 1)
        session.rows(query, **values)
        connection.set_progress_handler(None, 0)
        return len(steps)
    assert isinstance(session, postgres.PostgresSession)
    text = queries.load("postgres")[query]
    session._connection.set(postgres._BY_KEY)
    explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}"
    ((plan,),) = session._connection.execute(explain.encode(), values).fetchall()
    pages = plan[0]["Plan"]
    return int(pages["Shared Hit Blocks"]) + int(pages["Shared Read Blocks"])


def registered(session: protocol.Session) -> int:
    ((fence, _),) = session.rows("register_worker", name="a", now=0, lease=50, serves="[]")
    return int(fence)
