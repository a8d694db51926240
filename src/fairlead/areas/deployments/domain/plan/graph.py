"""A plan as a graph: steps that wait for others, and branches that an evaluation picks from."""

import datetime as dt
import enum
import graphlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead import errors
from fairlead.areas.deployments.domain.classes import Impact

DEFAULT_TIMEOUT = dt.timedelta(hours=1)


class Kind(enum.Enum):
    """What this area can do in a step; other areas register kinds of their own, by name."""

    EVAL_JOIN = "EvalJoin"
    CF_CREATE = "CFCreate"
    CF_PLAN = "CFPlan"
    CF_UPDATE = "CFUpdate"
    CF_SCALE = "CFScale"
    CF_IMPORT = "CFImport"
    PG_UPSERT = "PGUpsert"
    PG_EVALUATE = "PGEvaluate"
    PG_MIGRATE = "PGMigrate"
    PG_CLEANUP = "PGCleanup"
    PG_DESTROY = "PGDestroy"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do, once what it depends on is done."""

    name: str
    kind: str
    depends_on: tuple[str, ...] = ()
    words: dict[str, Any] = field(default_factory=dict)
    """What only this kind of step understands."""

    attempts: int = 1
    timeout: dt.timedelta = DEFAULT_TIMEOUT
    """Of each attempt."""


@dataclass(frozen=True, slots=True)
class Branch:
    """What follows an evaluation that came to this class."""

    impact: Impact
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps from the start, and the branches that EvalJoin picks one of."""

    mode: str
    steps: tuple[Step, ...]
    branches: tuple[Branch, ...] = ()

    def branch(self, impact: Impact) -> tuple[Step, ...]:
        return next((each.steps for each in self.branches if each.impact is impact), ())


def check(plan: Plan) -> Plan:
    """The plan itself; Rejected where it could never end."""
    check_steps(plan.steps)
    for branch in plan.branches:
        check_steps([*plan.steps, *branch.steps])
    return plan


def check_steps(steps: Sequence[Step]) -> None:
    names = [step.name for step in steps]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise errors.Rejected(f"two steps of one name: {twice[0]}", hint="rename one of them")
    unknown = sorted({each for step in steps for each in step.depends_on} - {*names})
    if unknown:
        raise errors.Rejected(
            f"a step depends on one that is not there: {unknown[0]}",
            hint=f"the steps are: {', '.join(names)}",
        )
    try:
        graphlib.TopologicalSorter({step.name: step.depends_on for step in steps}).prepare()
    except graphlib.CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise errors.Rejected(
            f"steps wait for each other: {circle}", hint="remove one of these dependencies"
        ) from error


def last(steps: Iterable[Step]) -> tuple[str, ...]:
    """The steps that no other one waits for."""
    every = tuple(steps)
    waited_for = {name for step in every for name in step.depends_on}
    return tuple(step.name for step in every if step.name not in waited_for)


def ready(steps: Iterable[Step], done: Collection[str]) -> tuple[Step, ...]:
    """The steps whose dependencies are all done."""
    return tuple(step for step in steps if {*step.depends_on} <= {*done})
