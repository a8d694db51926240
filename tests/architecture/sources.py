"""Our Python files, read and parsed once for all the checks in this folder."""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOPS = ("src", "tests", "bench", "tools")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Source:
    """One file: where it stands in the repository, its text and its tree."""

    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return _parse(self.text, self.path)

    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    def place(self, node: ast.stmt | ast.expr) -> str:
        return f"{self.path}:{node.lineno}"


@functools.cache
def sources(*tops: str) -> tuple[Source, ...]:
    """All our files below these folders, or below all of them."""
    paths = sorted(path for top in tops or TOPS for path in (ROOT / top).rglob("*.py"))
    return tuple(read(path) for path in paths)


def read(path: Path) -> Source:
    return Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


@functools.cache
def _parse(text: str, path: str) -> ast.Module:
    return ast.parse(text, filename=path)
