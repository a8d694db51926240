"""Our errors, sorted by what happens next.

    FairleadError
    ├── Rejected       the asker must change something; asking again is useless
    │   ├── Invalid        what was handed in has mistakes, each told with its field
    │   ├── NotFound       it names something that is not there
    │   └── Unauthorised   it does not say who asks, in a way that we can check
    │       └── Forbidden      that one may not
    ├── Conflict       it clashes with what is already recorded; look, then decide
    ├── Unavailable    something outside did not answer; the same request may pass later
    │   └── Newer          a newer program wrote what this one cannot read; that one can go on
    └── Corrupt        what we stored cannot be read; a person must look

Every one carries a hint: the next thing to try. Exit codes and HTTP statuses are part of
the contract (docs/reference/errors.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

_MOST_SAID = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in what was handed in."""

    path: str
    """Of its field, such as `strategy.steps[0]`; empty where it is the whole."""

    message: str
    hint: str
    file: str = ""
    line: int = 0
    column: int = 0
    """Where it stands, counted from 1; 0 where it came without a file."""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return ": ".join(part for part in (where, self.path, self.message) if part)


class FairleadError(Exception):
    """Anything that Fairlead itself refuses or fails at."""

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Rejected(FairleadError):
    """The request is wrong as it stands."""

    exit_code = 3
    http_status = 400


class Invalid(Rejected):
    """What was handed in has mistakes, each told with its field."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        said = [str(each) for each in problems[:_MOST_SAID]]
        if len(problems) > _MOST_SAID:
            said.append(f"and {len(problems) - _MOST_SAID} more")
        super().__init__("; ".join(said), hint=problems[0].hint)
        self.problems = tuple(problems)


class NotFound(Rejected):
    """The request names something that is not there."""

    exit_code = 4
    http_status = 404


class Unauthorised(Rejected):
    """The caller is unknown, or may not do this."""

    exit_code = 5
    http_status = 401


class Forbidden(Unauthorised):
    """The caller is known and may not do this."""

    http_status = 403


class Conflict(FairleadError):
    """The request clashes with what is recorded."""

    exit_code = 6
    http_status = 409


class Unavailable(FairleadError):
    """Something we depend on did not answer."""

    exit_code = 7
    http_status = 503


class Newer(Unavailable):
    """A newer program wrote what this one cannot read."""


class Corrupt(FairleadError):
    """A stored row cannot be read."""

    exit_code = 8
    http_status = 500
