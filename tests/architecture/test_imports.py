"""Imports stand at the top of their module, absolute, and say the whole truth."""

import ast
from collections.abc import Iterable, Iterator

import pytest

from tests.architecture.sources import Source, sources

# Where a module may be loaded by name while running, each with its reason. A folder ends in "/".
LAZY = {
    "src/fairlead/loading.py": "the one loader, which holds what it loads against a type",
    "src/fairlead/areas/rollouts/host.py": "asks whether Envoy is installed and loads nothing",
    "src/fairlead/clients/postgres/server/wheel.py": "asks where the wheel is, loads nothing",
    "src/fairlead/areas/content/release/host.py": "asks whether there is an Envoy, loads nothing",
}
LOADERS = ("import_module", "__import__", "find_spec", "spec_from_file_location", "run_module")


def test_imports_stand_at_the_top_and_are_absolute() -> None:
    assert list(misplaced(sources())) == []


def test_nothing_hides_from_the_type_checker_or_from_us() -> None:
    assert list(conditional(sources())) == []


def test_modules_are_loaded_by_name_only_where_it_is_listed() -> None:
    assert list(lazy(sources("src"))) == []


def test_every_exception_has_its_reason() -> None:
    assert all(len(reason.split()) > 3 for reason in LAZY.values())


@pytest.mark.parametrize(
    "text",
    [
        "def run():\n    import os\n",
        "class Run:\n    from os import path\n",
        "try:\n    import orjson\nexcept ImportError:\n    orjson = None\n",
        "if TYPE_CHECKING:\n    import os\n",
        "from . import messages\n",
        "from ..engine import messages\n",
    ],
)
def test_a_misplaced_import_is_found(text: str) -> None:
    assert len(list(misplaced([Source("a.py", text)]))) == 1


def test_imports_at_the_top_are_well() -> None:
    text = (
        '"""Why."""\n\nfrom __future__ import annotations\nimport os\nfrom fairlead import errors\n'
    )

    assert list(misplaced([Source("a.py", text)])) == []


@pytest.mark.parametrize(
    "text", ["from typing import TYPE_CHECKING", "import typing\nif typing.TYPE_CHECKING: pass"]
)
def test_type_checking_is_found(text: str) -> None:
    assert len(list(conditional([Source("a.py", text)]))) == 1


def test_loading_by_name_is_found_outside_the_listed_places() -> None:
    text = "import importlib\nimportlib.import_module('fairlead.web')\n"

    found = list(lazy([Source("src/fairlead/web/app.py", text)]))

    assert found == ["src/fairlead/web/app.py:2: import_module"]
    assert list(lazy([Source("src/fairlead/loading.py", text)])) == []


def misplaced(files: Iterable[Source]) -> Iterator[str]:
    for file in files:
        top = set(map(id, file.tree.body))
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in top:
                yield f"{file.place(node)}: not at the top: {ast.unparse(node)}"
            elif isinstance(node, ast.ImportFrom) and node.level:
                yield f"{file.place(node)}: relative: {ast.unparse(node)}"


def conditional(files: Iterable[Source]) -> Iterator[str]:
    for file in files:
        for node in ast.walk(file.tree):
            match node:
                case ast.alias(name="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
                    yield f"{file.path}:{node.lineno}: TYPE_CHECKING"


def lazy(files: Iterable[Source]) -> Iterator[str]:
    for file in files:
        if any(listed(file.path, place) for place in LAZY):
            continue
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Call) and called(node) in LOADERS:
                yield f"{file.place(node)}: {called(node)}"


def listed(path: str, place: str) -> bool:
    return path.startswith(place) if place.endswith("/") else path == place


def called(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]
