"""A store that a test may break at one call, before or after it took effect."""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fairlead import errors
from fairlead.engine.store import protocol

Hook = Callable[[str, Any], None]
"""Told the call (a query's name, `write`, `open` or `load`) and its subject; may raise."""


def gone() -> errors.Unavailable:
    return errors.Unavailable("the line is cut", hint="this is a test")


@dataclass(slots=True)
class Tampering:
    """What is done to the calls; counts them as they pass."""

    before: Hook = lambda _call, _subject: None
    after: Hook = lambda _call, _subject: None
    calls: Counter[str] = field(default_factory=Counter)
    cut: bool = False

    @contextlib.contextmanager
    def around(self, call: str, subject: Any = None) -> Iterator[None]:
        self.calls[call] += 1
        if self.cut:
            raise gone()
        self.before(call, subject)
        yield
        self.after(call, subject)


def once(call: str, error: BaseException, when: Callable[[Any], bool] = lambda _: True) -> Hook:
    """Raise at the first such call, then never again."""
    spent = threading.Event()

    def hook(called: str, subject: Any) -> None:
        if called == call and not spent.is_set() and when(subject):
            spent.set()
            raise error

    return hook


class TamperedStore:
    """A store with a hand on its line."""

    def __init__(self, store: protocol.Store, tampering: Tampering) -> None:
        self._store = store
        self._tampering = tampering

    @property
    def writers(self) -> int:
        return self._store.writers

    def open(self, deadline: float | None = None) -> protocol.Session:
        with self._tampering.around("open"):
            return _Session(self._store.open(deadline), self._tampering)

    def migrate(self) -> list[str]:
        return self._store.migrate()

    def pending_migrations(self) -> list[str]:
        return self._store.pending_migrations()

    def now(self) -> datetime:
        return self._store.now()

    def listen(self, channel: str) -> protocol.Listener | None:
        return None


class _Session:
    def __init__(self, session: protocol.Session, tampering: Tampering) -> None:
        self._session = session
        self._tampering = tampering

    @contextlib.contextmanager
    def transaction(self) -> Iterator[protocol.Transaction]:
        with self._tampering.around("begin"), self._session.transaction() as transaction:
            yield _Transaction(transaction, self._tampering)

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        with self._tampering.around(query, values):
            return self._session.rows(query, **values)

    def page(
        self, query: str, limit: int, most_bytes: int, **values: Any
    ) -> tuple[list[tuple[Any, ...]], bool]:
        with self._tampering.around(query, values):
            return self._session.page(query, limit, most_bytes, **values)

    def script(
        self, steps: Sequence[tuple[str, Mapping[str, Any]]], *, first_must_hit: bool = False
    ) -> list[int]:
        with self._tampering.around(steps[0][0], steps):
            return self._session.script(steps, first_must_hit=first_must_hit)

    def close(self) -> None:
        self._session.close()


class _Transaction:
    def __init__(self, transaction: protocol.Transaction, tampering: Tampering) -> None:
        self._transaction = transaction
        self._tampering = tampering
        self.more = transaction.more
        self.number = transaction.number
        self.epoch = transaction.epoch

    def load(self, wanted: protocol.Needed) -> protocol.Loaded:
        with self._tampering.around("load", wanted):
            return self._transaction.load(wanted)

    def write(self, writes: protocol.Writes) -> None:
        with self._tampering.around("write", writes):
            self._transaction.write(writes)
