"""Descriptions on disk: one tree of files, none from outside of it, none too large.

Files of one folder are read together, since they refer to each other, and are forgotten before
the next folder, so that thousands of them need no more memory than the largest folder.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairlead import errors, values
from fairlead.areas.resources.domain import reading
from fairlead.areas.resources.domain.classes import Overrides
from fairlead.areas.resources.domain.documents import Documents, refused
from fairlead.areas.resources.domain.reading import ResourceType

LARGEST = 32 << 20
_MARK = b"\xef\xbb\xbf"
_EXAMPLES = "examples"


class Tree(Mapping[str, Any]):
    """The files below a folder by their path in it, read when they are asked for."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._read: dict[str, Any] = {}

    def __getitem__(self, file: str) -> Any:
        if file not in self._read:
            self._read[file] = self._decoded(file)
        return self._read[file]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)

    def _decoded(self, file: str) -> Any:
        path = (self._root / file).resolve()
        if not path.is_relative_to(self._root):
            raise refused(file, "leads out of the tree", "put the file itself there, not a link")
        try:
            if path.stat().st_size > LARGEST:
                raise refused(file, f"larger than {LARGEST >> 20} MiB", "split the description")
            return msgspec.json.decode(path.read_bytes().removeprefix(_MARK))
        except FileNotFoundError as error:
            raise KeyError(file) from error
        except OSError as error:
            raise refused(file, error.strerror or "cannot be read", "check its rights") from error
        except (msgspec.DecodeError, RecursionError) as error:
            raise refused(file, f"no JSON: {error}", "mend the file; YAML is not read") from error


def files(paths: Sequence[Path]) -> list[Path]:
    """The files that were named, and all descriptions in folders that were."""
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise errors.NotFound(f"no such file or folder: {path}", hint="check the path")
        inside = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        found |= dict.fromkeys(
            each for each in inside if _EXAMPLES not in each.relative_to(path).parts
        )
    return list(found)


def read(
    root: Path, found: Sequence[Path], overrides: Mapping[str, Overrides]
) -> Iterator[ResourceType]:
    """The types of all files; what is wrong is told of all folders at once."""
    problems: list[errors.Problem] = []
    unused = dict(overrides)
    for _, group in itertools.groupby(found, key=lambda path: path.parent):
        tree = Tree(root)
        try:
            entries = [_relative(root, path) for path in group]
            entries = [each for each in entries if reading.is_description(tree[each])]
            for each in reading.read(Documents(tree), entries, overrides):
                problems += _unknown(each, unused.pop(each.type, {}))
                yield each
        except errors.Invalid as error:
            problems += error.problems
    for type_ in unused:
        problems.append(errors.Problem(type_, "override of an unknown type", "check its name"))
    if problems:
        raise errors.Invalid(problems)


def _unknown(read: ResourceType, overrides: Overrides) -> Iterator[errors.Problem]:
    known = {each.path for each in read.properties} if overrides else set()
    for path in overrides:
        if path not in known:
            near = values.nearest(path, known)
            hint = f"did you mean {near}?" if near else "fairlead resources describe lists all"
            yield errors.Problem(f"{read.type}: {path}", "override of an unknown property", hint)


def _relative(root: Path, path: Path) -> str:
    try:
        return path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError as error:
        raise refused(
            str(path), f"not in the tree: {root}", "give the folder that holds it with --tree"
        ) from error
