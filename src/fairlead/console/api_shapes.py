"""What the API answers in shapes of its own; all else is read as what the store would give."""

from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from fairlead.engine import messages, visibility

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T]):
    """A part of a list, and where the next one begins."""

    items: list[T]
    next: int | str | None = None


class Steered(msgspec.Struct):
    """What became of a verb."""

    receipt: messages.Receipt


class Event(msgspec.Struct):
    """An event as the API writes it."""

    stream: messages.StreamName
    seq: int
    type: str
    version: int
    data: Any
    cause: str
    at: datetime
    place: str

    def view(self) -> visibility.EventView:
        return visibility.EventView(
            self.stream,
            self.seq,
            self.type,
            self.version,
            self.data,
            self.cause,
            self.at,
            visibility.parse_place(self.place),
        )


class Effect(msgspec.Struct):
    """An effect as the API writes it."""

    id: str
    stream: messages.StreamName
    type: str
    data: Any
    attempts: int
    due_at: datetime
    held: bool
    dead_at: datetime | None
    error: str | None
    queue: str = ""

    def view(self) -> visibility.EffectView:
        return visibility.EffectView(
            self.stream,
            visibility.parse_effect_id(self.id),
            self.type,
            self.data,
            self.attempts,
            self.due_at,
            self.held,
            self.dead_at,
            self.error,
            self.queue,
        )


class Moved(msgspec.Struct):
    """A stream in its new queue."""

    effects: int
