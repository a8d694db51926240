"""What the API says, as types: the OpenAPI description is made from these."""

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

import pydantic

from fairlead.engine import messages, visibility

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
    queue: str = pydantic.Field("", description="Whose workers perform its effects.")
    kept_from: int = pydantic.Field(
        1, description="Its first event in the store; earlier ones are in an archive."
    )

    @classmethod
    def of(cls, view: visibility.StreamView) -> "Stream":
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
            queue=view.queue,
            kept_from=view.kept_from,
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
    def of(cls, view: visibility.EventView) -> "Event":
        return cls(**view.told())


class EventPage(Page[Event]):
    """Some events of one stream."""

    kept_from: int = pydantic.Field(
        description="The stream's first event in the store; earlier ones are in an archive."
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
    queue: str = pydantic.Field("", description="Whose workers perform it.")

    @classmethod
    def of(cls, view: visibility.EffectView) -> "Effect":
        return cls(**view.told())


class Timer(pydantic.BaseModel):
    """A timer that has not fired."""

    stream: str
    name: str
    command: str = pydantic.Field(description="What its stream is told.")
    attempts: int
    due_at: datetime
    held: bool = pydantic.Field(description="Whether a worker has it in hand.")
    dead_at: datetime | None = pydantic.Field(
        description="Set when its stream refused it too often; retry or discard it."
    )
    error: str | None

    @classmethod
    def of(cls, view: visibility.TimerView) -> "Timer":
        return cls(**dataclasses.asdict(view))


class TimerName(pydantic.BaseModel):
    """Which timer."""

    model_config = pydantic.ConfigDict(extra="forbid")

    stream: str
    name: str


class Worker(pydantic.BaseModel):
    """A process at work."""

    fence: int
    name: str
    lease_until: datetime
    queues: list[str] = pydantic.Field(
        description="Those it serves; empty is the one of streams that have none."
    )


class Queue(pydantic.BaseModel):
    """What waits in a queue, and who is there to do it."""

    name: str = pydantic.Field(description="Empty for streams that have none.")
    waiting: int = pydantic.Field(description="Effects that no worker has in hand.")
    oldest: datetime | None = pydantic.Field(description="When the first of them was due.")
    workers: list[str] = pydantic.Field(description="Living workers that serve it.")
    unserved: list[str] = pydantic.Field(
        description="Effects, as MACHINE TYPE, that wait and that no living worker performs."
    )
    unserved_since: datetime | None
    problem: str | None = pydantic.Field(
        description="What a person should hear: work that nobody has served for a while."
    )

    @classmethod
    def of(cls, view: visibility.QueueView, now: datetime) -> "Queue":
        return cls(
            name=view.name,
            waiting=view.waiting,
            oldest=view.oldest,
            workers=list(view.workers),
            unserved=list(view.unserved),
            unserved_since=view.unserved_since,
            problem=view.problem(now),
        )


class Move(pydantic.BaseModel):
    """Where a stream is to go."""

    model_config = pydantic.ConfigDict(extra="forbid")

    queue: str = pydantic.Field(description="KIND@PLACE; empty for none.")


class Moved(pydantic.BaseModel):
    """A stream in its new queue."""

    stream: str
    queue: str
    effects: int = pydantic.Field(description="How many unsettled effects went along.")


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
    attributes: Mapping[str, str | list[str]] = pydantic.Field(
        description="What `where` finds its streams by: each name with its type or its values."
    )
    states: Sequence[Word]
    commands: Sequence[Word]
    events: Sequence[Word]
    effects: Sequence[Word]


class Command(pydantic.BaseModel):
    """A command for a stream."""

    model_config = pydantic.ConfigDict(extra="forbid")

    type: str = pydantic.Field(description="A verb of the stream's machine.")
    data: Any = pydantic.Field(default_factory=dict, description="The command's fields.")
    id: str | None = pydantic.Field(
        None, description="Your name for it: the same id twice is taken once."
    )
    queue: str = pydantic.Field(
        "", description="The queue of a stream that this creates; one that exists keeps its own."
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
    scope: str = pydantic.Field(
        description="The project or namespace the role is good for; empty is everywhere."
    )


class Problem(pydantic.BaseModel):
    """One mistake in what was handed in."""

    path: str = pydantic.Field(description="Of its field, such as `strategy.steps[0]`.")
    message: str
    hint: str


class Fault(pydantic.BaseModel):
    """Why a request was refused or failed."""

    message: str
    hint: str = pydantic.Field(description="The next thing to try.")
    code: str
    problems: list[Problem] | None = pydantic.Field(
        None, description="Each mistake, where the code is `invalid`."
    )


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
    age_seconds: float = pydantic.Field(description="How long ago that was found out.")
