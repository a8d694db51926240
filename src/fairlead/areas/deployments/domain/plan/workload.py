"""Plans of a workload on a platform without infrastructure of its own: the version is a rollout.

P1 quick, nothing to migrate   VersionMigrate
P2 sequential                  ScaleDown > PGMigrate > ScaleUp
P3 quick                       VersionMigrate | PGUpsert > PGMigrate > PGCleanup
P4 full, evaluated             PGUpsert > PGEval | CFPlan > EvalJoin > one of four branches

CFPlan is asked all the same, and answers that there is nothing to change. A workload that is
missing has no version that could be disturbed: PGMigrate > VersionMigrate.
"""

import datetime as dt
from collections.abc import Callable, Mapping

from fairlead import errors
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.plan.graph import Branch, Kind, Plan, Step, last
from fairlead.areas.deployments.domain.plan.steps import (
    IDEMPOTENT_ATTEMPTS,
    Steps,
    destroyed,
    existing,
)
from fairlead.areas.deployments.domain.spec import Flag

ROLLOUT = "rollout"
"""The kind that the rollouts area registers."""

_LONGEST_ROLLOUT = dt.timedelta(days=7)
"""It may wait for windows and for people."""


def build(steps: Steps, chosen: Flag | None, join: str) -> Plan:
    """The plan that a flag makes, or the full one."""
    if chosen is None:
        return _full(steps, join)
    if chosen not in _MODES:
        raise errors.Rejected(
            f"{chosen.value} is for infrastructure, and a workload has none",
            hint=f"deploy without {chosen.value}",
        )
    return Plan(chosen.value, _MODES[chosen](steps))


def _words(steps: Steps) -> dict[str, object]:
    workload = steps.spec.workload
    assert workload is not None
    return {"rollout": workload.rollout, "file": workload.file}


def _version(steps: Steps, name: str, after: tuple[str, ...] = ()) -> Step:
    return Step(name, ROLLOUT, after, _words(steps), timeout=_LONGEST_ROLLOUT)


def _stop(steps: Steps, after: tuple[str, ...] = ()) -> Step:
    return Step("ScaleDown", ROLLOUT, after, {**_words(steps), "asleep": True})


def _made(steps: Steps) -> tuple[Step, ...]:
    migrated = steps.whole(())
    return *migrated, _version(steps, "VersionMigrate", last(migrated))


def _full(steps: Steps, join: str) -> Plan:
    if not steps.observed.exists:
        return Plan("full", _made(steps))
    if steps.spec.has(Flag.SEQUENTIAL):
        down = _stop(steps)
        migrated = steps.whole((down.name,))
        up = _version(steps, "ScaleUp", last((down, *migrated)))
        return Plan("full", (down, *migrated, up))
    found: list[Step] = []
    for database in steps.spec.databases:
        upsert = steps.upsert(database)
        found.append(upsert)
        if database.migrates:
            name = ("PGEval", Kind.PG_EVALUATE)
            found.append(steps.on_database(*name, database, (upsert.name,)))
    found.append(Step("CFPlan", Kind.CF_PLAN.value, attempts=IDEMPOTENT_ATTEMPTS))
    joined = Step(join, Kind.EVAL_JOIN.value, last(found))
    branches = tuple(Branch(impact, _branch(steps, impact, join)) for impact in Impact)
    return Plan("full", (*found, joined), branches)


def _branch(steps: Steps, impact: Impact, join: str) -> tuple[Step, ...]:
    if impact is Impact.NOP:
        return (_version(steps, "VersionMigrate", (join,)),)
    if impact is Impact.PARALLEL:
        return _version(steps, "VersionMigrate", (join,)), *_runs(steps, join)
    if impact is Impact.BEFORE:
        runs = _runs(steps, join)
        return *runs, _version(steps, "VersionMigrate", last(runs) or (join,))
    down = _stop(steps, (join,))
    runs = _runs(steps, down.name)
    return down, *runs, _version(steps, "ScaleUp", last((down, *runs)))


def _runs(steps: Steps, after: str) -> tuple[Step, ...]:
    migrating = [each for each in steps.spec.databases if each.migrates]
    return tuple(step for each in migrating for step in steps.run(each, (after,)))


def _quick(steps: Steps) -> tuple[Step, ...]:
    if not steps.observed.exists:
        return _made(steps)
    version = _version(steps, "VersionMigrate")
    if steps.spec.has(Flag.SEQUENTIAL) or not steps.migrating():
        return (version,)
    return version, *steps.chains()


def _destroy(steps: Steps) -> tuple[Step, ...]:
    existing(steps, Flag.DESTROY_DATABASE)
    down = _stop(steps)
    return down, *destroyed(steps, down.name)


def _recreate(steps: Steps) -> tuple[Step, ...]:
    existing(steps, Flag.RECREATE_DATABASE)
    down = _stop(steps)
    gone = destroyed(steps, down.name)
    made = steps.chains(last(gone))
    return down, *gone, *made, _version(steps, "ScaleUp", last(made))


def _db_only(steps: Steps) -> tuple[Step, ...]:
    existing(steps, Flag.DB_ONLY)
    return steps.chains()


_MODES: Mapping[Flag, Callable[[Steps], tuple[Step, ...]]] = {
    Flag.DESTROY_DATABASE: _destroy,
    Flag.RECREATE_DATABASE: _recreate,
    Flag.DB_ONLY: _db_only,
    Flag.QUICK: _quick,
}
