"""The numbered requirements and the tests that show them.

One line of ours per requirement stands in tests/requirements/<area>.toml. Tests name the
ids in `@pytest.mark.requirement("canary R12")`. Here both are read, the tests without
being run, for the page in docs/reference and for the checks in tests/docs.
"""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AREAS = ("canary", "deployer", "content", "resources", "gitops")
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Area:
    """One area of the reference: its requirements by id, and whether it says it is done."""

    name: str
    title: str
    done: bool
    requirements: dict[str, str]

    def ids(self) -> tuple[str, ...]:
        """The ids as tests name them, in the order of the reference."""
        return tuple(f"{self.name} {number}" for number in self.requirements)


@dataclass(frozen=True, slots=True)
class Shown:
    """A requirement and the test that says it shows it."""

    requirement: str
    file: str
    test: str


def areas(folder: Path = ROOT / "tests" / "requirements") -> tuple[Area, ...]:
    return tuple(read_area(folder / f"{name}.toml") for name in AREAS)


def read_area(path: Path) -> Area:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return Area(path.stem, data["title"], data["done"], data["requirements"])


def known(found: tuple[Area, ...]) -> frozenset[str]:
    return frozenset(requirement for area in found for requirement in area.ids())


def shown(root: Path = ROOT) -> tuple[Shown, ...]:
    """Every mark in every test file under `root`/tests, sorted."""
    files = sorted((root / "tests").rglob("test_*.py"))
    return tuple(sorted(set(_marks(files, root)), key=_place))


def missing(found: tuple[Area, ...], marks: tuple[Shown, ...]) -> tuple[str, ...]:
    """Ids without a test, in the areas that say they are done."""
    proven = {mark.requirement for mark in marks}
    done = (requirement for area in found if area.done for requirement in area.ids())
    return tuple(requirement for requirement in done if requirement not in proven)


def _place(one: Shown) -> tuple[str, str, str]:
    # The id as well: a set of marks has another order in every process.
    return one.file, one.test, one.requirement


def _marks(files: list[Path], root: Path) -> Iterator[Shown]:
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        file = path.relative_to(root).as_posix()
        for test, call in _calls(tree, ""):
            for argument in call.args:
                yield Shown(_literal(argument, file), file, test)


def _calls(node: ast.AST, scope: str) -> Iterator[tuple[str, ast.Call]]:
    """Mark calls below `node`, each with the test, class or (empty) module it stands on."""
    for child in ast.iter_child_nodes(node):
        inner = scope
        if isinstance(child, Scope):
            inner = f"{scope}::{child.name}" if scope else child.name
        if isinstance(child, ast.Call) and _is_mark(child.func) and _is_test(scope):
            yield scope, child
        yield from _calls(child, inner)


def _is_mark(function: ast.expr) -> bool:
    return ast.unparse(function).endswith("mark.requirement")


def _is_test(scope: str) -> bool:
    """A test, a class of tests or the whole file; a fixture shows nothing."""
    return not scope or scope.rpartition("::")[2].lower().startswith("test")


def _literal(argument: ast.expr, file: str) -> str:
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return argument.value
    place = f"{file}:{argument.lineno}"
    raise ValueError(f"a requirement mark takes plain strings, so that it can be read: {place}")
