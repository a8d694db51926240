"""Leases in the store: its own clock, and what the dead held found by an index."""

import contextlib
import re
from typing import Any

import pytest

from fairlead.engine import clock
from fairlead.engine.store import postgres, postgres_connection, protocol, queries
from tests.contract.test_store import (
    FENCE,
    KNOWS,
    NOW,
    SERVES,
    effect,
    stream,
    timer,
    write,
)
from tests.engines import Home


def register(session: protocol.Session, until: int, serving: str = "[]") -> Any:
    return session.rows("register_worker", name="a", now=0, lease=until, serves=serving)


def test_a_lease_is_registered_renewed_and_lapses_for_good(session: protocol.Session) -> None:
    ((fence, at),) = register(session, 100, SERVES)
    ((other, _),) = register(session, 50)

    assert (other > fence, at) == (True, 0)
    assert session.rows("renew_worker", fence=fence, now=99, lease=101) == [(fence, 99)]
    assert session.rows("renew_worker", fence=other, now=50, lease=150) == []
    assert session.rows("live_workers", now=60) == [(fence, "a", 200, SERVES)]
    assert session.rows("lapsed_workers", now=60, ago=10) == [(other,)]


def test_what_a_lapsed_worker_held_comes_free_one_attempt_the_poorer(
    session: protocol.Session,
) -> None:
    ((lapsed, _),) = register(session, 50)
    ((living, _),) = register(session, 500)
    write(
        session,
        streams=[stream(1)],
        effects=[effect(1, n=0, owner=lapsed), effect(1, n=1, owner=living)],
        timers=[timer(1)],
    )
    session.rows("claim_timers", fence=lapsed, knows=KNOWS, now=NOW, limit=9)

    dead = {"fences": [row[0] for row in session.rows("dead_owners", now=100)]}
    freed = session.script([("free_effects", dead), ("free_timers", dead)])

    assert freed == [1, 1]
    (row,) = session.rows("claim_effects", fence=living, serves=SERVES, now=NOW, limit=9)
    assert (row[2], row[6]) == (0, 1)


def test_what_a_worker_gives_back_is_unharmed(session: protocol.Session) -> None:
    write(session, streams=[stream(1)], effects=[effect(1, owner=FENCE)])

    session.rows("release_effects", fence=FENCE)

    (row,) = session.rows("claim_effects", fence=FENCE + 1, serves=SERVES, now=NOW, limit=9)
    assert row[6] == 0


def test_leases_that_lapsed_long_ago_are_forgotten_and_their_fences_never_come_again(
    session: protocol.Session,
) -> None:
    ((fence, _),) = register(session, 50)
    session.rows("forget_workers", now=60, ago=10)

    ((later, _),) = register(session, 50)

    assert later > fence
    assert session.rows("lapsed_workers", now=100, ago=0) == [(later,)]


def test_time_in_leases_is_the_stores_own(store: protocol.Store, session: protocol.Session) -> None:
    before = clock.to_millis(store.now())

    ((fence, at),) = session.rows("register_worker", name="a", now=None, lease=5000, serves="[]")
    ((_, later),) = session.rows("renew_worker", fence=fence, now=None, lease=9000)

    assert before <= at <= later <= clock.to_millis(store.now())
    assert [row[0] for row in session.rows("live_workers", now=None)] == [fence]
    assert session.rows("lapsed_workers", now=None, ago=0) == []
    session.rows("end_worker", fence=fence, now=None)
    assert session.rows("renew_worker", fence=fence, now=None, lease=9000) == []
    assert session.rows("live_workers", now=None) == []


def test_dead_owners_are_those_whose_lease_lapsed_or_that_nobody_remembers(
    session: protocol.Session,
) -> None:
    ((lapsed, _),) = register(session, 50)
    ((living, _),) = register(session, 500)
    ((idle, _),) = register(session, 60)
    write(
        session,
        streams=[stream(1)],
        effects=[effect(1, n=n, owner=owner) for n, owner in enumerate((lapsed, living, 99, None))],
        timers=[timer(1), timer(1, name="other")],
    )
    session.rows("claim_timers", fence=98, knows=KNOWS, now=NOW, limit=1)

    dead = sorted(row[0] for row in session.rows("dead_owners", now=100))

    assert dead == [lapsed, 98, 99]
    assert idle not in dead


def test_effects_that_a_worker_does_not_know_are_released_and_no_others(
    session: protocol.Session,
) -> None:
    write(session, streams=[stream(1)], effects=[effect(1, n=n, owner=7 + n % 2) for n in range(4)])

    assert sorted(session.rows("effects_under", fence=7)) == [(1, 1, 0), (1, 1, 2)]
    session.rows("release_some", fence=7, keys="[[1, 1, 0], [1, 1, 1], [9, 9, 9]]")

    assert session.rows("effects_under", fence=7) == [(1, 1, 2)]
    assert sorted(session.rows("effects_under", fence=8)) == [(1, 1, 1), (1, 1, 3)]


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("dead_owners", ("outbox", "timers")),
        ("free_effects", ("outbox",)),
        ("free_timers", ("timers",)),
        ("release_effects", ("outbox",)),
        ("release_timers", ("timers",)),
        ("release_some", ("outbox",)),
        ("effects_under", ("outbox",)),
    ],
)
def test_what_a_fence_holds_is_found_by_an_index(
    home: Home, query: str, tables: tuple[str, ...]
) -> None:
    plan = explained(home, queries.load(home.kind)[query])

    for table in tables:
        assert f"{table}_held" in plan
        assert re.search(rf"SCAN {table}(?! USING (COVERING )?INDEX {table}_held)", plan) is None
        assert f"Seq Scan on {table}" not in plan


@pytest.mark.parametrize("query", ["held_effects", "settle_effects", "postpone_effects"])
def test_an_effect_is_found_by_its_key_and_not_among_all_that_its_worker_holds(
    postgres_home: Home, query: str
) -> None:
    statement = queries.load("postgres")[query].replace("%s::json", "'[]'::json").replace("%s", "1")

    plan = explained(postgres_home, statement)

    assert "outbox_pkey" in plan
    assert "outbox_held" not in plan


def test_a_state_is_found_by_its_key_and_not_among_all_of_its_queue(postgres_home: Home) -> None:
    statement = queries.load("postgres")["update_states"]
    statement = statement.replace("%s::json", "'[]'::json").replace("queue = %s", "queue = ''")

    plan = explained(postgres_home, statement.replace("%s", "1"))

    assert "Index Cond: (id = r.id)" in plan


def explained(home: Home, statement: str) -> str:
    values = {"fences": "'{1}'" if home.kind == "postgres" else "'[1]'", "keys": "'[]'"}
    for word, value in (values | {"fence": "7", "now": "5", "steady": "0"}).items():
        statement = re.sub(rf":{word}\b(?!:)|%\({word}\)s", value, statement)
    if home.kind == "sqlite":
        return " ".join(str(row[3]) for row in home.sql(f"EXPLAIN QUERY PLAN {statement}"))
    with contextlib.closing(postgres_connection.connect(home.address)) as connection:
        connection.set(postgres._BY_KEY)
        rows = connection.execute(f"EXPLAIN (COSTS OFF) {statement}".encode()).fetchall()
    return " ".join(" ".join(str(row[0]).split()) for row in rows)
