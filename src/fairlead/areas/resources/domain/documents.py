"""Descriptions by their file, and references among them.

A reference may name another file of the same tree and a place in it. One that leaves the tree, or
names a host, is refused: a description is somebody else's text.
"""

import posixpath
from collections.abc import Mapping
from typing import Any, NamedTuple

from fairlead.errors import Invalid, Problem

_LONGEST_CHAIN = 32


class Located(NamedTuple):
    """A part of a description, and where it stands."""

    file: str
    node: Any
    pointer: str = ""
    """The last reference that led here; empty where none did."""

    def part(self, node: Any) -> "Located":
        """Something inside, which no reference names."""
        return Located(self.file, node)


class Documents:
    """Files of one tree, read as they are asked for."""

    def __init__(self, files: Mapping[str, Any]) -> None:
        self._files = files
        self._found: dict[tuple[str, str], Located] = {}

    def document(self, file: str) -> Located:
        return Located(file, self._files[file])

    def resolved(self, at: Located) -> Located:
        """What the references at this place lead to at last; the place itself without one."""
        for _ in range(_LONGEST_CHAIN):
            if not isinstance(at.node, dict):
                raise refused(at.file, f"not an object: {at.node!r:.60}", "mend the description")
            reference = at.node.get("$ref")
            if reference is None:
                return at
            at = self._target(at.file, reference)
        raise refused(
            at.file, f"a circle of references: {at.pointer}", "let one of them be an object"
        )

    def _target(self, file: str, reference: Any) -> Located:
        key = (file, str(reference))
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._look_up(file, str(reference))
        return found

    def _look_up(self, file: str, reference: str) -> Located:
        place, _, pointer = reference.partition("#")
        target = self._beside(file, place, reference) if place else file
        try:
            node = self._files[target]
            for part in pointer.strip("/").split("/") if pointer.strip("/") else ():
                name = part.replace("~1", "/").replace("~0", "~")
                node = node[int(name)] if isinstance(node, list) else node[name]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            hint = "give the folder that holds both files" if place else "mend the reference"
            raise refused(file, f"reference to nothing: {reference}", hint) from error
        return Located(target, node, f"{target}#{pointer}")

    def _beside(self, file: str, place: str, reference: str) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), place))
        if "://" in place or place.startswith("/") or target.startswith(".."):
            raise refused(
                file,
                f"reference out of the tree: {reference}",
                "give the folder above both files; nothing is fetched from hosts",
            )
        return target


def refused(file: str, message: str, hint: str, path: str = "") -> Invalid:
    return Invalid([Problem(path, message, hint, file)])
