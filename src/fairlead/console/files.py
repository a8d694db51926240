"""Files that people hand in: read, parsed, and every mistake in them told at its line."""

import contextlib
import dataclasses
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import yaml

from fairlead import errors, validation

STDIN = "<stdin>"
_MOST_BYTES = 1024 * 1024
_MOST_NODES = 100_000
_PART = re.compile(r"[^.\[\]]+")


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """A YAML or JSON file as plain data, and where each part of it stands."""

    file: str
    content: Any
    root: yaml.Node | None
    twice: Sequence[errors.Problem] = ()
    """Fields that are given again: YAML would take the last one and say nothing."""

    @classmethod
    def read(cls, file: str) -> Self:
        """The file of this name, or standard input for `-`."""
        return cls.parse(shown(file), _text(file))

    @classmethod
    def parse(cls, file: str, text: str) -> Self:
        """The text of a file that was read by others."""
        loader = yaml.SafeLoader(text)
        try:
            root = loader.get_single_node()
            if root is not None:
                _check_size(file, root)
            # Before it is read, which writes what is merged into a map beside its own fields.
            twice = () if root is None else tuple(_twice(file, root, set()))
            content = None if root is None else loader.construct_document(root)
        except yaml.MarkedYAMLError as error:
            raise _malformed(file, error.problem or "", error.problem_mark) from error
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            # A day that no month has is a ValueError of the date itself.
            raise _malformed(file, str(error), None) from error
        finally:
            loader.dispose()
        return cls(file, content, root, twice)

    @property
    def folder(self) -> Path:
        """Where paths in the file start."""
        return Path.cwd() if self.file == STDIN else Path(self.file).resolve().parent

    @contextlib.contextmanager
    def placed(self) -> Iterator[None]:
        """Around whoever judges the content: mistakes are told with file and line, line by line."""
        try:
            yield
        except errors.Invalid as error:
            found = [*self.twice, *map(self._place, error.problems)]
            raise errors.Invalid(sorted(found, key=lambda each: each.line)) from error
        if self.twice:
            raise errors.Invalid(self.twice)

    def _place(self, problem: errors.Problem) -> errors.Problem:
        if self.root is None:
            return dataclasses.replace(problem, file=self.file)
        mark, node = _find(self.root, problem.path)
        hint = problem.hint
        if hint == validation.QUOTE and isinstance(node, yaml.ScalarNode):
            # As it was typed: 1.10 is more than the number 1.1.
            hint = f'{hint}: "{node.value}"'
        line, column = mark.line + 1, mark.column + 1
        return dataclasses.replace(problem, hint=hint, file=self.file, line=line, column=column)


def shown(file: str) -> str:
    """How a file is called in what is said of it."""
    return STDIN if file == "-" else file


def _find(root: yaml.Node, path: str) -> tuple[yaml.Mark, yaml.Node]:
    """Where the field stands, or the innermost one around it that is there, and its value."""
    mark, node = root.start_mark, root
    for part in _PART.findall(path):
        if isinstance(node, yaml.MappingNode):
            pair = next((each for each in node.value if each[0].value == part), None)
            if pair is None:
                break
            mark, node = pair[0].start_mark, pair[1]
        elif isinstance(node, yaml.SequenceNode) and part.isdecimal():
            node = node.value[int(part)]
            mark = node.start_mark
    return mark, node


def _twice(file: str, node: yaml.Node, known: set[int]) -> Iterator[errors.Problem]:
    if id(node) in known or not isinstance(node.value, list):
        return
    known.add(id(node))
    names: set[str] = set()
    for each in node.value:
        name, below = each if isinstance(each, tuple) else (None, each)
        if name is not None and isinstance(name.value, str):
            if name.value in names:
                place = name.start_mark.line + 1, name.start_mark.column + 1
                yield errors.Problem(name.value, "given twice", "keep one of them", file, *place)
            names.add(name.value)
        yield from _twice(file, below, known)


def _check_size(file: str, root: yaml.Node) -> None:
    """Invalid where anchors make a small file large: each is counted as often as it is named."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        if not isinstance(node.value, list):
            return 1
        if id(node) not in sizes:
            # Named within itself it has no end: until it is counted, it counts as too large.
            sizes[id(node)] = _MOST_NODES + 1
            pairs = (each if isinstance(each, tuple) else (each,) for each in node.value)
            counted = 1 + sum(map(size, itertools.chain.from_iterable(pairs)))
            sizes[id(node)] = min(counted, _MOST_NODES + 1)
        return sizes[id(node)]

    if size(root) > _MOST_NODES:
        raise _malformed(file, f"more than {_MOST_NODES} parts", root.start_mark)


def _malformed(file: str, said: str, mark: yaml.Mark | None) -> errors.Invalid:
    message = f"not YAML or JSON: {' '.join(said.split())[:300]}"
    place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    return errors.Invalid(
        [errors.Problem("", message, "check quotes and indentation", file, *place)]
    )


def _text(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read(_MOST_BYTES + 1) if file == "-" else Path(file).read_bytes()
        text = raw.decode()
    except OSError as error:
        raise errors.NotFound(
            f"cannot read the file: {file}: {error.strerror}", hint="name a YAML or JSON file"
        ) from error
    except UnicodeDecodeError as error:
        raise errors.Rejected(f"not a text in UTF-8: {file}", hint="save it as UTF-8") from error
    if len(raw) > _MOST_BYTES:
        raise errors.Rejected(f"larger than {_MOST_BYTES} bytes: {file}", hint="name another file")
    return text
