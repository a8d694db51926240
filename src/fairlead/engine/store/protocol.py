"""What the engine asks of a store: two hot calls, and named queries for the rest.

A session is one connection, used by one thread at a time. The hot path is a transaction of
two calls: load everything a batch needs, write everything it decided, one commit. All else
(claims, leases, lists) are named queries that exist in each dialect under the same name.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import msgspec

from fairlead.engine import clock, messages

WORK_CHANNEL = "fairlead_work"
"""Where a commit tells other processes that it left effects for them."""


class Lost(Exception):
    """Another writer was quicker; nothing was written, decide again."""


class StreamRow(NamedTuple):
    """A stream as it stands."""

    id: int
    name: str
    version: int
    state_type: str
    state_version: int
    state: str
    ended: bool
    pending: int
    """Effects waiting in its lane; counted only for machines that ask for order."""


class CommandRow(NamedTuple):
    """A command already taken, with its recorded answer."""

    id: str
    digest: str
    first: int
    last: int


class NewStream(msgspec.Struct, frozen=True, gc=False):
    """A stream's first row."""

    id: int
    name: str
    machine: str
    version: int
    state_type: str
    state_version: int
    state: str
    ended_at: clock.Millis | None


class NewState(msgspec.Struct, frozen=True, gc=False):
    """A stream's next state, valid only on top of the version it was decided from."""

    id: int
    seen: int
    version: int
    state_type: str
    state_version: int
    state: str
    ended_at: clock.Millis | None


class NewEvent(msgspec.Struct, frozen=True, gc=False):
    """One event."""

    stream: int
    seq: int
    type: str
    version: int
    data: str
    cause: str


class NewCommand(msgspec.Struct, frozen=True, gc=False):
    """A command taken from outside."""

    id: str
    stream: int
    digest: str
    first: int
    last: int


class NewEffect(msgspec.Struct, frozen=True, gc=False):
    """An effect; with an owner it is held by this worker from birth."""

    stream: int
    seq: int
    n: int
    type: str
    version: int
    data: str
    in_order: bool
    owner: int | None


class NewTimer(msgspec.Struct, frozen=True, gc=False):
    """A timer, replacing one of the same name."""

    stream: int
    name: str
    seq: int
    due_at: clock.Millis
    type: str
    version: int
    data: str


class Postponement(msgspec.Struct, frozen=True, gc=False):
    """An effect that failed: try again at due_at, or lie dead until a person looks."""

    stream: int
    seq: int
    n: int
    fence: int
    due_at: clock.Millis
    dead_at: clock.Millis | None
    error: str
    attempts: int = 1
    """Zero where it was not even tried."""


@dataclass(slots=True)
class Writes:
    """Everything one batch decided, table by table."""

    now: clock.Millis
    streams: list[NewStream] = field(default_factory=list)
    states: list[NewState] = field(default_factory=list)
    events: list[NewEvent] = field(default_factory=list)
    commands: list[NewCommand] = field(default_factory=list)
    effects: list[NewEffect] = field(default_factory=list)
    timers: list[NewTimer] = field(default_factory=list)
    settled: list[messages.Hold] = field(default_factory=list)
    fired: list[messages.TimerKey] = field(default_factory=list)
    cancelled: list[tuple[int, str]] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    postponed: list[Postponement] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(
            self.states
            or self.streams
            or self.events
            or self.settled
            or self.fired
            or self.postponed
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a batch must know before it decides."""

    streams: Sequence[str]
    commands: Sequence[str] = ()
    settles: Sequence[messages.Hold] = ()
    fires: Sequence[messages.TimerKey] = ()
    careful: bool = False
    """Lock the streams and check what is held: the second try after a lost race."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the store knew; held is filled only for a careful load."""

    streams: Sequence[StreamRow]
    commands: Sequence[CommandRow]
    held: frozenset[messages.Hold | messages.TimerKey] | None = None


class Transaction(Protocol):
    """One batch's hold on the store; leaves no trace unless write was called last."""

    def load(self, wanted: Wanted) -> Loaded: ...

    def more(self, streams: Sequence[str]) -> Sequence[StreamRow]:
        """Streams that turned out to be needed while deciding; Lost where one is locked."""

    def number(self, count: int) -> Sequence[int]:
        """Numbers for new streams."""

    def write(self, writes: Writes) -> None:
        """Write it all and commit, or raise Lost and leave nothing."""


class Session(Protocol):
    """One connection."""

    def transaction(self) -> AbstractContextManager[Transaction]: ...

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """The answer to a named query; a statement that writes is committed."""

    def script(
        self, steps: Sequence[tuple[str, Mapping[str, Any]]], *, first_must_hit: bool = False
    ) -> list[int]:
        """Several named statements in one commit; the rows each one touched.

        With first_must_hit, a first statement that touches no row undoes it all: Lost.
        """

    def close(self) -> None: ...


class Store(Protocol):
    """Where machines are remembered."""

    @property
    def writers(self) -> int:
        """How many sessions may write side by side with profit."""

    def open(self) -> Session: ...

    def migrate(self) -> list[str]:
        """Bring the schema up to date; the names of the migrations applied now."""

    def pending_migrations(self) -> list[str]:
        """Names still to be applied; Conflict where the database is newer than we are."""

    def now(self) -> datetime:
        """The store's own clock, which all workers follow."""

    def listen(self, channel: str) -> "Listener | None":
        """Hear what other processes notify; None where the store cannot tell."""


class Listener(Protocol):
    """Blocks until another process left work, or the time is over."""

    def wait(self, seconds: float) -> bool: ...

    def close(self) -> None: ...
