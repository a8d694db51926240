"""What is loaded late is what its loader said it must be."""

from pathlib import PurePosixPath

import pytest

from fairlead import loading


def test_what_stands_at_a_place_is_loaded() -> None:
    assert loading.load("math:pi", float) == pytest.approx(3.14159, abs=1e-4)


def test_what_a_place_makes_is_of_the_kind_asked_for() -> None:
    assert loading.make("pathlib:PurePosixPath", PurePosixPath, "/a") == PurePosixPath("/a")


@pytest.mark.parametrize("place", ["math", "math:", ":pi", ""])
def test_a_malformed_place_is_refused(place: str) -> None:
    with pytest.raises(ValueError, match="not a place"):
        loading.load(place, float)


def test_something_else_than_asked_for_is_refused() -> None:
    with pytest.raises(TypeError, match="math:pi is no str: float"):
        loading.load("math:pi", str)
    with pytest.raises(TypeError, match="pathlib:PurePosixPath is no str"):
        loading.make("pathlib:PurePosixPath", str, "/a")


def test_what_cannot_be_called_makes_nothing() -> None:
    with pytest.raises(TypeError, match="nothing to call at math:pi"):
        loading.make("math:pi", float)


def test_a_missing_module_is_named() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"fairlead.nowhere"):
        loading.load("fairlead.nowhere:here", object)
