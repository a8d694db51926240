"""A status' memory is opaque: only the machine's own domain reads inside it, or asks for it."""

import ast
import re
from collections.abc import Iterable, Iterator

import pytest

from tests.architecture.sources import ROOT, Source, sources

OWN = ("src/fairlead/areas/rollouts/domain/", "src/fairlead/areas/resources/domain/")
READERS = ("get", "pop", "setdefault", "getattr", "attrgetter", "itemgetter")
IN_PAGES = re.compile(r"\.memory\b|\[[\"']memory[\"']\]")


def test_nobody_but_the_machine_reads_the_memory_of_a_status() -> None:
    assert list(readers(sources("src"))) == []


def test_no_page_shows_the_memory_of_a_status() -> None:
    pages = (path for kind in ("html", "js") for path in (ROOT / "src").rglob(f"*.{kind}"))

    assert [str(path) for path in pages if IN_PAGES.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "text",
    [
        "halt = status.memory",
        "halt = obj['status']['memory']",
        "halt = (obj.get('status') or {}).get('memory') or {}",
        "halt = status.pop('memory', None)",
        "halt = getattr(status, 'memory')",
        "match status:\n    case {'memory': found}:\n        pass",
        "match status:\n    case RolloutStatus(memory=found):\n        pass",
    ],
)
def test_a_reader_is_found_outside_the_domain_only(text: str) -> None:
    elsewhere = Source("src/fairlead/areas/rollouts/kubernetes/kinds.py", text)
    own = [Source(f"{each}machine.py", text) for each in OWN]

    assert len(list(readers([elsewhere]))) == 1
    assert list(readers(own)) == []


def test_what_writes_one_or_means_something_else_is_well() -> None:
    text = "limits = {'limits': {'memory': '512Mi'}}\nstatus = RolloutStatus(memory={})"

    assert list(readers([Source("src/fairlead/kubernetes/install/workload.py", text)])) == []


def readers(files: Iterable[Source]) -> Iterator[str]:
    for file in files:
        if file.path.startswith(OWN):
            continue
        for node in ast.walk(file.tree):
            if _reads(node):
                yield f"{file.path}:{getattr(node, 'lineno', 0)}"


def _reads(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="memory") | ast.Subscript(slice=ast.Constant("memory")):
            return True
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in READERS:
            return any(isinstance(one, ast.Constant) and one.value == "memory" for one in node.args)
        case ast.MatchMapping(keys=keys):
            return any(isinstance(one, ast.Constant) and one.value == "memory" for one in keys)
        case ast.MatchClass(kwd_attrs=named):
            return "memory" in named
        case _:
            return False
