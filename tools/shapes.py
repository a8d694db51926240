"""Every shape that is kept, in a store or in a status, as it was: `make shapes` adds what is new.

tests/shapes/MACHINE.json names each persisted type with its versions, and the fields of each with
types and defaults; what is nested in it stands below, by name and a digest of its own fields. So a
change anywhere inside a state is a change of that state. MACHINE.rows.jsonl has one example row for
each version, which today's program must be able to read. A rollout's states stand there once more,
as the `memory` in the status of its object, under a version of their own (`status_codec.SHAPE`).

What stands there is never changed by this tool: a changed shape needs a version of its own, for
programs of before and after run on one store, and rows outlive them both.
"""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from fairlead import bootstrap, errors
from fairlead.areas.rollouts.domain import status_codec
from fairlead.engine import codec
from fairlead.engine.machine import AnyMachine

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "shapes"
MEMORY = "memory"
REMEMBERED = "rollout"
"""The machine whose states a status remembers."""

Fields = dict[str, str]
_PLAIN: dict[type[inspect.Type], Any] = {
    inspect.AnyType: "any",
    inspect.BoolType: True,
    inspect.DateTimeType: "2030-01-01T00:00:00Z",
    inspect.DateType: "2030-01-01",
    inspect.FloatType: 0.5,
    inspect.IntType: 1,
    inspect.NoneType: None,
    inspect.StrType: "a",
    inspect.TimeDeltaType: "PT1S",
    inspect.TimeType: "09:00:00",
}
"""An example of each plain type, as JSON has it."""


@dataclass(slots=True)
class Book:
    """The shapes of one machine: versions of each type, then the fields of each shape."""

    types: dict[str, dict[int, str]] = field(default_factory=dict)
    shapes: dict[str, Fields] = field(default_factory=dict)
    rows: dict[tuple[str, int], Any] = field(default_factory=dict)
    """An example for each type and version, as plain data."""

    def prune(self) -> None:
        """Drop shapes and rows that no version is written in any more."""
        used = set[str]()
        todo = [label for versions in self.types.values() for label in versions.values()]
        while todo:
            label = todo.pop()
            used.add(label)
            text = " ".join(self.shapes[label].values())
            todo += [each for each in self.shapes if each in text and each not in used]
        self.shapes = {label: self.shapes[label] for label in sorted(used)}
        kept = {(type_, v) for type_, versions in self.types.items() for v in versions}
        self.rows = {key: data for key, data in sorted(self.rows.items()) if key in kept}


def current(machine: AnyMachine) -> Book:
    """The shapes of today."""
    book = Book()
    for kind, each in _words(machine):
        label = _text(inspect.type_info(each), book.shapes)
        version = machine.versions.get(each, 1)
        book.types[f"{kind} {each.__name__}"] = {version: label}
        book.rows[f"{kind} {each.__name__}", version] = _example(machine, kind, each)
        if kind == "state" and machine.name == REMEMBERED:
            # An operator of another release may read it, and would drop what it does not know.
            book.types[f"{MEMORY} {each.__name__}"] = {status_codec.SHAPE: label}
            example = book.rows[f"{kind} {each.__name__}", version]
            book.rows[f"{MEMORY} {each.__name__}", status_codec.SHAPE] = example
    return book


def faults(kept: Book, now: Book) -> Iterator[str]:
    """What changed without its version, each with what to do."""
    for type_, versions in now.types.items():
        ((version, label),) = versions.items()
        before = kept.types.get(type_, {})
        if before.get(version, label) != label:
            is_memory = type_.startswith(MEMORY)
            raised = "raise status_codec.SHAPE" if is_memory else "raise it in Machine.versions"
            yield (
                f"{type_} changed and is still version {version}: {raised}, add"
                f" {'a lift' if is_memory else 'an upcaster'} from {version}, run make shapes;"
                f" where version {version} was never released, delete it from the file instead"
            )
        elif version not in before:
            yield f"{type_} version {version} is new: run make shapes"
    for type_ in kept.types.keys() - now.types.keys():
        yield (
            f"{type_} is gone, and rows of it may exist: keep it; where it was never released,"
            " delete it from the file"
        )


def add(kept: Book, now: Book) -> None:
    """Take in new types and versions; what is there stays."""
    for type_, versions in now.types.items():
        known = kept.types.setdefault(type_, {})
        for version, label in versions.items():
            if known.setdefault(version, label) == label:
                kept.rows.setdefault((type_, version), now.rows[type_, version])
    kept.shapes |= {label: each for label, each in now.shapes.items() if label not in kept.shapes}
    kept.prune()


def unreadable(machine: AnyMachine, kept: Book) -> Iterator[str]:
    """Example rows that today's program cannot read."""
    codecs = _codecs(machine)
    for type_, versions in kept.types.items():
        kind, name = type_.split()
        for version in versions:
            if (type_, version) not in kept.rows:
                yield f"{type_} version {version} has no example row: run make shapes"
                continue
            data = kept.rows[type_, version]
            try:
                if kind == MEMORY:
                    status_codec.load({"shape": version, "state": name, "data": data})
                else:
                    text = msgspec.json.encode(data).decode()
                    codecs[kind].decode(codec.Encoded(name, version, text))
            except errors.FairleadError as error:
                yield f"{error.message}: mend its upcaster, or its example row by hand"


def read(machine: str, folder: Path = FOLDER) -> Book:
    shapes, rows = _files(machine, folder)
    if not shapes.exists():
        return Book()
    book = msgspec.json.decode(shapes.read_bytes(), type=Book)
    for line in rows.read_text().splitlines():
        type_, version, data = msgspec.json.decode(line)
        book.rows[type_, version] = data
    return book


def write(machine: str, book: Book, folder: Path = FOLDER) -> None:
    shapes, rows = _files(machine, folder)
    told = msgspec.json.encode({"types": book.types, "shapes": book.shapes})
    shapes.write_bytes(msgspec.json.format(told, indent=1) + b"\n")
    lines = (msgspec.json.encode([*key, data]) for key, data in book.rows.items())
    rows.write_bytes(b"".join(line + b"\n" for line in lines))


def main() -> int:
    found: list[str] = []
    for machine in bootstrap.installation().machines:
        kept, now = read(machine.name), current(machine)
        add(kept, now)
        write(machine.name, kept)
        told = (*faults(kept, now), *unreadable(machine, kept))
        found += [f"{machine.name} {each}" for each in told]
    for each in found:
        print(f"shapes: {each}", file=sys.stderr)
    return bool(found)


def _files(machine: str, folder: Path) -> tuple[Path, Path]:
    return folder / f"{machine}.json", folder / f"{machine}.rows.jsonl"


def _codecs(machine: AnyMachine) -> dict[str, codec.MessageCodec]:
    made = codec.Codec(machine)
    return {
        "state": made.states,
        "command": made.commands,
        "event": made.events,
        "effect": made.effects,
    }


def _words(machine: AnyMachine) -> Iterator[tuple[str, type]]:
    for kind, message_codec in _codecs(machine).items():
        for each in message_codec.types:
            yield kind, each


def _text(info: inspect.Type, shapes: dict[str, Fields]) -> str:
    """A type in words; the fields of what it holds are put down in shapes."""
    match info:
        case inspect.DataclassType() | inspect.StructType():
            text = _label(info, shapes)
        case inspect.UnionType():
            text = " | ".join(_text(each, shapes) for each in info.types)
        case inspect.DictType():
            text = f"dict[{_text(info.key_type, shapes)}, {_text(info.value_type, shapes)}]"
        case inspect.TupleType():
            text = f"tuple[{', '.join(_text(each, shapes) for each in info.item_types)}]"
        case inspect.VarTupleType():
            text = f"tuple[{_text(info.item_type, shapes)}, ...]"
        case inspect.CollectionType():
            text = f"{_name(info)}[{_text(info.item_type, shapes)}]"
        case inspect.EnumType():
            text = f"{info.cls.__name__}({', '.join(repr(each.value) for each in info.cls)})"
        case _:
            text = f"{_name(info)}{_limits(info)}"
    return text


def _label(info: inspect.DataclassType | inspect.StructType, shapes: dict[str, Fields]) -> str:
    name = info.cls.__name__
    fields = {
        each.encode_name: f"{_text(each.type, shapes)}{_default(each)}" for each in info.fields
    }
    label = f"{name}#{hashlib.sha256(repr(fields).encode()).hexdigest()[:6]}"
    shapes[label] = fields
    return label


def _name(info: inspect.Type) -> str:
    return type(info).__name__.removesuffix("Type").lower()


def _limits(info: inspect.Type) -> str:
    given = [f"{name}={value!r}" for name, value in msgspec.structs.asdict(info).items() if value]
    return f"({', '.join(given)})" if given else ""


def _default(each: inspect.Field) -> str:
    if each.required:
        return ""
    factory = each.default_factory
    value = each.default if factory is msgspec.NODEFAULT else factory()
    return f" = {msgspec.json.encode(value).decode()}"


def _example(machine: AnyMachine, kind: str, each: type) -> Any:
    """A row with something in every field; with the defaults where that makes no sense."""
    info = inspect.type_info(each)
    message_codec = _codecs(machine)[kind]
    for full in (True, False):
        data = _sample(info, full=full)
        row = codec.Encoded(
            each.__name__, machine.versions.get(each, 1), msgspec.json.encode(data).decode()
        )
        try:
            message_codec.decode(row)
        except errors.FairleadError:
            continue
        return data
    return data


def _sample(info: inspect.Type, *, full: bool) -> Any:
    data: Any
    match info:
        case inspect.DataclassType() | inspect.StructType():
            wanted = (each for each in info.fields if full or each.required)
            data = {each.encode_name: _sample(each.type, full=full) for each in wanted}
        case inspect.UnionType():
            data = _sample(_telling(info.types), full=full)
        case inspect.DictType():
            data = {str(_sample(info.key_type, full=full)): _sample(info.value_type, full=full)}
        case inspect.TupleType():
            data = [_sample(each, full=full) for each in info.item_types]
        case inspect.CollectionType():
            data = [_sample(info.item_type, full=full)]
        case inspect.EnumType():
            data = next(iter(info.cls)).value
        case _:
            data = _PLAIN[type(info)]
    return data


def _telling(types: Sequence[inspect.Type]) -> inspect.Type:
    return next(each for each in types if not isinstance(each, inspect.NoneType))


if __name__ == "__main__":
    sys.exit(main())
