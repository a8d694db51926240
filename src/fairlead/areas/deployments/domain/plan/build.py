"""From a specification and what was observed to the plan (P1 to P4, and the flags of a request).

P1 quick, nothing to migrate   CFUpsert
P2 full, sequential            ScaleDown > InfraMigrate > PGMigrate > ScaleUp
P3 quick                       CFUpsert | PGUpsert > PGMigrate > PGCleanup
P4 full, evaluated             PGUpsert > PGEval | CFPlan > EvalJoin > one of four branches

A stack that is missing has no version that could be disturbed: P2 without ScaleDown.
"""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from fairlead import errors
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.plan.graph import Branch, Kind, Plan, Step, check, last
from fairlead.areas.deployments.domain.spec import Database, DeploymentSpec, Flag, Server, Work

JOIN = "EvalJoin"
_IDEMPOTENT_ATTEMPTS = 3
_MIGRATION = dt.timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class Observation:
    """What the world was found to be, as far as a plan depends on it."""

    exists: bool
    """Whether the stack is there."""

    pending: Mapping[str, int] | None = None
    """Migrations that a database waits for, by its key; None where nobody looked."""


def build(spec: DeploymentSpec, observed: Observation) -> Plan:
    """The plan of a deployment; Rejected where the flags make no sense for this stack."""
    chosen = next((flag for flag in _MODES if spec.has(flag)), None)
    steps = _Steps(spec, observed)
    if chosen is None:
        return check(_full(steps))
    return check(Plan(chosen.value, _MODES[chosen](steps)))


def notes(spec: DeploymentSpec) -> tuple[str, ...]:
    """What a person should know about the flags: only one of them chooses the plan."""
    named = [flag for flag in _MODES if spec.has(flag)]
    return tuple(f"{each.value} has no effect beside {named[0].value}" for each in named[1:])


@dataclass(frozen=True, slots=True)
class _Steps:
    """Makes the steps of one deployment."""

    spec: DeploymentSpec
    observed: Observation

    def migrating(self) -> tuple[Database, ...]:
        """The databases that bring migrations which are not known to be done."""
        pending = self.observed.pending
        return tuple(
            each
            for each in self.spec.databases
            if each.migrates and (pending is None or pending.get(each.key, 1) > 0)
        )

    def named(self, name: str, database: Database) -> str:
        return name if len(self.spec.databases) == 1 else f"{name}.{database.key}"

    def on_database(
        self, name: str, kind: Kind, database: Database, after: tuple[str, ...] = ()
    ) -> Step:
        rotate = kind is not Kind.PG_CLEANUP and self.spec.has(Flag.ROTATE_CREDENTIALS)
        work = msgspec.to_builtins(_work(self.spec, database, rotate=rotate))
        words: dict[str, object] = {"database": database.key, "work": work}
        once = kind in {Kind.PG_MIGRATE, Kind.PG_DESTROY}
        return Step(
            self.named(name, database),
            kind.value,
            after,
            words,
            1 if once else _IDEMPOTENT_ATTEMPTS,
            _MIGRATION if kind is Kind.PG_MIGRATE else dt.timedelta(hours=1),
        )

    def upsert(self, database: Database, after: tuple[str, ...] = ()) -> Step:
        return self.on_database("PGUpsert", Kind.PG_UPSERT, database, after)

    def run(self, database: Database, after: tuple[str, ...]) -> tuple[Step, ...]:
        """The migration alone, and the ownership of what it made."""
        migrate = self.on_database("PGMigrate", Kind.PG_MIGRATE, database, after)
        cleanup = self.on_database("PGCleanup", Kind.PG_CLEANUP, database, (migrate.name,))
        return migrate, cleanup

    def chains(self, after: tuple[str, ...] = ()) -> tuple[Step, ...]:
        """For each database upsert, run and clean-up."""
        found: list[Step] = []
        for database in self.spec.databases:
            upsert = self.upsert(database, after)
            found.append(upsert)
            if database.migrates:
                found += self.run(database, (upsert.name,))
        return tuple(found)

    def whole(self, after: tuple[str, ...]) -> tuple[Step, ...]:
        """P2's PGMigrate, which stands for upsert, clean-up, run and clean-up (Q21 to Q24)."""
        found = []
        for each in self.spec.databases:
            step = self.on_database("PGMigrate", Kind.PG_MIGRATE, each, after)
            words = {**step.words, "whole": True}
            found.append(Step(step.name, step.kind, after, words, step.attempts, step.timeout))
        return tuple(found)


def works(spec: DeploymentSpec) -> dict[str, Work]:
    """What whoever performs knows of each database, by its key."""
    return {each.key: _work(spec, each, rotate=False) for each in spec.databases}


def _work(spec: DeploymentSpec, database: Database, *, rotate: bool) -> Work:
    return Work(
        database.server or Server(database.server_group),
        database.name,
        database.extensions,
        database.sql,
        spec.template.bucket,
        spec.template.region,
        spec.assume_role,
        database.secret,
        rotate,
        database.task,
    )


def _update(name: str, images: str, counts: str, after: tuple[str, ...] = ()) -> Step:
    """A change of the stack: which images and counts it has then, `kept` or `new`.

    Counts that are `restored` are kept too, unless an earlier deployment failed while the stack was
    scaled down: no ScaleUp follows that would bring it back.
    """
    return Step(name, Kind.CF_UPDATE.value, after, {"images": images, "counts": counts})


def _scale(name: str, after: tuple[str, ...] = ()) -> Step:
    words = {"counts": "zero" if name == "ScaleDown" else "restored"}
    return Step(name, Kind.CF_SCALE.value, after, words)


def _create(name: str, counts: str) -> Step:
    return Step(name, Kind.CF_CREATE.value, (), {"counts": counts})


def _created(steps: _Steps) -> tuple[Step, ...]:
    """P2 without ScaleDown: there is no version that runs."""
    infra = _create("InfraMigrate", "zero")
    migrated = steps.whole((infra.name,))
    return infra, *migrated, _scale("ScaleUp", last((infra, *migrated)))


def _sequential(steps: _Steps) -> tuple[Step, ...]:
    down = _scale("ScaleDown")
    # Nothing runs by then, so there is no image to keep.
    infra = _update("InfraMigrate", "new", "kept", (down.name,))
    migrated = steps.whole((infra.name,))
    return down, infra, *migrated, _scale("ScaleUp", last((infra, *migrated)))


def _full(steps: _Steps) -> Plan:
    if not steps.observed.exists:
        return Plan("full", _created(steps))
    if steps.spec.has(Flag.SEQUENTIAL):
        return Plan("full", _sequential(steps))
    found: list[Step] = []
    for database in steps.spec.databases:
        upsert = steps.upsert(database)
        found.append(upsert)
        if database.migrates:
            name = ("PGEval", Kind.PG_EVALUATE)
            found.append(steps.on_database(*name, database, (upsert.name,)))
    found.append(Step("CFPlan", Kind.CF_PLAN.value, attempts=_IDEMPOTENT_ATTEMPTS))
    join = Step(JOIN, Kind.EVAL_JOIN.value, last(found))
    branches = tuple(Branch(impact, _BRANCHES[impact](steps)) for impact in Impact)
    return Plan("full", (*found, join), branches)


def _runs(steps: _Steps, after: str) -> tuple[Step, ...]:
    migrating = [each for each in steps.spec.databases if each.migrates]
    return tuple(step for each in migrating for step in steps.run(each, (after,)))


def _downtime(steps: _Steps) -> tuple[Step, ...]:
    down = _scale("ScaleDown", (JOIN,))
    both = (_update("InfraMigrate", "new", "kept", (down.name,)), *_runs(steps, down.name))
    return down, *both, _scale("ScaleUp", last(both))


def _before(steps: _Steps) -> tuple[Step, ...]:
    both = (_update("InfraMigrate", "kept", "kept", (JOIN,)), *_runs(steps, JOIN))
    return *both, _update("VersionMigrate", "new", "restored", last(both))


def _parallel(steps: _Steps) -> tuple[Step, ...]:
    return _update("CFUpsert", "new", "new", (JOIN,)), *_runs(steps, JOIN)


def _nop(_: _Steps) -> tuple[Step, ...]:
    return (_update("VersionMigrate", "new", "restored", (JOIN,)),)


_BRANCHES: Mapping[Impact, Callable[[_Steps], tuple[Step, ...]]] = {
    Impact.DOWNTIME: _downtime,
    Impact.BEFORE: _before,
    Impact.NOP: _nop,
    Impact.PARALLEL: _parallel,
}


def _quick(steps: _Steps) -> tuple[Step, ...]:
    sequential = steps.spec.has(Flag.SEQUENTIAL)
    if not steps.observed.exists:
        # Its services must run in the end, whatever comes before (a peer leaves them at none).
        nothing = not steps.spec.databases
        return (_create("CFUpsert", "new"),) if nothing else _created(steps)
    upsert = _update("CFUpsert", "new", "new")
    if sequential or not steps.migrating():
        return (upsert,)
    return upsert, *steps.chains()


def _import(steps: _Steps) -> tuple[Step, ...]:
    if steps.observed.exists:
        raise errors.Rejected(
            f"resources are imported into a new stack, and it is there: {steps.spec.stack}",
            hint="deploy without import_resources",
        )
    empty = Step("CFCreateEmpty", Kind.CF_CREATE.value, (), {"empty": True})
    return empty, Step("CFImportPlan", Kind.CF_IMPORT.value, (empty.name,))


def _infra_only(steps: _Steps) -> tuple[Step, ...]:
    if steps.observed.exists:
        return (_update("InfraMigrate", "kept", "kept"),)
    return (_create("InfraMigrate", "zero"),)


def _existing(steps: _Steps, flag: Flag) -> None:
    if not steps.observed.exists:
        raise errors.Rejected(
            f"{flag.value} is for a stack that is there, and it is missing: {steps.spec.stack}",
            hint=f"deploy without {flag.value} first",
        )
    if not steps.spec.databases:
        raise errors.Rejected(
            f"{flag.value} is for an application with databases: {steps.spec.app}",
            hint=f"deploy without {flag.value}",
        )


def _destroyed(steps: _Steps, after: str) -> tuple[Step, ...]:
    return tuple(
        steps.on_database("PGDestroy", Kind.PG_DESTROY, each, (after,))
        for each in steps.spec.databases
    )


def _destroy(steps: _Steps) -> tuple[Step, ...]:
    _existing(steps, Flag.DESTROY_DATABASE)
    down = _scale("ScaleDown")
    return down, *_destroyed(steps, down.name)


def _recreate(steps: _Steps) -> tuple[Step, ...]:
    _existing(steps, Flag.RECREATE_DATABASE)
    down = _scale("ScaleDown")
    destroyed = _destroyed(steps, down.name)
    made = steps.chains(last(destroyed))
    return down, *destroyed, *made, _scale("ScaleUp", last(made))


def _db_only(steps: _Steps) -> tuple[Step, ...]:
    _existing(steps, Flag.DB_ONLY)
    return steps.chains()


_MODES: Mapping[Flag, Callable[[_Steps], tuple[Step, ...]]] = {
    Flag.IMPORT_RESOURCES: _import,
    Flag.INFRA_ONLY: _infra_only,
    Flag.DESTROY_DATABASE: _destroy,
    Flag.RECREATE_DATABASE: _recreate,
    Flag.DB_ONLY: _db_only,
    Flag.QUICK: _quick,
}
"""What a flag makes of the plan; the first that a request has decides."""
