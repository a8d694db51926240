"""The budgets of STYLE.md where they end: file, function, arguments."""

import ast
from collections.abc import Iterable, Iterator

from tests.architecture.sources import Function, Source, sources

FILE_END = 500
FUNCTION_END = 50
ARGUMENTS_END = 5


def test_no_file_is_longer_than_its_budget() -> None:
    assert list(long_files(sources())) == []


def test_no_function_is_longer_than_its_budget() -> None:
    assert list(long_functions(sources())) == []


def test_no_function_takes_more_arguments_than_its_budget() -> None:
    assert list(greedy_functions(sources())) == []


def test_a_long_file_is_found() -> None:
    fits = Source("fits.py", "x = 1\n" * FILE_END)
    grown = Source("grown.py", "x = 1\n" * (FILE_END + 1))

    assert list(long_files([fits, grown])) == ["grown.py: 501 lines"]


def test_a_long_function_is_found_wherever_it_stands() -> None:
    method = "class Stack:\n    async def push(self):\n" + "        x = 1\n" * FUNCTION_END

    assert list(long_functions([Source("a.py", method)])) == ["a.py:2: push has 51 lines"]


def test_a_greedy_function_is_found() -> None:
    text = "def move(a, b, /, c, *, d, e, f): ..."

    assert list(greedy_functions([Source("a.py", text)])) == ["a.py:1: move takes 6 arguments"]


def test_the_receiver_and_the_fields_of_a_dataclass_do_not_count() -> None:
    text = """
@dataclass
class Spec:
    a: int; b: int; c: int; d: int; e: int; f: int
    def told(self, a, b, c, d, e, *rest, **named): ...
    @classmethod
    def made(cls, a, b, c, d, e): ...
"""

    assert list(greedy_functions([Source("a.py", text)])) == []


def test_fixtures_that_a_test_asks_for_do_not_count() -> None:
    text = """
def test_all(a, b, c, d, e, f): ...
@pytest.fixture
def server(a, b, c, d, e, f): ...
def start(a, b, c, d, e, f): ...
"""

    found = list(greedy_functions([Source("tests/unit/test_all.py", text)]))

    assert found == ["tests/unit/test_all.py:5: start takes 6 arguments"]


def long_files(files: Iterable[Source]) -> Iterator[str]:
    for file in files:
        lines = len(file.text.splitlines())
        if lines > FILE_END:
            yield f"{file.path}: {lines} lines"


def long_functions(files: Iterable[Source]) -> Iterator[str]:
    for file in files:
        for function in file.functions():
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            if lines > FUNCTION_END:
                yield f"{file.place(function)}: {function.name} has {lines} lines"


def greedy_functions(files: Iterable[Source]) -> Iterator[str]:
    for file in files:
        for function in file.functions():
            count = len(arguments(function))
            # pytest hands fixtures over by name; nobody writes such a call.
            if count > ARGUMENTS_END and not (file.path.startswith("tests/") and asked(function)):
                yield f"{file.place(function)}: {function.name} takes {count} arguments"


def arguments(function: Function) -> list[str]:
    taken = function.args
    names = [one.arg for one in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def asked(function: Function) -> bool:
    fixture = any("fixture" in ast.unparse(decorator) for decorator in function.decorator_list)
    return fixture or function.name.startswith("test_")
