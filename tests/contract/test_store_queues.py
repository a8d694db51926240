"""Queues, the same on every store: a claim reads only what its worker can perform."""

import json
import re
from typing import Any

import psycopg
import pytest

from fairlead.engine.store import postgres, protocol, queries
from tests.contract.test_store import FENCE, NOW, effect, load, stream, timer, write
from tests.engines import Home

MINE = "kubernetes@mine"
OTHER = "kubernetes@other"


def born(number: int, queue: str, machine: str = "fan") -> protocol.NewStream:
    name = f"{machine}/{number}"
    return protocol.NewStream(number, name, machine, 1, "Cargo", 1, "{}", None, queue)


def newer(number: int) -> protocol.NewEffect:
    return protocol.NewEffect(number, 1, 0, "Carry", 2, "{}", False, None)


def claim(session: protocol.Session, *serves: tuple[Any, ...], limit: int = 99) -> Any:
    rows = session.rows(
        "claim_effects", fence=FENCE, serves=json.dumps(serves), now=NOW, limit=limit
    )
    return sorted((row[0], row[7]) for row in rows)


def queue_of(session: protocol.Session, number: int) -> str:
    place = {"stream": 0, "seq": 0, "n": 0}
    rows = session.rows("list_effects", dead=None, name=f"fan/{number}", **place, limit=9)
    return str(rows[0][12])


def test_a_stream_keeps_the_queue_it_was_born_in(session: protocol.Session) -> None:
    write(session, streams=[born(1, MINE), stream(2)])

    loaded = load(session, "fan/1", "fan/2")

    assert sorted(row.queue for row in loaded.streams) == ["", MINE]


def test_a_claim_takes_its_own_queue_machine_type_and_version_only(
    session: protocol.Session,
) -> None:
    streams = [born(1, MINE), born(2, OTHER), born(3, ""), born(4, MINE, "lane"), born(5, MINE)]
    write(session, streams=streams, effects=[*(effect(number) for number in range(1, 5)), newer(5)])

    assert claim(session, (MINE, "fan", "Fetch", 1)) == []
    assert claim(session, (MINE, "fan", "Carry", 1), ("", "lane", "Carry", 1)) == [(1, MINE)]
    assert claim(session, ("", "fan", "Carry", 1)) == [(3, "")]
    assert claim(session, (MINE, "fan", "Carry", 1), (MINE, "fan", "Carry", 2)) == [(5, MINE)]
    assert claim(session) == []


def test_a_claim_over_several_queues_takes_the_oldest_within_its_limit(
    session: protocol.Session,
) -> None:
    write(session, streams=[born(1, MINE), born(2, OTHER)], effects=[effect(1), effect(2)])
    late = protocol.Postponement(1, 1, 0, FENCE, NOW - 5, None, "busy")
    both = [(MINE, "fan", "Carry", 1), (OTHER, "fan", "Carry", 1)]
    claim(session, both[0])
    write(session, postponed=[late])

    assert claim(session, *both, limit=1) == [(1, MINE)]
    assert claim(session, *both, limit=1) == [(2, OTHER)]


def test_the_next_effect_is_the_next_that_is_served(session: protocol.Session) -> None:
    write(session, streams=[born(1, MINE)], effects=[effect(1)])

    def due(queue: str) -> list[tuple[Any, ...]]:
        return session.rows("next_effect", serves=json.dumps([(queue, "fan", "Carry", 1)]))

    assert (due(MINE), due(OTHER)) == ([(NOW,)], [(None,)])
    assert session.rows("next_effect", serves="[]") == [(None,)]


def test_a_moved_stream_takes_its_effects_along_in_one_commit(session: protocol.Session) -> None:
    write(session, streams=[born(1, OTHER), born(2, OTHER)], effects=[effect(1), effect(2)])
    values = {"names": ["fan/1", "fan/none"], "queue": MINE}

    moved = session.script([("move_streams", values), ("move_effects", values)])

    assert moved == [1, 1]
    assert (queue_of(session, 1), queue_of(session, 2)) == (MINE, OTHER)
    assert claim(session, (MINE, "fan", "Carry", 1)) == [(1, MINE)]


def test_a_batch_that_was_loaded_before_a_move_leaves_nothing_behind(postgres_home: Home) -> None:
    """SQLite has one writer at a time, so there the one waits for the other."""
    one, two = postgres_home.store().open(), postgres_home.store().open()
    write(one, streams=[born(1, OTHER)])
    values = {"names": ["fan/1"], "queue": MINE}

    def decided(*, careful: bool, moved: bool = False) -> None:
        with one.transaction() as transaction:
            (row,) = transaction.load(protocol.Needed(["fan/1"], careful=careful)).streams
            if moved:
                two.script([("move_streams", values), ("move_effects", values)])
            state = protocol.NewState(1, row.version, 2, "Cargo", 1, "{}", None)
            transaction.write(protocol.Writes(NOW, states=[state], effects=[effect(1, seq=2)]))

    with pytest.raises(protocol.Lost):
        decided(careful=False, moved=True)
    decided(careful=True)

    assert queue_of(two, 1) == MINE
    one.close()
    two.close()


def test_an_effect_without_its_stream_is_refused(session: protocol.Session) -> None:
    with pytest.raises(protocol.Lost):
        write(session, effects=[effect(1)])


def test_waiting_effects_are_counted_by_what_they_take(session: protocol.Session) -> None:
    streams = [born(number, queue) for number, queue in enumerate((MINE, MINE, OTHER), 1)]
    write(session, streams=streams, effects=[effect(1), effect(2), effect(3), effect(1, n=1)])
    claim(session, (OTHER, "fan", "Carry", 1))

    assert session.rows("waiting_effects") == [(MINE, "fan", "Carry", 1, 3, NOW)]


@pytest.mark.parametrize(
    ("knows", "taken"),
    [
        ('{"fan Ring": 1, "fan state Cargo": 1}', 1),
        ('{"fan Ring": 2, "fan state Cargo": 2}', 1),
        ('{"fan Ring": 0, "fan state Cargo": 1}', 0),
        ('{"fan Ring": 1, "fan state Cargo": 0}', 0),
        ('{"fan Ring": 1, "fan state Count": 1}', 0),
        ('{"fan Wind": 1, "bell Ring": 1, "fan state Cargo": 1}', 0),
        ("{}", 0),
    ],
)
def test_a_timer_that_its_claimer_cannot_read_is_left_alone(
    session: protocol.Session, knows: str, taken: int
) -> None:
    write(session, streams=[born(1, MINE)], timers=[timer(1)])

    due = session.rows("next_known_timer", knows=knows)
    rows = session.rows("claim_timers", fence=FENCE, knows=knows, now=NOW, limit=9)

    assert (len(due), len(rows)) == (taken, taken)


@pytest.mark.parametrize(
    ("reads", "taken"), [(None, 1), ({"Cargo": 1}, 1), ({"Cargo": 0}, 0), ({"Count": 1}, 0)]
)
def test_an_effect_whose_stream_its_claimer_cannot_read_is_left_alone(
    session: protocol.Session, reads: dict[str, int] | None, taken: int
) -> None:
    write(session, streams=[born(1, MINE)], effects=[effect(1)])
    serves = json.dumps([[MINE, "fan", "Carry", 1, None, [], reads]])

    ((due,),) = session.rows("next_effect", serves=serves)
    rows = session.rows("claim_effects", fence=FENCE, serves=serves, now=NOW, limit=9)

    assert (due is not None, len(rows)) == (bool(taken), taken)


@pytest.mark.parametrize("query", ["claim_effects", "next_effect"])
def test_a_claim_finds_its_rows_by_the_index_alone(home: Home, query: str) -> None:
    """Rows of others are then not even read: equality on all that comes before the time."""
    plan = explained(home, queries.load(home.kind)[query])

    by_index = {
        "sqlite": "outbox_waiting (queue=? AND machine=? AND type=? AND version=?",
        "postgres": "outbox_waiting on outbox o Index Cond: ((queue = (s.key ->> 0)) AND (machine "
        "= (s.key ->> 1)) AND (type = (s.key ->> 2)) AND (version = ((s.key ->> 3))::bigint)",
    }
    assert by_index[home.kind] in plan
    assert re.search(r"SCAN (o|outbox)\b|Seq Scan on outbox", plan) is None


def explained(home: Home, statement: str) -> str:
    values = {"fence": str(FENCE), "now": str(NOW), "limit": "9", "serves": "'[]'"}
    for word, value in values.items():
        statement = statement.replace(f":{word}", value).replace(f"%({word})s", value)
    if home.kind == "sqlite":
        return " ".join(str(row[3]) for row in home.sql(f"EXPLAIN QUERY PLAN {statement}"))
    with psycopg.connect(home.address) as connection:
        # As a writer's session has it, whose plans are made for a table of any size.
        for setting in postgres._BY_KEY.items():
            connection.execute("SELECT set_config(%s, %s, false)", setting)
        rows = connection.execute(f"EXPLAIN (COSTS OFF) {statement}".encode()).fetchall()
    return " ".join(" ".join(str(row[0]).split()) for row in rows)
