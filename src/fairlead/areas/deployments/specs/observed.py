"""What was observed before a plan, as a file tells it: for plans that touch nothing."""

from typing import Any, Literal

import msgspec

from fairlead import validation
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.infrastructure import StackStatus, from_cloudformation
from fairlead.areas.deployments.domain.plan import change_set
from fairlead.areas.deployments.domain.plan.change_set import Finding
from fairlead.areas.deployments.domain.plan.steps import Observation
from fairlead.areas.deployments.domain.spec import Database


class ObservedDatabase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of one database."""

    pending: int | None = None
    impact: Literal["NOP", "PARALLEL", "BEFORE", "DOWNTIME"] | None = msgspec.field(
        default=None, name="class"
    )
    reasons: list[str] = []


class ObservedWorld(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stack, its databases and its change set, as they were found."""

    stack: str
    """The status of CloudFormation; MISSING where there is none."""

    databases: dict[str, ObservedDatabase] = {}
    changes: list[dict[str, Any]] | None = None
    """`Changes` of DescribeChangeSet."""


def read(content: Any) -> ObservedWorld:
    about = "docs/reference/deployments.md has all fields"
    return validation.convert(content, ObservedWorld, about=about)


def observation(world: ObservedWorld) -> Observation:
    missing = world.stack in {"", "MISSING"}
    status = StackStatus.MISSING if missing else from_cloudformation(world.stack)
    counts = {key: each.pending for key, each in world.databases.items()}
    pending = {key: count for key, count in counts.items() if count is not None}
    return Observation(status is not StackStatus.MISSING, pending or None)


def findings(world: ObservedWorld, databases: tuple[Database, ...]) -> tuple[Finding, ...] | None:
    """What EvalJoin would be told; None where something of it is not known."""
    if world.changes is None:
        return None
    found = []
    for database in databases:
        known = world.databases.get(database.key)
        if not database.migrates or (known is not None and known.pending == 0):
            continue
        if known is None or known.impact is None:
            return None
        found.append(Finding(Impact(known.impact), tuple(known.reasons)))
    return *found, change_set.classify(change_set.changes(world.changes))
