"""What the API says, as types: the OpenAPI description is made from these."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

import pydantic

from fairlead.engine import library, messages

Item = TypeVar("Item")


class Page(pydantic.BaseModel, Generic[Item]):
    """Some items, and where to go on."""

    items: list[Item]
    next: str | None = pydantic.Field(
        None, description="Ask again with this to go on; null where there is no more."
    )


class Stream(pydantic.BaseModel):
    """One stream as it stands."""

    number: int
    name: str
    machine: str
    version: int = pydantic.Field(description="How many events it has.")
    state: str = pydantic.Field(description="The name of its state.")
    data: Any = pydantic.Field(description="What the state holds.")
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, view: library.StreamView) -> "Stream":
        return cls(
            number=view.number,
            name=view.name,
            machine=view.machine,
            version=view.version,
            state=view.state,
            data=view.data,
            created_at=view.created_at,
            updated_at=view.updated_at,
            ended_at=view.ended_at,
        )


class Event(pydantic.BaseModel):
    """Something that happened to a stream."""

    stream: str
    seq: int
    type: str
    version: int = pydantic.Field(description="The shape of the data, counted from 1.")
    data: Any
    cause: str = pydantic.Field(description="The command, effect or timer behind it.")
    at: datetime
    place: str = pydantic.Field(description="Its place in the feed of all events.")

    @classmethod
    def of(cls, view: library.EventView) -> "Event":
        return cls(
            stream=view.stream,
            seq=view.seq,
            type=view.type,
            version=view.version,
            data=view.data,
            cause=view.cause,
            at=view.at,
            place=str(view.place),
        )


class Effect(pydantic.BaseModel):
    """Something asked of the world that is not settled yet."""

    id: str
    stream: str
    type: str
    data: Any
    attempts: int
    due_at: datetime
    held: bool = pydantic.Field(description="Whether a worker has it in hand.")
    dead_at: datetime | None = pydantic.Field(
        description="Set when it was given up; retry or discard it."
    )
    error: str | None

    @classmethod
    def of(cls, view: library.EffectView) -> "Effect":
        return cls(
            id=view.id,
            stream=view.stream,
            type=view.type,
            data=view.data,
            attempts=view.attempts,
            due_at=view.due_at,
            held=view.held,
            dead_at=view.dead_at,
            error=view.error,
        )


class Worker(pydantic.BaseModel):
    """A process at work."""

    fence: int
    name: str
    lease_until: datetime


class Word(pydantic.BaseModel):
    """One type that a machine speaks."""

    name: str
    version: int
    about: str
    json_schema: dict[str, Any] | None


class Machine(pydantic.BaseModel):
    """One kind of stream with its words."""

    name: str
    effects_in_order: bool
    states: Sequence[Word]
    commands: Sequence[Word]
    events: Sequence[Word]
    effects: Sequence[Word]


class Command(pydantic.BaseModel):
    """A command for a stream."""

    model_config = pydantic.ConfigDict(extra="forbid")

    type: str = pydantic.Field(description="A command of the stream's machine.")
    data: Any = pydantic.Field(default_factory=dict, description="The command's fields.")
    id: str | None = pydantic.Field(
        None, description="Your name for it: the same id twice is taken once."
    )


class Receipt(pydantic.BaseModel):
    """The recorded answer to a command."""

    stream: str
    events: int = pydantic.Field(description="How many events it made; 0 changed nothing.")
    first: int
    last: int
    duplicate: bool = pydantic.Field(description="Whether it had been taken before.")

    @classmethod
    def of(cls, receipt: messages.Receipt) -> "Receipt":
        return cls(
            stream=receipt.stream,
            events=receipt.events,
            first=receipt.first,
            last=receipt.last,
            duplicate=receipt.duplicate,
        )


class Row(pydantic.BaseModel):
    """One row of a projection."""

    key: str
    data: Any


class Caller(pydantic.BaseModel):
    """Who you are to us."""

    name: str
    role: str
    token: str | None


class Fault(pydantic.BaseModel):
    """Why a request was refused or failed."""

    message: str
    hint: str = pydantic.Field(description="The next thing to try.")
    code: str


class Failure(pydantic.BaseModel):
    """Every answer that is no success."""

    error: Fault


class Health(pydantic.BaseModel):
    """Whether the process lives."""

    status: str
    version: str


class Readiness(pydantic.BaseModel):
    """Whether it can do its work now, and if not, why."""

    ready: bool
    reasons: list[str]
