"""Messages to JSON and back, by type name and version.

Old rows stay readable for ever: a row carries the version it was written in, and the
machine's upcasters lift its plain data step by step to the shape of today.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead import errors
from fairlead.engine import machine as machines
from fairlead.engine import messages

# What an upcaster runs into when the data is not of the shape it was written for.
_MISREAD = (LookupError, TypeError, ValueError, AttributeError)


class Encoded(msgspec.Struct, frozen=True, gc=False):
    """A message as a row keeps it."""

    type: str
    version: int
    data: str


@dataclass(frozen=True, slots=True)
class _Word:
    type: type
    name: str
    version: int
    decoder: msgspec.json.Decoder[Any]


class Codec:
    """The words of one machine, each kind (state, command, …) a namespace of its own."""

    def __init__(self, machine: machines.AnyMachine) -> None:
        self._machine = machine
        vocabulary = machine.vocabulary
        self.states = self._lexicon("state", vocabulary.states)
        self.commands = self._lexicon("command", vocabulary.commands)
        self.events = self._lexicon("event", vocabulary.events)
        self.effects = self._lexicon("effect", vocabulary.effects)

    def _lexicon(self, kind: str, union: Any) -> "Lexicon":
        words = [
            _Word(each, each.__name__, self._machine.versions.get(each, 1), _decoder(each))
            for each in machines.members(union)
        ]
        return Lexicon(f"{self._machine.name} {kind}", words, self._machine.upcasters)


class Lexicon:
    """Encodes and decodes one kind of message."""

    def __init__(
        self,
        what: str,
        words: list[_Word],
        upcasters: Mapping[tuple[str, int], machines.Upcaster],
    ) -> None:
        self._what = what
        self._by_type = {word.type: word for word in words}
        self._by_name: dict[str, _Word] = {}
        for word in words:
            self._learn(word, upcasters)
        self._upcasters = upcasters
        self._encode = msgspec.json.Encoder().encode

    def _learn(self, word: _Word, upcasters: Mapping[tuple[str, int], machines.Upcaster]) -> None:
        """Refuse at the start what could only fail when an old row is read."""
        if word.name in self._by_name:
            raise ValueError(f"two types of one name: {self._what} {word.name}")
        missing = [v for v in range(1, word.version) if (word.name, v) not in upcasters]
        if missing:
            raise ValueError(f"no upcaster: {self._what} {word.name} from version {missing[0]}")
        self._by_name[word.name] = word

    @property
    def types(self) -> tuple[type, ...]:
        return tuple(self._by_type)

    def check(self, message: object) -> _Word:
        """The word for a message; Rejected where this machine does not know it."""
        word = self._by_type.get(type(message))
        if word is None:
            raise errors.Rejected(
                f"not a {self._what}: {type(message).__name__}",
                hint=f"use one of: {', '.join(sorted(self._by_name))}",
            )
        return word

    def encode(self, message: object) -> Encoded:
        word = self.check(message)
        try:
            data = self._encode(message)
        except (TypeError, ValueError, OverflowError) as error:
            raise errors.Rejected(
                f"{self._what} {word.name} cannot be written: {error}",
                hint="use only well-formed text, numbers, lists and the types of the machine",
            ) from error
        if len(data) > messages.MAX_PAYLOAD_BYTES:
            raise errors.Rejected(
                f"{self._what} {word.name} is too large: {len(data)} bytes",
                hint=f"keep it under {messages.MAX_PAYLOAD_BYTES} bytes; store large data outside",
            )
        return Encoded(word.name, word.version, data.decode())

    def decode(self, row: Encoded) -> Any:
        """What a row holds; Corrupt where it does not hold what it says."""
        word = self._by_name.get(row.type)
        if word is None:
            raise self._corrupt(row, "unknown type")
        if row.version > word.version:
            raise self._corrupt(row, f"newer than this program's version {word.version}")
        try:
            if row.version == word.version:
                return word.decoder.decode(row.data)
            return msgspec.convert(self._lift(row, word), word.type)
        except (msgspec.MsgspecError, *_MISREAD) as error:
            raise self._corrupt(row, str(error)) from error

    def parse(self, name: str, data: Any) -> Any:
        """A message from outside as plain data; Rejected where it is not well formed."""
        word = self._by_name.get(name)
        if word is None:
            known = ", ".join(sorted(self._by_name))
            raise errors.Rejected(f"not a {self._what}: {name[:80]}", hint=f"use one of: {known}")
        try:
            return msgspec.convert(data, word.type)
        except msgspec.ValidationError as error:
            raise errors.Rejected(
                f"malformed {self._what} {name}: {error}", hint="see the type's fields"
            ) from error

    def _lift(self, row: Encoded, word: _Word) -> Any:
        data = msgspec.json.decode(row.data)
        for version in range(row.version, word.version):
            data = self._upcasters[row.type, version](data)
        return data

    def _corrupt(self, row: Encoded, why: str) -> errors.Corrupt:
        return errors.Corrupt(
            f"cannot read {self._what} {row.type} version {row.version}: {why}",
            hint="run the version of fairlead that wrote it, or restore the row from a backup",
        )


def _decoder(of: type) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(of)
