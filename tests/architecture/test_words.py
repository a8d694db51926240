"""Words we keep out: names that say nothing, and words that make a reader feel slow."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, Source, sources

EMPTY_NAMES = re.compile(r"Manager|Helper|Utils?(?![a-z])", re.ASCII)
EMPTY_MODULES = {"util", "utils", "helper", "helpers", "common"}
BELITTLING = re.compile(r"\b(simply|easy|just)\b", re.IGNORECASE)
# Code is quoted, not said: the rule may name its own words in backticks.
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)
TALKING = ("src/fairlead/cli/", "src/fairlead/__main__.py", "src/fairlead/bootstrap.py")


def test_no_class_has_an_empty_name() -> None:
    assert list(empty_names(sources())) == []


def test_no_module_has_an_empty_name() -> None:
    assert list(empty_modules(file.path for file in sources())) == []


def test_our_texts_belittle_nobody() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.html")]

    assert [fault for page in sorted(pages) for fault in belittling_text(page)] == []


def test_our_commands_and_hints_belittle_nobody() -> None:
    assert list(belittling_strings(sources("src"))) == []


@pytest.mark.parametrize("name", ["StackManager", "HelperOfStacks", "Utils", "StackUtil"])
def test_an_empty_class_name_is_found(name: str) -> None:
    assert list(empty_names([Source("a.py", f"class {name}: ...")])) == [f"a.py:1: {name}"]


def test_a_class_with_a_word_of_the_domain_is_well() -> None:
    assert list(empty_names([Source("a.py", "class Utilisation: ...\nclass Stack: ...")])) == []


def test_an_empty_module_name_is_found_as_file_and_as_folder() -> None:
    paths = ["src/fairlead/utils.py", "src/fairlead/common/a.py", "src/fairlead/commons.py"]

    assert list(empty_modules(paths)) == paths[:2]


def test_a_belittling_page_is_found_but_its_code_is_not(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Run `just build`.\n\n```\njust build\n```\n\nIt is Easy, adjust it.\n")

    assert list(belittling_text(page)) == [f"{page.name}: Easy"]


def test_a_belittling_command_or_hint_is_found() -> None:
    command = Source("src/fairlead/cli/up.py", 'click.echo(f"just wait for {name}")')
    hint = Source("src/fairlead/engine/a.py", 'raise Rejected("no", hint="simply try again")')
    quiet = Source("src/fairlead/engine/a.py", 'PACE = "just in time"')

    found = list(belittling_strings([command, hint, quiet]))

    assert found == ["src/fairlead/cli/up.py:1: just", "src/fairlead/engine/a.py:1: simply"]


def empty_names(files: Iterable[Source]) -> Iterator[str]:
    for file in files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.ClassDef) and EMPTY_NAMES.search(node.name):
                yield f"{file.place(node)}: {node.name}"


def empty_modules(paths: Iterable[str]) -> Iterator[str]:
    return (path for path in paths if EMPTY_MODULES & {*Path(path).with_suffix("").parts})


def belittling_text(page: Path) -> Iterator[str]:
    said = CODE.sub("", page.read_text(encoding="utf-8"))
    return (f"{page.name}: {word[0]}" for word in BELITTLING.finditer(said))


def belittling_strings(files: Iterable[Source]) -> Iterator[str]:
    for file in files:
        for text in registered(file):
            if word := BELITTLING.search(str(text.value)):
                yield f"{file.place(text)}: {word[0]}"


def registered(file: Source) -> Iterator[ast.Constant]:
    """What a user gets to read: every string of a command, and every hint anywhere."""
    roots: Iterable[ast.AST] = [file.tree]
    if not file.path.startswith(TALKING):
        keywords = (node for node in ast.walk(file.tree) if isinstance(node, ast.keyword))
        roots = [keyword.value for keyword in keywords if keyword.arg == "hint"]
    nodes = (node for root in roots for node in ast.walk(root))
    return (
        node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
