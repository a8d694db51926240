"""One set of effects for objects: areas write no status and no Event by themselves."""

import ast
from collections.abc import Iterable, Iterator

import pytest

from tests.architecture.sources import Source, sources

AREAS = "src/fairlead/areas/"
BESIDE = "src/fairlead/areas/rollouts/kubernetes/child_reconciler.py"
RUNTIME_ONLY = ("fairlead.kubernetes.writes.status", "fairlead.kubernetes.writes.events")
"""What only the runtime uses: the performer stands before both."""


def test_areas_publish_and_tell_through_the_runtime() -> None:
    assert list(bypasses(sources("src"))) == []


def test_one_loop_stands_beside_machines() -> None:
    assert {place.partition(":")[0] for place in loops(sources("src"))} == {BESIDE}


@pytest.mark.parametrize(
    "text",
    [
        "from fairlead.kubernetes.writes import status",
        "from fairlead.kubernetes.writes.events import Occurrence",
        "import fairlead.kubernetes.writes.status",
        "await client.patch(resource, key, change, subresource='status')",
    ],
)
def test_a_way_around_the_runtime_is_found(text: str) -> None:
    source = Source(f"{AREAS}lamps/kubernetes.py", f"async def write():\n    {text}\n")

    assert len(list(bypasses([source]))) == 1


def test_a_second_loop_is_found() -> None:
    text = "class Lamps:\n    async def after_reconcile(self, obj):\n        pass\n"

    assert len(list(loops([Source(f"{AREAS}lamps/kubernetes.py", text)]))) == 1


def bypasses(files: Iterable[Source]) -> Iterator[str]:
    for file in files:
        if not file.path.startswith(AREAS):
            continue
        for node in ast.walk(file.tree):
            if any(name.startswith(RUNTIME_ONLY) for name in _imported(node)) or _writes_status(
                node
            ):
                yield f"{file.path}:{getattr(node, 'lineno', 0)}"


def loops(files: Iterable[Source]) -> Iterator[str]:
    for file in files:
        if file.path.startswith(AREAS):
            yield from (
                file.place(one) for one in file.functions() if one.name == "after_reconcile"
            )


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [one.name for one in names]
        case ast.ImportFrom(module=str(module), names=names):
            return [f"{module}.{one.name}" for one in names]
        case _:
            return []


def _writes_status(node: ast.AST) -> bool:
    match node:
        case ast.keyword(arg="subresource", value=ast.Constant("status")):
            return True
        case _:
            return False
