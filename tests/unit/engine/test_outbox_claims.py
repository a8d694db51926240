"""Whatever waits and whoever asks: a claim takes exactly what is due, unheld and served.

Hypothesis makes up rows and workers; a model of a few lines says what each may take.
"""

import contextlib
import itertools
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.engine.store import postgres, protocol, sqlite

NOW = 1000
QUEUES, MACHINES, TYPES = ("", "local@a", "kubernetes@b"), ("fan", "lane"), ("Carry", "Fetch")
_numbers = itertools.count(1)

KEYS = st.tuples(
    st.sampled_from(QUEUES), st.sampled_from(MACHINES), st.sampled_from(TYPES), st.integers(1, 2)
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """An effect of a stream of its own."""

    key: tuple[str, str, str, int]
    due: int
    held: bool
    dead: bool

    @property
    def can_be_taken(self) -> bool:
        return self.due <= NOW and not self.held and not self.dead


ROWS = st.lists(
    st.builds(Waiting, KEYS, st.integers(NOW - 2, NOW + 1), st.booleans(), st.booleans()),
    max_size=12,
)
WORKERS = st.lists(st.frozensets(KEYS, max_size=6), min_size=1, max_size=3)


def put(session: protocol.Session, rows: Sequence[Waiting]) -> dict[int, Waiting]:
    """The rows, each by the number of its stream."""
    numbered = {next(_numbers): row for row in rows}
    for number, row in numbered.items():
        queue, machine, type_, version = row.key
        name = f"{machine}/{number}"
        stream = protocol.NewStream(number, name, machine, 1, "Cargo", 1, "{}", None, queue)
        effect = protocol.NewEffect(number, 1, 0, type_, version, "{}", False, 99)
        # Held first, then let go as it should lie.
        dead = row.due if row.dead else None
        late = protocol.Postponement(number, 1, 0, 99, row.due, dead, "", 0)
        write(session, streams=[stream], effects=[effect])
        if not row.held:
            write(session, postponed=[late])
    return numbered


def write(session: protocol.Session, **what: Any) -> None:
    with session.transaction() as transaction:
        transaction.load(protocol.Needed([]))
        transaction.write(protocol.Writes(0, **what))


def check(
    session: protocol.Session, rows: list[Waiting], workers: list[frozenset[Any]], limit: int
) -> None:

    left = put(session, rows)
    ours = set(left)
    for fence, serves in enumerate(workers):
        fit = {n for n, row in left.items() if row.can_be_taken and row.key in serves}

        taken = session.rows(
            "claim_effects", fence=fence, serves=json.dumps(sorted(serves)), now=NOW, limit=limit
        )

        got = {row[0] for row in taken} & ours
        assert got <= fit
        assert len(got) == len(taken), "what other rounds left was put away"
        assert len(got) == min(limit, len(fit))
        oldest = sorted(left[n].due for n in fit)[: len(got)]
        assert sorted(left[n].due for n in got) == oldest
        for number in got:
            del left[number]


def hold_all(session: protocol.Session) -> None:
    """What a round left is nobody's business any more."""
    every = [(q, m, t, v) for q in QUEUES for m in MACHINES for t in TYPES for v in (1, 2)]
    values = {"serves": json.dumps(every), "now": 2**60, "limit": 10_000}
    session.rows("claim_effects", fence=1000, **values)


def play(session: protocol.Session, examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(ROWS, WORKERS, st.integers(1, 12))
    def run(rows: list[Waiting], workers: list[frozenset[Any]], limit: int) -> None:
        hold_all(session)
        check(session, rows, workers, limit)
        hold_all(session)

    run()


def test_no_claim_takes_too_much_or_too_little_on_sqlite() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = sqlite.SqliteStore(Path(folder) / "fairlead.db")
        store.migrate()
        with contextlib.closing(store.open()) as session:
            play(session, 60)


def test_no_claim_takes_too_much_or_too_little_on_postgres(postgres_url: str) -> None:
    store = postgres.PostgresStore(postgres_url)
    store.migrate()
    with contextlib.closing(store.open()) as session:
        play(session, 40)
