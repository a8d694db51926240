"""Pointers into JSON."""

from typing import Any

import pytest

from fairlead import errors
from fairlead.checks import pointer

PAGE = {"data": [{"rate": 0.5}, None], "a/b": 1, "m~n": 2, "": 3, "0": 4}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", PAGE),
        ("/data/0/rate", 0.5),
        ("/a~1b", 1),
        ("/m~0n", 2),
        ("/", 3),
        ("/0", 4),
        ("/data/1", None),
        ("/data/2", None),
        ("/data/-1", None),
        ("/data/00", None),
        ("/data/rate", None),
        ("/data/0/rate/more", None),
        ("/none", None),
    ],
)
def test_it_finds_what_stands_there(text: str, expected: Any) -> None:
    assert pointer.find(PAGE, pointer.checked(text)) == expected


@pytest.mark.parametrize("text", ["data", "/a~2", "/a~", "/" + "x" * 500, "/a\n"])
def test_a_malformed_one_is_refused(text: str) -> None:
    with pytest.raises(errors.Rejected, match="malformed pointer"):
        pointer.checked(text)
