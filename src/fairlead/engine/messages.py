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
Fence = NewType("Fence", int)

MAX_COMMAND_ID = 200
MAX_PAYLOAD_BYTES = 1_048_576
"""One encoded command, event, effect or state may not be larger than this."""

_STREAM = re.compile(r"[a-z][a-z0-9_-]{0,39}/[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}")


@dataclass(frozen=True, slots=True)
class Send:
    """A command for another machine, delivered in the same transaction."""

    stream: StreamName
    command: object


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
class Decision:
    """Everything a machine wants after one command; empty means nothing is written."""

    events: tuple[object, ...] = ()
    effects: tuple[object, ...] = ()
    sends: tuple[Send, ...] = ()
    timers: tuple[SetTimer | CancelTimer, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.events or self.effects or self.sends or self.timers)


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


def command_id(text: str) -> CommandId:
    """A caller's own id for a command, so that the same request twice is taken once."""
    if not text or len(text) > MAX_COMMAND_ID or not text.isprintable():
        raise errors.Rejected(
            f"not a command id: {text[:80]!r}",
            hint=f"use 1 to {MAX_COMMAND_ID} printable characters",
        )
    return CommandId(text)
