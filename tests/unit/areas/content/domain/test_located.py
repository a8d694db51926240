"""Where a part of a JSON file stands."""

from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.content.domain.located import Located

TEXT = b"""{
  "a": [1, {"x": "}"},
    [2]],
  "b": {"c": 1,
        "d": [] }
}
"""


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        ((), 1, 1),
        (("a",), 2, 8),
        (("a", 1, "x"), 2, 18),
        (("a", 2, 0), 3, 6),
        (("b", "d"), 5, 14),
        (("b", "missing"), 4, 8),
        (("a", 9), 2, 8),
    ],
)
def test_each_part_has_its_line_and_column(path: tuple[Any, ...], line: int, column: int) -> None:
    found = Located("f.json", TEXT).problem(path, "wrong", "mend it")

    assert (found.file, found.line, found.column) == ("f.json", line, column)


@pytest.mark.parametrize(
    ("raw", "line"),
    [(b"{\n\n nope}", 3), (b"\n\xff", 2), (b'{"a": NaN}', 1), (b"", 1), (b"[" * 100_000, 1)],
)
@pytest.mark.requirement("content 14")
def test_what_is_no_json_is_refused_with_its_line(raw: bytes, line: int) -> None:
    with pytest.raises(errors.Invalid) as refused:
        Located("f.json", raw)

    assert refused.value.problems[0].line == line
    assert "f.json" in str(refused.value)
