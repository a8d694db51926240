"""Messages to JSON and back, by type name and version.

Old rows stay readable for ever: a row carries the version it was written in, and the
machine's upcasters lift its plain data step by step to the shape of today. A row that a newer
program wrote is left to that one: a type, a version or a field that is unknown here is Newer,
not Corrupt, and never written over.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead import errors
from fairlead.engine import failures, messages, wellformed
from fairlead.engine import machine as machines


class Encoded(msgspec.Struct, frozen=True, gc=False):
    """A message as a row keeps it."""

    type: str
    version: int
    data: str


@dataclass(frozen=True, slots=True)
class _MessageType:
    type: type
    name: str
    version: int
    shape: wellformed.Shape
    decoder: msgspec.json.Decoder[Any]


class Codec:
    """The messages of one machine, each kind (state, command, …) a namespace of its own."""

    def __init__(self, machine: machines.AnyMachine) -> None:
        self._machine = machine
        vocabulary = machine.vocabulary
        self.states = self._codec_of("state", vocabulary.states)
        self.commands = self._codec_of("command", vocabulary.commands)
        self.events = self._codec_of("event", vocabulary.events)
        self.effects = self._codec_of("effect", vocabulary.effects)

    def _codec_of(self, kind: str, union: Any) -> "MessageCodec":
        known = [self._message_type(each) for each in machines.members(union)]
        return MessageCodec(f"{self._machine.name} {kind}", known, self._machine.upcasters)

    def _message_type(self, of: type) -> _MessageType:
        version = self._machine.versions.get(of, 1)
        shape = wellformed.Shape(of)
        return _MessageType(of, of.__name__, version, shape, msgspec.json.Decoder(of))


class MessageCodec:
    """Encodes and decodes one kind of message."""

    def __init__(
        self,
        what: str,
        known: list[_MessageType],
        upcasters: Mapping[tuple[str, int], machines.Upcaster],
    ) -> None:
        self._what = what
        self._by_type = {entry.type: entry for entry in known}
        self._by_name: dict[str, _MessageType] = {}
        for entry in known:
            self._learn(entry, upcasters)
        self._upcasters = upcasters
        self._encode = msgspec.json.Encoder().encode

    def _learn(
        self, entry: _MessageType, upcasters: Mapping[tuple[str, int], machines.Upcaster]
    ) -> None:
        """Refuse at the start what could only fail when an old row is read."""
        if entry.name in self._by_name:
            raise ValueError(f"two types of one name: {self._what} {entry.name}")
        missing = [v for v in range(1, entry.version) if (entry.name, v) not in upcasters]
        if missing:
            raise ValueError(f"no upcaster: {self._what} {entry.name} from version {missing[0]}")
        self._by_name[entry.name] = entry

    @property
    def types(self) -> tuple[type, ...]:
        return tuple(self._by_type)

    @property
    def readable(self) -> Iterator[tuple[type, str, int]]:
        """Every shape that can be decoded: its type, the name in a row, the version there."""
        for entry in self._by_type.values():
            for version in range(1, entry.version + 1):
                yield entry.type, entry.name, version

    def check(self, message: object) -> _MessageType:
        """The entry for a message; Rejected where this machine does not know it."""
        return self.check_type(type(message))

    def check_type(self, type_: type) -> _MessageType:
        entry = self._by_type.get(type_)
        if entry is None:
            raise errors.Rejected(
                f"not a {self._what}: {type_.__name__}",
                hint=f"use one of: {', '.join(sorted(self._by_name))}",
            )
        return entry

    def encode(self, message: object) -> Encoded:
        entry = self._by_type.get(type(message)) or self.check(message)
        try:
            data = self._encode(message)
            faulty = entry.shape.finder is not None and entry.shape.is_faulty(message, data)
        except (TypeError, ValueError, OverflowError, RecursionError, AttributeError) as error:
            why = wellformed.fault(message) or error
            raise errors.Rejected(
                f"{self._what} {entry.name} cannot be written: {why}",
                hint="use only well-formed text, numbers, lists and the types of the machine",
            ) from error
        if len(data) > messages.MAX_PAYLOAD_BYTES:
            raise errors.Rejected(
                f"{self._what} {entry.name} is too large: {len(data)} bytes",
                hint=f"keep it under {messages.MAX_PAYLOAD_BYTES} bytes; store large data outside",
            )
        if faulty:
            self._refuse_faulty(entry.name, message)
        return Encoded(entry.name, entry.version, data.decode())

    def essence(self, message: object) -> bytes:
        """What a message says, the same for all who say it: see wellformed.essence."""
        return _canonical(wellformed.essence(message))

    def decode(self, row: Encoded) -> Any:
        """What a row holds; Corrupt where it does not hold what it says."""
        entry = self._by_name.get(row.type)
        if entry is None:
            raise self._newer(row, "unknown type")
        if row.version > entry.version:
            raise self._newer(row, f"newer than this program's version {entry.version}")
        try:
            if row.version < entry.version:
                return msgspec.convert(self._lift(row, entry), entry.type)
            message = entry.decoder.decode(row.data)
            surplus = entry.shape.surplus(row.data)
        except MemoryError:
            raise
        except Exception as error:
            # Whatever an upcaster or a type's own checks raise: it is this row's fault alone.
            raise self._corrupt(row, failures.describe(error)) from error
        if surplus is not None:
            raise self._newer(row, f"unknown field {surplus}")
        return message

    def parse(self, name: str, data: Any) -> Any:
        """A message from outside as plain data; Rejected where it is not well formed."""
        entry = self._by_name.get(name)
        if entry is None:
            known = ", ".join(sorted(self._by_name))
            raise errors.Rejected(f"not a {self._what}: {name[:80]}", hint=f"use one of: {known}")
        self._refuse_faulty(name, data)
        try:
            return msgspec.convert(data, entry.type)
        except msgspec.ValidationError as error:
            raise errors.Rejected(
                f"malformed {self._what} {name}: {error}", hint="see the type's fields"
            ) from error

    def _refuse_faulty(self, name: str, value: object) -> None:
        fault = wellformed.fault(value)
        if fault is not None:
            raise errors.Rejected(
                f"{self._what} {name} holds {fault}",
                hint=f"use finite numbers, and at most {wellformed.MAX_DEPTH} levels of nesting",
            )

    def _lift(self, row: Encoded, entry: _MessageType) -> Any:
        data = msgspec.json.decode(row.data)
        for version in range(row.version, entry.version):
            data = self._upcasters[row.type, version](data)
        return data

    def _corrupt(self, row: Encoded, why: str) -> errors.Corrupt:
        return errors.Corrupt(self._unread(row, why), hint="restore the row from a backup")

    def _newer(self, row: Encoded, why: str) -> errors.Newer:
        return errors.Newer(
            self._unread(row, why),
            hint="it waits for the version of fairlead that wrote it: run that one, or a later one",
        )

    def _unread(self, row: Encoded, why: str) -> str:
        return f"cannot read {self._what} {row.type} version {row.version}: {why}"


_canonical = msgspec.json.Encoder(order="deterministic").encode
