"""What streams are found by: the values that a machine gives for a state, as rows keep them.

One column holds every type, as a text that sorts as its values do: whole numbers are shifted above
zero and padded, times are UTC of one length. A batch has the states before and after, so only what
changed is written, and nothing is read for it.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from fairlead.engine import machine as machines
from fairlead.engine.store import protocol

MOST_LETTERS = 200
"""Of a longer text, only so many letters count."""

RESERVED = ("machine", "and", "in")
"""Words that a filter needs for itself."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_SHIFT = 2**63


def check(machine: machines.AnyMachine) -> None:
    """Refuse at the start a name that no filter could say."""
    for name in machine.attributes.kinds if machine.attributes else ():
        if name in RESERVED or not _NAME.fullmatch(name):
            raise ValueError(f"not a name of an attribute: {machine.name} {name}")


def encode(value: machines.AttributeValue) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            if not -_SHIFT <= value < _SHIFT:
                raise ValueError(f"a number of more than 64 bits: {value}")
            return f"{value + _SHIFT:020d}"
        case datetime():
            if value.tzinfo is None:
                raise ValueError(f"a time without a zone: {value.isoformat()}")
            return value.astimezone(UTC).isoformat(timespec="microseconds")
        case str():
            # PostgreSQL keeps every letter but this one.
            return value[:MOST_LETTERS].replace("\0", "\N{REPLACEMENT CHARACTER}")


def values(machine: machines.AnyMachine, state: Any) -> dict[str, str]:
    """Every attribute that a state has, encoded."""
    declared = machine.attributes
    if declared is None:
        return {}
    return {name: _row(machine, name, value) for name, value in declared.of(state).items()}


def changes(
    machine: machines.AnyMachine, stream: int, before: Any, after: Any
) -> Iterator[protocol.NewAttribute]:
    """What must be written when a stream goes from one state, or from nothing, to another."""
    declared = machine.attributes
    if declared is None:
        return
    old = {} if before is None else declared.of(before)
    new = declared.of(after)
    for name, value in new.items():
        # Most steps change none of them, so only what differs is looked at closely.
        if name not in old or old[name] != value:
            yield protocol.NewAttribute(stream, machine.name, name, _row(machine, name, value))
    for name in old.keys() - new.keys():
        yield protocol.NewAttribute(stream, machine.name, name, None)


def _row(machine: machines.AnyMachine, name: str, value: machines.AttributeValue) -> str:
    """A value as it is kept; one that was not declared so is a fault of the machine."""
    kind = machine.attributes.kinds.get(name) if machine.attributes else None
    if not (value in kind if isinstance(kind, tuple) else type(value) is kind):
        raise ValueError(f"not as declared: attribute {name} of {machine.name}: {value!r}")
    return encode(value)
