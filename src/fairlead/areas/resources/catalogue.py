"""What was ingested, in one file: an index, then each type by itself.

A start reads the index alone, a few hundred kilobytes for thousands of types, and a type when it
is asked for. The file is replaced whole, so a reader never sees half of one.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from fairlead import errors, values
from fairlead.areas.resources.domain.hooks import NO_HOOKS, Hooks
from fairlead.areas.resources.domain.model import Model
from fairlead.areas.resources.domain.reading import ResourceType

_FORMAT = 2
_AT = "@"
_PREVIEW = "preview"
_MOST_MODELS = 64


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One type in the index."""

    type: str
    version: str
    url: str
    verbs: list[str]
    parent: str | None
    offset: int
    length: int


class _Index(msgspec.Struct, frozen=True):
    format: int
    sources: dict[str, tuple[int, int]]
    """Size and time of change of each file that was read."""

    entries: list[Entry]


class Catalogue:
    """A file that was written by `write`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with path.open("rb") as file:
                line = file.readline()
                self._begin = file.tell()
            self._index = msgspec.json.decode(line, type=_Index)
        except FileNotFoundError as error:
            raise errors.NotFound(
                "nothing was ingested", hint="read descriptions with fairlead resources ingest PATH"
            ) from error
        except msgspec.DecodeError as error:
            raise _unreadable(path) from error
        if self._index.format != _FORMAT:
            raise _unreadable(path)

    @property
    def entries(self) -> Sequence[Entry]:
        return self._index.entries

    def is_of(self, files: Sequence[Path]) -> bool:
        """Whether it was made from exactly these files, as they are now."""
        return self._index.sources == _sources(files)

    def find(self, name: str) -> ResourceType:
        """`TYPE` in its newest version, stable before preview; or `TYPE@VERSION`."""
        type_, _, version = name.partition(_AT)
        of_type = [each for each in self.entries if each.type.lower() == type_.lower()]
        if not of_type:
            known = {each.type.lower(): each.type for each in self.entries}
            near = values.nearest(type_.lower(), known)
            hint = f"did you mean {known[near]}?" if near else "fairlead resources kinds lists all"
            raise errors.NotFound(f"no such type of resource: {type_}", hint=hint)
        chosen = [each for each in of_type if version in ("", each.version)]
        if not chosen:
            there = ", ".join(sorted({each.version for each in of_type}))
            raise errors.NotFound(
                f"no such version of {of_type[0].type}: {version}", hint=f"there are: {there}"
            )
        return self._read(max(chosen, key=_rank))

    def _read(self, entry: Entry) -> ResourceType:
        with self._path.open("rb") as file:
            file.seek(self._begin + entry.offset)
            data = file.read(entry.length)
        try:
            return msgspec.json.decode(data, type=ResourceType)
        except msgspec.DecodeError as error:
            raise _unreadable(self._path) from error


class Models:
    """Types by name and version, decoded once; read again when the file was replaced."""

    def __init__(self, path: Path, hooks: Hooks = NO_HOOKS) -> None:
        self._path, self._hooks = path, hooks
        self._of = 0
        self._known: dict[tuple[str, str], Model] = {}

    def model(self, type_: str, version: str) -> Model:
        """Of this version; the newest where that is empty."""
        changed = self._path.stat().st_mtime_ns if self._path.exists() else 0
        if changed != self._of or len(self._known) >= _MOST_MODELS:
            self._of, self._known = changed, {}
        key = (type_.lower(), version)
        if key not in self._known:
            found = Catalogue(self._path).find(f"{type_}{_AT}{version}")
            self._known[key] = Model.of(found, self._hooks)
        return self._known[key]


def write(path: Path, types: Iterable[ResourceType], files: Sequence[Path]) -> int:
    """Replace the file; how many types it has now."""
    entries: list[Entry] = []
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=path.parent) as bodies:
        for each in types:
            data = msgspec.json.encode(each)
            about = (each.type, each.version, each.url, each.verbs, each.parent)
            entries.append(Entry(*about, bodies.tell(), len(data)))
            bodies.write(data)
        bodies.seek(0)
        index = msgspec.json.encode(_Index(_FORMAT, _sources(files), entries))
        beside = path.with_name(f"{path.name}.{os.getpid()}.new")
        try:
            with beside.open("wb") as file:
                file.write(index + b"\n")
                while block := bodies.read(1 << 20):
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                beside.unlink()
    return len(entries)


def _sources(files: Sequence[Path]) -> dict[str, tuple[int, int]]:
    found = {}
    for each in files:
        about = each.stat()
        found[str(each.resolve())] = (about.st_size, about.st_mtime_ns)
    return found


def _rank(entry: Entry) -> tuple[bool, str, bool, int]:
    """Stable and new first; of several URLs of one type that in a resource group."""
    in_group = "/resourcegroups/" in entry.url.lower()
    return (_PREVIEW not in entry.version, entry.version, in_group, len(entry.url))


def _unreadable(path: Path) -> errors.Corrupt:
    return errors.Corrupt(
        f"not a catalogue of this version: {path}", hint="ingest the descriptions again"
    )
