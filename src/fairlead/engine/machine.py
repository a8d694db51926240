"""The contract of a durable machine: pure functions and the words they speak.

The engine gives a machine memory; the machine gives the engine decisions. Both functions
must be total and deterministic: the same state and command always give the same decision,
because a batch that lost a race is decided again.
"""

import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from fairlead import errors
from fairlead.engine import messages

State = TypeVar("State")
Command = TypeVar("Command")
Event = TypeVar("Event")

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
AttributeValue = str | int | bool | datetime
AttributeKind = type[str] | type[int] | type[bool] | type[datetime] | tuple[str, ...]
"""The type of an attribute, or the only texts that it may be."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The types a machine writes down: each a class or a union of classes."""

    states: Any
    commands: Any
    events: Any
    effects: Any = None
    verbs: Any = None
    """Those of the commands that people may give from outside; where one has a field `by`, it is
    the caller's name. All others are for machines, handlers and timers."""


@dataclass(frozen=True, slots=True)
class Attributes(Generic[State]):
    """What streams of a machine are found by; their rows are written with its state."""

    kinds: Mapping[str, AttributeKind]
    of: Callable[[State], Mapping[str, AttributeValue]]
    """Pure and total; a name that is left out has no row."""

    version: int = 1
    """Raise it when `of` gives something else for the same state: all rows are then rebuilt."""


@dataclass(frozen=True, slots=True)
class Machine(Generic[State, Command, Event]):
    """One kind of stream: how it starts, decides, remembers and ends."""

    name: str
    initial: State
    decide: Callable[[State, Command, datetime], messages.Decision]
    evolve: Callable[[State, Event], State]
    vocabulary: Vocabulary
    ended: Callable[[State], bool] = lambda _: False
    effects_in_order: bool = False
    """Ask for one effect at a time per stream, in the order they were decided."""

    versions: Mapping[type, int] = field(default_factory=dict)
    """The current shape of a type, counted from 1; absent means 1."""

    upcasters: Mapping[tuple[str, int], Upcaster] = field(default_factory=dict)
    """From (type name, old version) to the next version's shape."""

    attributes: Attributes[State] | None = None
    addressed: Callable[[messages.StreamName, Command], None] = lambda _stream, _command: None
    """Raises Rejected where a command says a name that is not the key of the stream it came to."""

    children: tuple[str, ...] = ()
    """The machines that it starts and cancels; each must know `messages.Cancel`."""


AnyMachine = Machine[Any, Any, Any]


class Machines:
    """The machines one engine runs, by name."""

    def __init__(self, machines: Iterable[AnyMachine]) -> None:
        self._by_name: dict[str, AnyMachine] = {}
        for machine in machines:
            if self._by_name.setdefault(machine.name, machine) is not machine:
                raise ValueError(f"two machines of one name: {machine.name}")

    def __iter__(self) -> typing.Iterator[AnyMachine]:
        return iter(self._by_name.values())

    def named(self, name: str) -> AnyMachine:
        machine = self._by_name.get(name)
        if machine is None:
            known = ", ".join(sorted(self._by_name)) or "none"
            raise errors.NotFound(f"no such machine: {name}", hint=f"known machines: {known}")
        return machine

    def of(self, stream: str) -> AnyMachine:
        return self.named(stream.partition("/")[0])


def members(union: Any) -> tuple[type, ...]:
    """The classes of a union, of one class alone, or of none."""
    if union is None:
        return ()
    if typing.get_origin(union) in (typing.Union, types.UnionType):
        return typing.get_args(union)
    return (union,)
