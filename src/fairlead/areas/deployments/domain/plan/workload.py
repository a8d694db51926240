"""Plans of a workload on a platform without infrastructure of its own: the version is a rollout.

P1 quick, nothing to migrate   VersionMigrate
P2 sequential                  ScaleDown > PGMigrate > ScaleUp
P3 quick                       VersionMigrate | PGUpsert > PGMigrate > PGCleanup
P4 full, evaluated             PGUpsert > PGEval | CFPlan > EvalJoin > one of four branches

CFPlan is asked all the same, and answers that there is nothing to change. A workload that is
missing has no version that could be disturbed: PGMigrate > VersionMigrate.
"""

import datetime as dt

from fairlead import errors
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.plan.graph import Branch, Plan, Step, last
from fairlead.areas.deployments.domain.plan.steps import (
    DATABASE_FLAGS,
    JOIN,
    Steps,
    of_databases,
)
from fairlead.areas.deployments.domain.spec import Flag

ROLLOUT = "rollout"
"""The kind that the rollouts area registers."""

_LONGEST_ROLLOUT = dt.timedelta(days=7)
"""It may wait for windows and for people."""


def build(steps: Steps, chosen: Flag | None) -> Plan:
    """The plan that a flag makes, or the full one."""
    if chosen is None:
        return _full(steps)
    if chosen is Flag.QUICK:
        return Plan(chosen.value, _quick(steps))
    if chosen in DATABASE_FLAGS:
        made = of_databases(
            steps, chosen, _stop(steps), lambda after: _version(steps, "ScaleUp", after)
        )
        return Plan(chosen.value, made)
    raise errors.Rejected(
        f"{chosen.value} is for infrastructure, and a workload has none",
        hint=f"deploy without {chosen.value}",
    )


def _words(steps: Steps) -> dict[str, object]:
    workload = steps.spec.workload
    assert workload is not None
    words: dict[str, object] = {"rollout": workload.rollout, "file": workload.file}
    if workload.queue:
        words |= {"queue": workload.queue, "content": workload.content}
    return words


def _version(steps: Steps, name: str, after: tuple[str, ...] = ()) -> Step:
    return Step(name, ROLLOUT, after, _words(steps), timeout=_LONGEST_ROLLOUT)


def _stop(steps: Steps, after: tuple[str, ...] = ()) -> Step:
    return Step("ScaleDown", ROLLOUT, after, {**_words(steps), "asleep": True})


def _made(steps: Steps) -> tuple[Step, ...]:
    migrated = steps.whole(())
    return *migrated, _version(steps, "VersionMigrate", last(migrated))


def _full(steps: Steps) -> Plan:
    if not steps.observed.exists:
        return Plan("full", _made(steps))
    if steps.spec.has(Flag.SEQUENTIAL):
        down = _stop(steps)
        migrated = steps.whole((down.name,))
        up = _version(steps, "ScaleUp", last((down, *migrated)))
        return Plan("full", (down, *migrated, up))
    branches = tuple(Branch(impact, _branch(steps, impact)) for impact in Impact)
    return Plan("full", steps.evaluation(), branches)


def _branch(steps: Steps, impact: Impact) -> tuple[Step, ...]:
    if impact is Impact.NOP:
        return (_version(steps, "VersionMigrate", (JOIN,)),)
    if impact is Impact.PARALLEL:
        return _version(steps, "VersionMigrate", (JOIN,)), *steps.runs(JOIN)
    if impact is Impact.BEFORE:
        runs = steps.runs(JOIN)
        return *runs, _version(steps, "VersionMigrate", last(runs) or (JOIN,))
    down = _stop(steps, (JOIN,))
    runs = steps.runs(down.name)
    return down, *runs, _version(steps, "ScaleUp", last((down, *runs)))


def _quick(steps: Steps) -> tuple[Step, ...]:
    if not steps.observed.exists:
        return _made(steps)
    version = _version(steps, "VersionMigrate")
    if steps.spec.has(Flag.SEQUENTIAL) or not steps.migrating():
        return (version,)
    return version, *steps.chains()
