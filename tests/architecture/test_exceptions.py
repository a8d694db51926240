"""Every exception from a rule names the rule and says why, on its own line."""

import io
import itertools
import re
import tokenize
from collections.abc import Iterable, Iterator

import pytest

from tests.architecture.sources import ROOT, Source, sources

EXCEPTION = re.compile(r"#\s*(?:ruff:\s*)?noqa\b|#\s*type:\s*ignore\b|#\s*mypy:", re.IGNORECASE)
SOUND = re.compile(
    r"""
    (?: (?:ruff:\s*)?noqa:\s*[A-Z]+[0-9]+(?:[,\s]\s*[A-Z]+[0-9]+)*   # the rules of ruff
      | type:\s*ignore\[[a-z, -]+\]                                  # the rules of mypy
    )
    (?:\s|\#|-|:)+ \w+(?:[^\w\#]+\w+)+                                # a reason, not one word
    """,
    re.VERBOSE,
)


def test_every_exception_in_code_has_a_code_and_a_reason() -> None:
    assert list(bare(sources())) == []


def test_every_exception_in_the_settings_has_a_reason() -> None:
    assert list(bare_settings((ROOT / "pyproject.toml").read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "# noqa: S603",
        "# noqa: S603 - why",
        "# NOQA",
        "# ruff: noqa",
        "# ruff: noqa: S603",
        "# type: ignore",
        "# type: ignore[arg-type]",
        "# type: ignore  # the stubs of this library are wrong",
        "# mypy: ignore-errors",
        "# noqa: S603 - our own tools  # type: ignore[arg-type]",
    ],
)
def test_a_bare_exception_is_found(comment: str) -> None:
    assert len(list(bare([Source("a.py", f"x = 1  {comment}\n")]))) == 1


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa: S603 - runs our own tool",
        "# noqa: S603, S607 - runs our own tool",
        "# noqa: S603  our tool",
        "# noqa: BLE001  # the outbox keeps whatever went wrong",
        "# type: ignore[arg-type]  # the stubs of this library are wrong",
        "# a comment about noqa or type checks is no exception",
    ],
)
def test_a_reasoned_exception_is_well(comment: str) -> None:
    assert list(bare([Source("a.py", f"x = 1  {comment}\n")])) == []


def test_a_setting_without_its_reason_is_found() -> None:
    text = """
[tool.ruff.lint]
ignore = [
  "D100",  # asked for where a reader needs it
  "D104",
]
[tool.ruff.lint.per-file-ignores]
"tests/**" = ["D"]
[tool.ruff.lint.pylint]
max-args = 5
"""

    assert list(bare_settings(text)) == ['"D104",', '"tests/**" = ["D"]']


def bare(files: Iterable[Source]) -> Iterator[str]:
    for file in files:
        for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
            if token.type == tokenize.COMMENT and not reasoned(token.string):
                yield f"{file.path}:{token.start[0]}: {token.string}"


def reasoned(comment: str) -> bool:
    """Whether each exception in the comment is followed by its own reason."""
    starts = [found.start() for found in EXCEPTION.finditer(comment)]
    bounds = itertools.pairwise([*starts, len(comment)])
    return all(SOUND.search(comment[start:end]) for start, end in bounds)


def bare_settings(text: str) -> Iterator[str]:
    section = ""
    for line in map(str.strip, text.splitlines()):
        section = line if line.startswith("[") else section
        excepted = section.startswith("[tool.ruff.lint") and re.search(r'"[A-Z]+[0-9]*"', line)
        if excepted and "#" not in line and "select" not in line:
            yield line
