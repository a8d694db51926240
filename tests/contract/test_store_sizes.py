"""What is asked again and again costs the same, however much the store has kept of the past."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from fairlead.engine.store import protocol
from tests.contract.test_store import FENCE, KNOWS, NOW, effect, stream, timer, write
from tests.contract.test_store_lanes import cost
from tests.engines import Home

WAITING, ENDED = 2_000, 30_000
SERVES = json.dumps([["", "fan", "Carry", 1, 10, [], {"Cargo": 1}]])
CLAIM: Mapping[str, Any] = {"fence": FENCE, "now": NOW, "limit": 9}
ASKED: Mapping[str, Mapping[str, Any]] = {
    "claim_effects": {**CLAIM, "serves": SERVES},
    "claim_newest": {**CLAIM, "serves": SERVES},
    "next_effect": {"serves": SERVES},
    "claim_timers": {**CLAIM, "knows": KNOWS},
    "next_known_timer": {"knows": KNOWS},
    "feed_end": {},
    "dead_owners": {"now": NOW},
    "count_rows": {},
    "living_streams": {"before": NOW + 1, "after": 0, "limit": 100},
}


@pytest.fixture
def backlog(home: Home) -> Home:
    numbers = range(1, WAITING + 1)
    session = home.store().open()
    write(
        session,
        streams=[stream(number) for number in numbers],
        effects=[effect(number) for number in numbers],
        timers=[timer(number) for number in numbers],
    )
    session.close()
    return home


def test_nothing_that_is_asked_all_the_time_grows_with_what_ended(backlog: Home) -> None:
    """Counted, not timed: the steps of SQLite's machine, the pages that PostgreSQL touches."""
    before = costs(backlog)

    age(backlog)
    after = costs(backlog)

    # What reads all that there ever was takes hundreds of pages more here.
    grown = {query: (before[query], cost) for query, cost in after.items()}
    assert [each for each in grown.items() if each[1][1] > 2 * each[1][0] + 100] == []


def costs(home: Home) -> dict[str, int]:
    home.sql("ANALYZE")
    found: dict[str, int] = {}
    for query, values in ASKED.items():
        session: protocol.Session = home.store().open()
        found[query] = cost(session, query, **values)
        session.close()
    return found


def age(home: Home) -> None:
    every = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})".format
    home.sql(
        f"""{every(ENDED)} INSERT INTO streams (id, name, machine, version, state_type,
        state_version, state, ended_at, queue, created_at, updated_at)
        SELECT {WAITING} + i, 'fan/old ' || i, 'fan', 1, 'Cargo', 1, '{{}}', 1, '', 1, 1 FROM n"""  # noqa: S608 - our own numbers
    )
    home.sql(
        f"""{every(ENDED)} INSERT INTO events (stream, seq, type, version, data, cause, at)
        SELECT {WAITING} + i, 1, 'Loaded', 1, '{{}}', 'cause', 1 FROM n"""  # noqa: S608 - our own numbers
    )
