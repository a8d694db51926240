"""The one way to load something late: by its place, and by the type it must have.

What is heavy (a web framework, a database driver, a Kubernetes client) or optional is named by a
place, `package.module:attribute`, and loaded when it is used. Whoever loads it says what it must
be, so that a place which names something else is found at the first use and by every test.
"""

import importlib
from typing import TypeVar

T = TypeVar("T")


def load(place: str, kind: type[T]) -> T:
    """What stands at the place; TypeError where it is something else."""
    return _checked(place, _attribute(place), kind)


def make(place: str, kind: type[T], *arguments: object) -> T:
    """What the function or class at the place makes of the arguments."""
    maker = _attribute(place)
    if not callable(maker):
        raise TypeError(f"nothing to call at {place}: {type(maker).__name__}")
    return _checked(place, maker(*arguments), kind)


def _attribute(place: str) -> object:
    module, colon, attribute = place.partition(":")
    if not (module and colon and attribute):
        raise ValueError(f"not a place such as package.module:attribute: {place}")
    found: object = getattr(importlib.import_module(module), attribute)
    return found


def _checked(place: str, found: object, kind: type[T]) -> T:
    if not isinstance(found, kind):
        raise TypeError(f"{place} is no {kind.__name__}: {type(found).__name__}")
    return found
