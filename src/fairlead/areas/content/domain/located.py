"""JSON files as plain data, and the line of every part of them."""

import json
import re
from collections.abc import Sequence
from typing import Any

from fairlead.errors import Invalid, Problem

Part = str | int
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


class Located:
    """One JSON file of a content."""

    def __init__(self, file: str, raw: bytes) -> None:
        self.file = file
        try:
            self._text = raw.decode("utf-8")
            self.data: Any = json.loads(self._text, parse_constant=_no_constant)
        except UnicodeDecodeError as error:
            line = raw[: error.start].count(b"\n") + 1
            raise _malformed(file, "not UTF-8", line, 1) from error
        except json.JSONDecodeError as error:
            raise _malformed(file, error.msg.lower(), error.lineno, error.colno) from error
        except (RecursionError, ValueError) as error:
            raise _malformed(file, str(error)[:80] or "nested too deeply", 1, 1) from error

    def problem(self, path: Sequence[Part], message: str, hint: str) -> Problem:
        """What is wrong with the part at the path, with its line and column."""
        at = self._find(path)
        line = self._text.count("\n", 0, at) + 1
        column = at - (self._text.rfind("\n", 0, at) + 1) + 1
        return Problem(_shown(path), message, hint, self.file, line, column)

    def _find(self, path: Sequence[Part]) -> int:
        """Where the part begins, or the innermost one around it that is there."""
        at = _skipped(self._text, 0)
        for part in path:
            inner = self._key(at, part) if isinstance(part, str) else self._item(at, part)
            if inner is None:
                return at
            at = inner
        return at

    def _key(self, at: int, wanted: str) -> int | None:
        """The last of that name, as JSON readers take it."""
        found = None
        text, at = self._text, _skipped(self._text, at + 1)
        while text[at] != "}":
            key, at = _DECODER.raw_decode(text, at)
            at = _skipped(text, _skipped(text, at) + 1)
            found = at if key == wanted else found
            _, at = _DECODER.raw_decode(text, at)
            at = _next(text, at)
        return found

    def _item(self, at: int, wanted: int) -> int | None:
        text, at = self._text, _skipped(self._text, at + 1)
        for _ in range(wanted):
            if text[at] == "]":
                return None
            _, at = _DECODER.raw_decode(text, at)
            at = _next(text, at)
        return None if text[at] == "]" else at


def _next(text: str, at: int) -> int:
    at = _skipped(text, at)
    return _skipped(text, at + 1) if text[at] == "," else at


def _skipped(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()


def _no_constant(name: str) -> None:
    raise ValueError(f"no JSON number: {name}")


def _malformed(file: str, said: str, line: int, column: int) -> Invalid:
    return Invalid([Problem("", f"not JSON: {said}", "mend the file", file, line, column)])


def _shown(path: Sequence[Part]) -> str:
    parts = (f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
    return "".join(parts).removeprefix(".")
