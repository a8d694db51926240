"""Two writers, duplicates and takeovers in any order: hypothesis looks for one that breaks us.

The model is small: how much each stream should hold, what each command id was answered, and
which effects were settled. Both writers use a runner's own steps (load, decide, write), each
at its own pace, so that one may decide on what the other is about to change.
"""

import contextlib
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from fairlead import errors
from fairlead.clients.postgres.server.running import Databases
from fairlead.engine import batch, machine, messages
from fairlead.engine.store import postgres, protocol, sqlite
from fairlead.engine.testing import START
from tests import machines
from tests.engines import serves

REGISTRY = batch.MachineRegistry(machine.Machines(machines.ALL))
STREAMS = ("counter/a", "counter/b")
IDS = st.integers(0, 8)
WRITERS = st.sampled_from((0, 1))


@dataclass(slots=True)
class Begun:
    """A transaction between its decision and its commit."""

    stack: contextlib.ExitStack
    transaction: protocol.Transaction
    taken: batch.Batch
    outcome: messages.Receipt | Exception
    submission: messages.Submission


class Interleavings(RuleBasedStateMachine):
    """Commands and answers by two writers, torn apart between decision and commit."""

    store: protocol.Store

    def __init__(self) -> None:
        super().__init__()
        self.sessions = [self.store.open(), self.store.open()]
        self.fences = [self._register(session) for session in self.sessions]
        self.begun: dict[int, Begun] = {}
        self.answers: dict[str, messages.Receipt] = {}
        self.totals = dict.fromkeys(STREAMS, 0)
        self.asked: set[messages.EffectKey] = set()
        self.settled: list[messages.EffectKey] = []
        self.run = uuid.uuid4().hex[:8]

    def _register(self, session: protocol.Session) -> int:
        ((fence, _),) = session.rows(
            "register_worker", name="w", now=0, lease=2**60, serves=serves()
        )
        return int(fence)

    def name(self, stream: str) -> messages.StreamName:
        return messages.parse_stream(f"{stream}-{self.run}")

    @rule(who=WRITERS, stream=st.sampled_from(STREAMS), number=IDS)
    def add(self, who: int, stream: str, number: int) -> None:
        """The same id always carries the same command, so a second delivery is a duplicate."""
        chosen = STREAMS[number % 2]
        command = machines.Add(number % 3)
        self._begin(who, chosen, command, f"{self.run} {number}", None)

    @rule(who=WRITERS, number=IDS)
    def load(self, who: int, number: int) -> None:
        pieces = tuple(f"{number}.{each}" for each in range(number % 3 + 1))
        self._begin(who, "fan/a", machines.Load(pieces), f"{self.run} load {number}", None)

    @rule(who=WRITERS, pick=st.integers(0, 20))
    def answer(self, who: int, pick: int) -> None:
        """Any holder answers any effect it ever held, also one it has answered before."""
        keys = sorted(self.asked, key=lambda key: (key.stream, key.seq, key.n))
        if keys:
            key = keys[pick % len(keys)]
            hold = messages.Hold(key.stream, key.seq, key.n, self.fences[who])
            self._begin(who, "fan/a", machines.Unload("none"), "answer", hold)

    @rule(who=WRITERS)
    def take_over(self, who: int) -> None:
        """The other's lease lapsed: what it held is freed and claimed here."""
        if self.begun:
            return
        session, other = self.sessions[who], self.fences[1 - who]
        session.rows("release_effects", fence=other)
        claim: dict[str, Any] = {"serves": serves(), "now": 2**60, "limit": 99}
        session.rows("claim_effects", fence=self.fences[who], **claim)

    @rule(who=WRITERS)
    def commit(self, who: int) -> None:
        begun = self.begun.pop(who, None)
        if begun is None:
            return
        writes = begun.taken.finish()
        try:
            with begun.stack:
                if writes:
                    begun.transaction.write(writes)
        except protocol.Lost:
            return
        self._committed(begun, writes)

    @rule(who=WRITERS)
    def give_up(self, who: int) -> None:
        begun = self.begun.pop(who, None)
        if begun is not None:
            begun.stack.close()

    @invariant()
    def sequences_have_no_gap_and_sums_are_right(self) -> None:
        if self.begun:
            return
        for stream, total in self.totals.items():
            rows = self._rows("get_stream", name=self.name(stream))
            events = self._rows("stream_events", name=self.name(stream), after=0, limit=999)
            assert [row[1] for row in events] == list(range(1, len(events) + 1))
            assert (rows[0][3] if rows else 0) == len(events)
            assert (rows[0][6] if rows else '{"total":0}') == f'{{"total":{total}}}'

    @invariant()
    def every_effect_is_waiting_or_settled_once(self) -> None:
        if self.begun:
            return
        waiting = {
            messages.EffectKey(*row[1:4])
            for row in self._rows(
                "list_effects",
                dead=None,
                name=self.name("fan/a"),
                stream=0,
                seq=0,
                n=0,
                limit=999,
            )
        }
        assert len(self.settled) == len(set(self.settled))
        assert waiting == self.asked - set(self.settled)

    def teardown(self) -> None:
        for begun in self.begun.values():
            begun.stack.close()
        for session in self.sessions:
            session.close()

    def _rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        return self.sessions[0].rows(query, **values)

    def _begin(
        self, who: int, stream: str, command: object, id_: str, settles: messages.Hold | None
    ) -> None:
        # SQLite lets one writer in at a time; only PostgreSQL can have two half-way.
        if who in self.begun or (self.begun and isinstance(self.store, sqlite.SqliteStore)):
            return
        submission = messages.Submission(
            self.name(stream), command, messages.CommandId(id_), settles
        )
        stack = contextlib.ExitStack()
        transaction = stack.enter_context(self.sessions[who].transaction())
        commands = [] if settles else [id_]
        loaded = transaction.load(protocol.Needed([submission.stream], commands))
        identity = batch.Identity(START, self.fences[who], {("", machines.Carry): 99})
        taken = batch.Batch(REGISTRY, identity, loaded, transaction.number)
        taken.know([submission.stream], loaded.streams)
        outcome: messages.Receipt | Exception
        try:
            outcome = taken.take(submission)
        except (errors.FairleadError, batch.Stale) as error:
            outcome = error
        self.begun[who] = Begun(stack, transaction, taken, outcome, submission)

    def _committed(self, begun: Begun, writes: protocol.Writes) -> None:
        outcome, submission = begun.outcome, begun.submission
        assert isinstance(outcome, messages.Receipt), outcome
        self.settled += [hold.key for hold in writes.settled]
        self.asked |= {messages.EffectKey(e.stream, e.seq, e.n) for e in writes.effects}
        if submission.settles is None and outcome.events:
            known = self.answers.setdefault(submission.id, outcome)
            assert known == outcome
            assert outcome.duplicate == (not writes)
        if isinstance(submission.command, machines.Add) and writes:
            stream = submission.stream.removesuffix(f"-{self.run}")
            self.totals[stream] += submission.command.number


def explore(store: protocol.Store, examples: int, steps: int) -> None:
    kind = type("OnThisStore", (Interleavings,), {"store": store})
    run_state_machine_as_test(
        kind,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.slow
def test_no_interleaving_breaks_sqlite() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = sqlite.SqliteStore(Path(folder) / "fairlead.db", machines.ORDERED)
        store.migrate()

        explore(store, examples=30, steps=30)


@pytest.mark.slow
def test_no_interleaving_breaks_postgres(postgres_server: Databases) -> None:
    name = f"fairlead_test_{uuid.uuid4().hex[:16]}"
    store = postgres.PostgresStore(postgres_server.create_database(name), machines.ORDERED)
    try:
        store.migrate()

        explore(store, examples=12, steps=25)
    finally:
        postgres_server.drop_database(name)
