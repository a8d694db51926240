"""Both stores find exactly what a model of a few lines finds, by the index, and nothing else."""

import operator
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fairlead.engine import attributes, filters, machine, visibility
from fairlead.engine.store import postgres, protocol, sqlite
from tests import parcels
from tests.engines import Home
from tests.parcels import PARCEL, Parcel

KNOWN = machine.Machines([PARCEL])
NASTY = ("", "'; DROP TABLE streams; --", '"', "%", "_", "%(name)s", ":name", "{}", "😀", "Å")
CITIES = ("Oslo", "Rome", "oslo", "Å", "😀", "St. John's", "", *NASTY)
DAYS = tuple(datetime(2030, 1, day, tzinfo=UTC) for day in range(1, 6))
SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "in": lambda value, those: value in those,
}  # fmt: skip
CHOICES: dict[str, tuple[Any, ...]] = {
    "city": CITIES,
    "weight": (-(10**17), -1, 0, 1, 7, 10**17),
    "fragile": (True, False),
    "due": DAYS,
    "size": parcels.SIZES,
}
Conditions = list[tuple[str, str, Any]]


def some(dice: random.Random) -> Parcel:
    """A parcel on which anything may be missing."""
    chosen = {name: dice.choice((*values, None)) for name, values in CHOICES.items()}
    return Parcel(**chosen)


def conditions(dice: random.Random) -> Conditions:
    found: Conditions = []
    for name in dice.sample(sorted(CHOICES), dice.randint(1, 3)):
        sign = dice.choice(sorted(SIGNS))
        values = [dice.choice(CHOICES[name]) for _ in range(3)]
        found.append((name, sign, values if sign == "in" else values[0]))
    return found


def written(value: Any) -> str:
    if isinstance(value, list):
        return f"({', '.join(map(written, value))})"
    if isinstance(value, bool):
        return str(value).lower()
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def model(parcel: Parcel, asked: Conditions) -> bool:
    """A condition holds where the attribute is there and compares so."""
    here = parcels.values(parcel)
    return all(name in here and SIGNS[sign](here[name], value) for name, sign, value in asked)


def keep(session: protocol.Session, population: dict[int, Parcel], key: str = "shop") -> None:
    """Streams as a batch writes them, without a run of the engine for each."""
    writes = protocol.Writes(0)
    for number, parcel in population.items():
        writes.streams.append(
            protocol.NewStream(
                number, f"parcel/{key}/{number}", "parcel", 1, "Parcel", 1, "{}", None
            )
        )
        writes.attributes += attributes.changes(PARCEL, number, None, parcel)
    with session.transaction() as transaction:
        transaction.load(protocol.Needed(()))
        transaction.write(writes)


def found(session: protocol.Session, text: str, **which: Any) -> list[int]:
    where = filters.where(text, KNOWN)
    chosen = visibility.StreamFilter(where=where, **{"limit": 1000, **which})
    return [view.number for view in visibility.streams(session, chosen)]


def test_any_filter_finds_what_the_model_finds(session: protocol.Session) -> None:
    dice = random.Random(11)
    population = {number: some(dice) for number in range(1, 121)}
    keep(session, population)

    hits = 0
    for _ in range(300):
        asked = conditions(dice)
        text = " and ".join(f"{name} {sign} {written(value)}" for name, sign, value in asked)
        wanted = [number for number, one in population.items() if model(one, asked)]
        hits += len(wanted)
        assert found(session, text) == sorted(wanted, reverse=True), text

    assert hits > 300


def test_values_that_look_like_code_are_values(session: protocol.Session) -> None:
    keep(session, {number: Parcel(city=city) for number, city in enumerate(NASTY, 1)})

    for number, city in enumerate(NASTY, 1):
        assert found(session, f"city = {written(city)}") == [number]
        assert found(session, f"city in ({written(city)}, {written(city + 'x')})") == [number]
    assert len(found(session, "city >= ''")) == len(NASTY)


def test_pages_life_and_scope_narrow_a_search(home: Home, session: protocol.Session) -> None:
    keep(session, {number: Parcel(city="Oslo", weight=number) for number in range(1, 6)}, "shop")
    keep(session, {number: Parcel(city="Oslo", weight=number) for number in range(6, 9)}, "till")
    home.sql("UPDATE streams SET ended_at = 1 WHERE id IN (1, 8)")

    for text in ("city=Oslo", "weight > 0", "city=Oslo and weight > 0", "machine=parcel"):
        assert found(session, text) == [8, 7, 6, 5, 4, 3, 2, 1]
        assert found(session, text, limit=2) == [8, 7]
        assert found(session, text, limit=2, before=7) == [6, 5]
        assert found(session, text, ended=True) == [8, 1]
        assert found(session, text, ended=False, scope="till") == [7, 6]
        assert found(session, text, scope="shop") == [5, 4, 3, 2, 1]
        assert found(session, text, scope="sho") == []


def test_the_rarest_clause_leads(session: protocol.Session) -> None:
    keep(session, {n: Parcel(city="Oslo", weight=n, fragile=n == 7) for n in range(1, 51)})

    assert found(session, "city=Oslo and fragile=true and weight>=0") == [7]
    assert found(session, "fragile=false and weight in (7, 8, 90)") == [8]


EQUAL = {"name": "city", "value": "Oslo", "clauses": "[]"}
RANGE = {"name": "due", "low": "2029-12-25", "high": "2031", "clauses": "[]"}
COMMON = {"machine": "parcel", "before": None, "ended": None, "scope": "", "limit": 10}


def plan(home: Home, query: str, values: dict[str, Any]) -> str:
    """How a store would go about a query."""
    if home.kind == "sqlite":
        opened = sqlite.SqliteStore(Path(home.address)).open()
        text = f"EXPLAIN QUERY PLAN {sqlite._QUERIES[query]}"
        lines = [row[3] for row in opened._connection.execute(text, values)]
        opened.close()
    else:
        other = postgres.PostgresStore(home.address).open()
        other._connection.execute("ANALYZE")
        explained = f"EXPLAIN {postgres._QUERIES[query]}".encode()
        lines = [row[0] for row in other._connection.execute(explained, values)]
        other.close()
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("query", "values"), [("streams_by_value", EQUAL), ("streams_by_range", RANGE)]
)
def test_a_search_goes_by_the_index(
    home: Home, session: protocol.Session, query: str, values: dict[str, Any]
) -> None:
    crowd = {
        n: Parcel(city=f"city {n % 500}", due=DAYS[0] - timedelta(days=n)) for n in range(5000)
    }
    keep(session, {n + 1: one for n, one in crowd.items()})

    told = plan(home, query, {**COMMON, **values})

    assert "attributes_by_value" in told
    if query == "streams_by_value":
        # In the index's own order: a page of ten reads ten, however many there are.
        assert "SORT" not in told.upper()
        assert "TEMP B-TREE" not in told
