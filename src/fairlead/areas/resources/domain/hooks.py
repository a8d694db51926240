"""Points at which a type of resource may differ from all others, without a path of its own.

A hook takes an occasion and answers with the same one or a changed one; what may be changed is
said at each point. It must be pure, since whoever reads and whoever writes call it both, and only
a request that comes out the same is sent. One that fails fails the resource, and nothing else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from fairlead import errors

Json = dict[str, Any]


class Point(StrEnum):
    """In the order in which a resource comes by."""

    IMPORT = "import"
    """`spec`: of what was there."""

    BEFORE_VALIDATE = "before-validate"
    """`spec`: as its owner wrote it, with secrets by name; or a refusal."""

    BEFORE_DIFF = "before-diff"
    """`spec`: as it is compared with what is there."""

    MUTATE_REQUEST = "mutate-request"
    """`body`: as it is sent, with the mapping from spec to request."""

    CLASSIFY_ERROR = "classify-error"
    """`about["class"]`: what helps against an error of this `status`, `code` and `message`."""

    AFTER_SUCCESS = "after-success"
    """Nothing: `observed` is as declared, and counts as such unless this refuses."""

    STATUS = "status-join"
    """`observed`: as it is shown and compared, the mapping from answer to status."""

    BEFORE_DELETE = "before-delete"
    """Nothing: but it may refuse."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """What a hook is told; what has no place at its point is empty."""

    point: Point
    type: str
    id: str = ""
    spec: Json = field(default_factory=dict)
    observed: Json | None = None
    body: Json | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hook:
    """One, and which types it is for."""

    name: str
    point: Point
    call: Callable[[Occasion], Occasion]
    types: Sequence[str] = ("*",)
    """Patterns such as `Microsoft.Storage/*`, in any case."""

    def fits(self, type_: str) -> bool:
        return _fits(self.types, type_)


@dataclass(frozen=True, slots=True)
class Join:
    """A further question whose answer belongs to the status: `/instanceView` of a scale set."""

    path: str
    """Below the resource's own URL."""

    into: str
    """Where it goes in what is shown."""

    types: Sequence[str] = ("*",)

    def fits(self, type_: str) -> bool:
        return _fits(self.types, type_)


@dataclass(frozen=True, slots=True)
class Hooks:
    """Those of one type, in the order in which they were registered."""

    type: str = ""
    registered: Sequence[Hook] = ()
    joins: Sequence[Join] = ()

    def of(self, type_: str) -> "Hooks":
        fitting = tuple(each for each in self.registered if each.fits(type_))
        return Hooks(type_, fitting, tuple(each for each in self.joins if each.fits(type_)))

    def spec(self, point: Point, id_: str, spec: Json) -> Json:
        return self.run(Occasion(point, self.type, id_, spec=spec)).spec

    def observed(self, id_: str, observed: Json | None) -> Json | None:
        if observed is None:
            return None
        return self.run(Occasion(Point.STATUS, self.type, id_, observed=observed)).observed

    def body(self, id_: str, body: Json | None) -> Json | None:
        return self.run(Occasion(Point.MUTATE_REQUEST, self.type, id_, body=body)).body

    def run(self, occasion: Occasion) -> Occasion:
        for each in self.registered:
            if each.point is occasion.point:
                occasion = _called(each, occasion)
        return occasion


NO_HOOKS = Hooks()


def _called(hook: Hook, occasion: Occasion) -> Occasion:
    try:
        answer = hook.call(occasion)
    except errors.FairleadError:
        raise
    except Exception as error:
        raise _failed(hook, type(error).__name__) from error
    if not isinstance(answer, Occasion):
        raise _failed(hook, f"it answered {type(answer).__name__}")
    return answer


def _failed(hook: Hook, why: str) -> errors.Rejected:
    return errors.Rejected(
        f"the hook {hook.name} failed at {hook.point}: {why}", hint="mend it, or take it out"
    )


def _fits(patterns: Sequence[str], type_: str) -> bool:
    return any(fnmatchcase(type_.lower(), each.lower()) for each in patterns)
