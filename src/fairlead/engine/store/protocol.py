"""What the engine asks of a store: two hot calls, and named queries for the rest.

A session is one connection, used by one thread at a time. The hot path is a transaction of
two calls: load everything a batch needs, write everything it decided, one commit. All else
(claims, leases, lists) are named queries that exist in each dialect under the same name.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from fairlead.engine import clock, messages

WORK_CHANNEL = "fairlead_work"
"""Where a commit tells other processes that it left effects for them."""

NO_STREAM = 0
"""No stream's number: of commands that changed nothing where there was no stream."""


UNBOUNDED = 2**60
"""As many bytes as it takes."""


class Lost(Exception):
    """Another writer was quicker; nothing was written, decide again."""


class Blocked(Lost):
    """Another session has locked a row for longer than we wait; nothing was written."""


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
    """Effects waiting in its lane, at most two; counted only for machines that ask for order.

    Only the first of a lane can be held, so a batch settles one at most: whether there is
    another behind it is all that it needs to know.
    """

    queue: str = ""


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
    queue: str = ""


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
    """An effect; with an owner it is held by this worker from birth.

    Its queue is that of its stream as the store has it at the commit: a stream that was moved
    since the batch was loaded must not leave an effect behind.
    """

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


class NewAttribute(msgspec.Struct, frozen=True, gc=False):
    """An attribute of a stream as it is from now on; no value: it has none."""

    stream: int
    machine: str
    name: str
    value: str | None


class Postponement(msgspec.Struct, frozen=True, gc=False):
    """An effect that is let go: tried again at due_at, or dead until a person looks.

    Without a time and an error both stay as they were.
    """

    stream: int
    seq: int
    n: int
    fence: int
    due_at: clock.Millis | None = None
    dead_at: clock.Millis | None = None
    error: str | None = None
    attempts: int = 1
    """Zero where it was not even tried."""


class Withdrawal(msgspec.Struct, frozen=True, gc=False):
    """Effects of a stream that it no longer wants: of one type, or with this data only."""

    stream: int
    seq: int
    """Only those that were asked for before this event."""

    type: str
    data: str | None

    def covers(self, effect: NewEffect) -> bool:
        if (effect.stream, effect.type) != (self.stream, self.type) or effect.seq >= self.seq:
            return False
        return self.data is None or effect.data == self.data


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
    withdrawn: list[Withdrawal] = field(default_factory=list)
    settled: list[messages.Hold] = field(default_factory=list)
    fired: list[messages.TimerKey] = field(default_factory=list)
    cancelled: list[tuple[int, str]] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    postponed: list[Postponement] = field(default_factory=list)
    attributes: list[NewAttribute] = field(default_factory=list)

    def drop_withdrawn(self) -> set[messages.EffectKey]:
        """Leave out what the batch itself asked for and then withdrew; their keys."""
        gone = [each for each in self.effects if any(w.covers(each) for w in self.withdrawn)]
        self.effects = [each for each in self.effects if each not in gone]
        return {messages.EffectKey(each.stream, each.seq, each.n) for each in gone}

    def __bool__(self) -> bool:
        return bool(
            self.states
            or self.streams
            or self.events
            or self.commands
            or self.settled
            or self.fired
            or self.postponed
        )


@dataclass(frozen=True, slots=True)
class Needed:
    """What a batch must know before it decides."""

    streams: Sequence[str]
    commands: Sequence[str] = ()
    settles: Sequence[messages.Hold] = ()
    fires: Sequence[messages.TimerKey] = ()
    careful: bool = False
    """Lock the streams and check what is held: the second try after a lost race."""

    bytes: int = UNBOUNDED
    """How much state to load at most; streams beyond that are left out."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the store knew; held is filled only for a careful load."""

    streams: Sequence[StreamRow]
    commands: Sequence[CommandRow]
    held: frozenset[messages.Hold | messages.TimerKey] | None = None
    left_out: frozenset[str] = frozenset()
    """Streams that are there, but whose states were too many bytes together."""


class Transaction(Protocol):
    """One batch's hold on the store; leaves no trace unless write was called last."""

    @property
    def epoch(self) -> str:
        """What effects born here have in their idempotency keys (see epochs.py)."""

    def load(self, needed: Needed) -> Loaded: ...

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

    def page(
        self, query: str, limit: int, most_bytes: int, **values: Any
    ) -> tuple[list[tuple[Any, ...]], bool]:
        """The first rows of a list, and whether more follow.

        It ends after `limit` rows, or with the row that makes them larger than `most_bytes`: one
        always comes through. The column that counts is called data.
        """
        ...

    def script(
        self, steps: Sequence[tuple[str, Mapping[str, Any]]], *, first_must_hit: bool = False
    ) -> list[int]:
        """Several named statements in one commit; the rows each one touched.

        With first_must_hit, a first statement that touches no row undoes it all: Lost.
        """

    def close(self) -> None: ...


@runtime_checkable
class Store(Protocol):
    """Where machines are remembered."""

    @property
    def writers(self) -> int:
        """How many sessions may write side by side with profit."""

    def open(self, deadline: float | None = None) -> Session:
        """A session; with a deadline, none of its calls takes more seconds than that."""

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
