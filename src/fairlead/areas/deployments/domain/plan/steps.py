"""The steps on databases, which are the same wherever the rest of a plan runs."""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from fairlead import errors
from fairlead.areas.deployments.domain.plan.graph import Kind, Step, last
from fairlead.areas.deployments.domain.spec import Database, DeploymentSpec, Flag, Server, Work

JOIN = "EvalJoin"
DATABASE_FLAGS = (Flag.DESTROY_DATABASE, Flag.RECREATE_DATABASE, Flag.DB_ONLY)
_IDEMPOTENT_ATTEMPTS = 3
_MIGRATION = dt.timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class Observation:
    """What the world was found to be, as far as a plan depends on it."""

    exists: bool
    """Whether the stack is there."""

    pending: Mapping[str, int] | None = None
    """Migrations that a database waits for, by its key; None where nobody looked."""


@dataclass(frozen=True, slots=True)
class Steps:
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

    def runs(self, after: str) -> tuple[Step, ...]:
        """What an evaluation is followed by, for each database that brings migrations."""
        migrating = [each for each in self.spec.databases if each.migrates]
        return tuple(step for each in migrating for step in self.run(each, (after,)))

    def evaluation(self) -> tuple[Step, ...]:
        """What is asked before a branch is chosen, and EvalJoin, which chooses it."""
        found: list[Step] = []
        for database in self.spec.databases:
            upsert = self.upsert(database)
            found.append(upsert)
            if database.migrates:
                name = ("PGEval", Kind.PG_EVALUATE)
                found.append(self.on_database(*name, database, (upsert.name,)))
        found.append(Step("CFPlan", Kind.CF_PLAN.value, attempts=_IDEMPOTENT_ATTEMPTS))
        return *found, Step(JOIN, Kind.EVAL_JOIN.value, last(found))

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
        spec.key,
        database.extensions,
        database.adopt,
        database.sql,
        spec.template.bucket,
        spec.template.region,
        spec.assume_role,
        database.secret,
        rotate,
        database.task,
        database.command,
    )


def of_databases(
    steps: Steps, flag: Flag, down: Step, up: Callable[[tuple[str, ...]], Step]
) -> tuple[Step, ...]:
    """The plan of a flag that is about databases alone; the version stops meanwhile."""
    _check_existing(steps, flag)
    if flag is Flag.DB_ONLY:
        return steps.chains()
    gone = tuple(
        steps.on_database("PGDestroy", Kind.PG_DESTROY, each, (down.name,))
        for each in steps.spec.databases
    )
    if flag is Flag.DESTROY_DATABASE:
        return down, *gone
    made = steps.chains(last(gone))
    return down, *gone, *made, up(last(made))


def _check_existing(steps: Steps, flag: Flag) -> None:
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
