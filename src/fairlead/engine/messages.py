"""What passes between machines, the engine and the outside.

A command reaches a stream; the machine decides; events, effects, sends and timers come
out of it and are kept in one transaction (see runner.py for the flow).

What machines handle are dataclasses; what the engine makes by the thousand are msgspec
structs, which cost a tenth to make.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import NewType

import msgspec

from fairlead import errors

StreamName = NewType("StreamName", str)
CommandId = NewType("CommandId", str)

MAX_COMMAND_ID = 200
MAX_TIMER_NAME = 200
MAX_PAYLOAD_BYTES = 1_048_576
"""One encoded command, event, effect or state may not be larger than this."""

_QUEUE = re.compile(r"[a-z][a-z0-9_-]{0,39}@[A-Za-z0-9][A-Za-z0-9._:/@-]{0,159}")
_STREAM = re.compile(r"[a-z][a-z0-9_-]{0,39}/[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}")


@dataclass(frozen=True, slots=True)
class Send:
    """A command for another machine, delivered in the same transaction."""

    stream: StreamName
    command: object
    queue: str | None = None
    """The queue of a stream that this creates; None: the sender's own, empty: none."""


@dataclass(frozen=True, slots=True)
class ChildEnded:
    """Command: a machine that this one started has ended.

    The same for every area, so that a parent hears of a child's end without knowing its words. A
    parent names it among its commands; a child that was given a parent sends it with its last
    event.
    """

    child: StreamName
    succeeded: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Command: end early, and all that you started with you.

    The same for every area, as ChildEnded is: a parent sends it to its children without knowing
    their words (`engine.children`). A machine that names it among its commands undoes what it must,
    and says ChildEnded when it is over; one that never started or has ended does nothing.
    """

    reason: str = ""


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Wake this stream with a command; a timer of the same name is replaced."""

    name: str
    due: datetime
    command: object


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Forget a timer; one that is not set is no error."""

    name: str


@dataclass(frozen=True, slots=True)
class Withdraw:
    """An effect that this stream asked for earlier is no longer wanted.

    Named by its value, or by its class for all of that type. One that a worker is performing
    goes on, and its answer arrives as usual; should it fail, it is not tried again.
    """

    effect: object


@dataclass(frozen=True, slots=True)
class Decision:
    """Everything a machine wants after one command; empty means nothing is written."""

    events: tuple[object, ...] = ()
    effects: tuple[object, ...] = ()
    sends: tuple[Send, ...] = ()
    timers: tuple[SetTimer | CancelTimer, ...] = ()
    withdraws: tuple[Withdraw, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.events or self.effects or self.sends or self.timers or self.withdraws)


class EffectKey(msgspec.Struct, frozen=True, gc=False):
    """Names one effect for ever: the stream's number, the event sequence, the place."""

    stream: int
    seq: int
    n: int


class Hold(msgspec.Struct, frozen=True, gc=False):
    """An effect held under a worker's fence; settling it takes both."""

    stream: int
    seq: int
    n: int
    fence: int

    @property
    def key(self) -> EffectKey:
        return EffectKey(self.stream, self.seq, self.n)


class TimerKey(msgspec.Struct, frozen=True, gc=False):
    """Names one setting of a timer; setting it again makes another."""

    stream: int
    name: str
    seq: int


class Submission(msgspec.Struct, frozen=True):
    """One command on its way to a stream, with what it settles if it lands."""

    stream: StreamName
    command: object
    id: CommandId
    settles: Hold | TimerKey | None = None
    queue: str = ""
    """The queue of a stream that this creates; one that exists keeps its own."""

    remember: bool = False
    """Keep its id even where it changes nothing: then a late duplicate changes nothing either."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The recorded answer to a command: which events it made, none if it changed nothing."""

    stream: StreamName
    first: int
    last: int
    duplicate: bool = field(default=False, compare=False)

    @property
    def events(self) -> int:
        return self.last - self.first + 1


def stream_name(machine: str, key: str) -> StreamName:
    """The name of one machine's stream, refused where it could not be typed or stored."""
    name = f"{machine}/{key}"
    if not _STREAM.fullmatch(name):
        raise errors.Rejected(
            f"not a stream name: {name[:80]}",
            hint="use MACHINE/KEY, where KEY has at most 200 letters, digits or . _ : / @ -",
        )
    return StreamName(name)


def parse_stream(text: str) -> StreamName:
    machine, _, key = text.partition("/")
    return stream_name(machine, key)


def queue_name(kind: str, place: str) -> str:
    """Who performs a stream's effects: a kind of platform, and which one of them."""
    return parse_queue(f"{kind}@{place}")


def parse_queue(text: str) -> str:
    """A queue as people write it; empty is the queue of streams that have none."""
    if text and not _QUEUE.fullmatch(text):
        raise errors.Rejected(
            f"not a queue: {text[:80]}",
            hint="use KIND@PLACE, such as kubernetes@prod; the list is: fairlead queues list",
        )
    return text


def command_id(text: str) -> CommandId:
    """A caller's own id for a command, so that the same request twice is taken once."""
    if not text or len(text) > MAX_COMMAND_ID or not text.isprintable():
        raise errors.Rejected(
            f"not a command id: {text[:80]!r}",
            hint=f"use 1 to {MAX_COMMAND_ID} printable characters",
        )
    return CommandId(text)


def check_timer_name(text: str) -> None:
    """A timer's name is part of a key; one that no index takes must not reach the store."""
    if not text or len(text) > MAX_TIMER_NAME or not text.isprintable():
        raise errors.Rejected(
            f"not a timer name: {text[:80]!r}",
            hint=f"use 1 to {MAX_TIMER_NAME} printable characters",
        )
