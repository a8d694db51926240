"""One way to have checks answered or news heard: what each file of three folders makes.

A new one is one new file in `sources`, `gates` or `notifiers`: its name is the name in the
registry, and its function `provider` makes it from settings. Nothing else is edited.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Generic, TypeVar

from fairlead import errors
from fairlead.checks.spec import Check
from fairlead.checks.subject import Names, Naming
from fairlead.clients.webhooks import Hooks

T_co = TypeVar("T_co", covariant=True)
Problem = tuple[str, str]
"""A field of a check, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class World:
    """What an open provider can use."""

    naming: Naming
    now: Callable[[], dt.datetime]
    hooks: Hooks
    """Signed and bounded calls over the web."""


def no_problems(check: Check, release: str, names: Names) -> Iterable[Problem]:
    del check, release, names
    return ()


@dataclass(frozen=True, slots=True)
class Provider(Generic[T_co]):
    """One way to have checks answered, or news heard."""

    open: Callable[[World], AbstractAsyncContextManager[T_co]]
    problems: Callable[[Check, str, Names], Iterable[Problem]] = no_problems
    """Why a check of a release, with the names of either side, could not be asked; before it is."""

    compares: bool = False
    """Whether it is a source with series of both sides."""


def tried(field: str, attempt: Callable[[], object]) -> Iterator[Problem]:
    """The problem that the attempt runs into, where it does."""
    try:
        attempt()
    except errors.Rejected as error:
        yield field, f"{error.message}; {error.hint}"
