"""Who may write for an object, and when: while we lead, while it lives, one after the other."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from fairlead.kubernetes import objects
from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.objects import Key, Object


class Lead(Protocol):
    """A term as leader."""

    def check(self) -> None:
        """Raises where the term may be over."""


@dataclass(slots=True)
class _Turn:
    """One object's turn: one effect at a time."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class WriteLocks:
    """The writes of one term, one object at a time."""

    def __init__(self, lead: Lead) -> None:
        self._lead = lead
        self._write_locks: dict[str, _Turn] = {}
        self._begun: set[asyncio.Timeout] = set()

    def check(self) -> None:
        """Raises where we may not lead any more."""
        self._lead.check()

    def abandon(self) -> None:
        """The term was lost: what is on its way is broken off, for the next leader may act.

        Without this, a request that hangs would be sent again by the transport, long after the
        lease is over.
        """
        now = asyncio.get_running_loop().time()
        for begun in self._begun:
            begun.reschedule(now)

    @contextlib.asynccontextmanager
    async def of(self, uid: str) -> AsyncIterator[None]:
        """Nobody else writes for this object inside the block."""
        turn = self._write_locks.setdefault(uid, _Turn())
        turn.users += 1
        try:
            async with turn.lock, asyncio.timeout(None) as begun:
                self._begun.add(begun)
                try:
                    yield
                finally:
                    self._begun.discard(begun)
        finally:
            turn.users -= 1
            if not turn.users:
                self._write_locks.pop(uid, None)


class Coalescer:
    """Holds changes of an owner's children back while we write them, and reports once at the end.

    The cache hears of each of three writes; without this, each would reconcile a level that is
    half done. Changes of the owner itself go another way and are reported at once.
    """

    def __init__(self, tell: Callable[[Key], None] = lambda _: None) -> None:
        self._tell = tell
        self._writing: Counter[Key] = Counter()
        self._heard: set[Key] = set()

    def heard(self, key: Key) -> None:
        """A child of this owner has changed."""
        if self._writing[key]:
            self._heard.add(key)
        else:
            self._tell(key)

    @contextlib.contextmanager
    def writing(self, key: Key) -> Iterator[None]:
        self._writing[key] += 1
        try:
            yield
        finally:
            self._writing[key] -= 1
            if not self._writing[key]:
                del self._writing[key]
                if key in self._heard:
                    self._heard.discard(key)
                    self._tell(key)


def living(cache: Cache, key: Key, uid: str) -> Object | None:
    """This very object, unless it is on its way out."""
    live = cache.get(key)
    if live is None or objects.uid_of(live) != uid or objects.is_deleting(live):
        return None
    return live
