"""The migration of one PostgreSQL database, from a request to its end; whoever asked hears of it.

        MigratePostgresDatabase
Idle ───────────────► Upserting ──► CleaningBefore ──► Migrating ──► CleaningAfter ──► Completed
                          │               │                │               │
                          └───────────────┴── a failure ───┴───────────────┴─────────► Failed

A request for the run alone begins with Migrating and ends with it. A run that is somebody else's
task is asked about again and again until it has ended.

Permissions are put right before the run, so that it may alter what others made, and after it, so
that what it made has the right owner. A cancelled migration waits for the step under way, which
nobody could take back, and starts no other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

import msgspec

from fairlead.areas.deployments.domain.messages import pause
from fairlead.areas.deployments.domain.spec import Work
from fairlead.engine import machine
from fairlead.engine.children import report
from fairlead.engine.messages import (
    Cancel,
    Decision,
    Send,
    SetTimer,
    StreamName,
    Withdraw,
    stream_name,
)

NAME = "postgres-migration"
_LONGEST = timedelta(hours=13)
"""Longer than who runs a migration has for it."""


@dataclass(frozen=True, slots=True)
class MigratePostgresDatabase:
    """Command: bring the database to what its migrations say."""

    key: str
    work: Work
    parent: str = ""
    whole: bool = True
    """Else the run alone: others make the database and clean up."""


@dataclass(frozen=True, slots=True)
class StepDone:
    """Command, the answer to an effect: it is done."""

    step: str


@dataclass(frozen=True, slots=True)
class StepFailed:
    """Command, the answer to an effect: it will not be done by trying again."""

    step: str
    reason: str


@dataclass(frozen=True, slots=True)
class StepUnderway:
    """Command, the answer to an effect: a task of others does it, and has not ended."""

    step: str
    task: str


@dataclass(frozen=True, slots=True)
class ObserveRun:
    """Command, of a timer: ask how the task stands."""


@dataclass(frozen=True, slots=True)
class MigrationRequested:
    """Event: somebody asked for it."""

    key: str
    work: Work
    parent: str = ""
    whole: bool = True


@dataclass(frozen=True, slots=True)
class RunUnderway:
    """Event: a task of others runs the migrations."""

    task: str


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """Event: how the task stands was asked again."""


@dataclass(frozen=True, slots=True)
class DatabaseUpserted:
    """Event: role, database and extensions are there."""


@dataclass(frozen=True, slots=True)
class PermissionsCleaned:
    """Event: all belongs to the owner, before the run or after it."""

    after_run: bool


@dataclass(frozen=True, slots=True)
class MigrationsRun:
    """Event: nothing is pending any more."""


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """Event: nothing more is to be started."""

    reason: str


@dataclass(frozen=True, slots=True)
class MigrationCompleted:
    """Event: all of it is done."""


@dataclass(frozen=True, slots=True)
class MigrationFailed:
    """Event: it ended without being done; what was committed stays."""

    reason: str


@dataclass(frozen=True, slots=True)
class UpsertDatabase:
    """Effect: make role, database and extensions."""

    work: Work


@dataclass(frozen=True, slots=True)
class CleanUpPermissions:
    """Effect: give all to the owner."""

    work: Work
    after_run: bool


@dataclass(frozen=True, slots=True)
class RunMigrations:
    """Effect: apply what is pending."""

    work: Work


@dataclass(frozen=True, slots=True)
class ObserveTask:
    """Effect: say how the task stands."""

    work: Work
    task: str


@dataclass(frozen=True, slots=True)
class Idle:
    """State: nobody asked yet."""


@dataclass(frozen=True, slots=True)
class Running:
    """State: a step is under way."""

    step: str
    key: str
    work: Work
    parent: str = ""
    cancelled: str = ""
    """Why nothing follows the step; empty: something does."""

    whole: bool = True
    task: str = ""
    polls: int = 0


@dataclass(frozen=True, slots=True)
class Completed:
    """State: done."""


@dataclass(frozen=True, slots=True)
class Failed:
    """State: ended without being done."""

    reason: str


UPSERT, CLEAN_BEFORE, RUN, CLEAN_AFTER = "upsert", "clean-before", "run", "clean-after"
OBSERVE = "observe"
STEPS = (UPSERT, CLEAN_BEFORE, RUN, CLEAN_AFTER)

State = Idle | Running | Completed | Failed
Command = MigratePostgresDatabase | StepDone | StepFailed | StepUnderway | ObserveRun | Cancel
Event = (
    MigrationRequested
    | RunUnderway
    | AskedAgain
    | DatabaseUpserted
    | PermissionsCleaned
    | MigrationsRun
    | CancelAsked
    | MigrationCompleted
    | MigrationFailed
)
Effect = UpsertDatabase | CleanUpPermissions | RunMigrations | ObserveTask


def decide(state: State, command: Command, now: datetime) -> Decision:  # noqa: PLR0911 - the table
    match state, command:
        case Idle(), MigratePostgresDatabase(key, work, parent, whole):
            first = UpsertDatabase(work) if whole else RunMigrations(work)
            return Decision((MigrationRequested(key, work, parent, whole),), (first,))
        case Running(step="run"), StepUnderway(step="run", task=task):
            wake = SetTimer(OBSERVE, now + pause(state.polls), ObserveRun())
            return Decision((RunUnderway(task),), timers=(wake,))
        case Running(step="run"), ObserveRun() if state.task:
            return Decision((AskedAgain(),), (ObserveTask(state.work, state.task),))
        case Running(), StepDone(step) if step == state.step:
            return _next(state)
        case Running(), StepFailed(step, reason) if step == state.step:
            return _failed(state, f"{step}: {reason}")
        case Running(), Cancel(reason) if not state.cancelled:
            return _cancelled(state, reason or "no reason given", now)
        case (
            (Idle() | Running() | Completed() | Failed()),
            (MigratePostgresDatabase() | StepDone() | StepFailed() | Cancel())
            | (StepUnderway() | ObserveRun()),
        ):
            # Late, doubled, or an answer to a step that is over.
            return Decision()
        case unreachable:
            assert_never(unreachable)


def evolve(state: State, event: Event) -> State:
    match event:
        case MigrationRequested(key, work, parent, whole):
            return Running(UPSERT if whole else RUN, key, work, parent, whole=whole)
        case MigrationCompleted():
            return Completed()
        case MigrationFailed(reason):
            return Failed(reason)
        case _:
            assert isinstance(state, Running)
            return _moved(state, event)


def start(parent: StreamName, key: str, words: Mapping[str, object]) -> Send:
    """How a step of a plan begins this machine."""
    work, whole = msgspec.convert(words["work"], Work), bool(words.get("whole"))
    return Send(stream(key), MigratePostgresDatabase(key, work, parent, whole))


def stream(key: str) -> StreamName:
    return stream_name(NAME, key)


def _moved(
    state: Running,
    event: RunUnderway
    | AskedAgain
    | DatabaseUpserted
    | PermissionsCleaned
    | MigrationsRun
    | CancelAsked,
) -> Running:
    match event:
        case RunUnderway(task):
            return replace(state, task=task, polls=state.polls + 1)
        case CancelAsked(reason):
            return replace(state, cancelled=reason)
        case AskedAgain() | PermissionsCleaned(after_run=True):
            return state  # the last step: its end follows in the same decision
        case MigrationsRun() if not state.whole:
            return state  # the same
        case DatabaseUpserted() | PermissionsCleaned() | MigrationsRun():
            return replace(state, step=STEPS[STEPS.index(state.step) + 1])
        case unreachable:
            assert_never(unreachable)


def _cancelled(state: Running, reason: str, now: datetime) -> Decision:
    """What nobody performs at this moment is never begun, or tried again when a lock comes free.

    Else SQL would run hours after a person ended its deployment. Who performs it tells its end; of
    what was withdrawn nobody tells, so a timer ends the machine.
    """
    lost = StepFailed(state.step, f"cancelled, and its end was not told: {reason}")
    timer = SetTimer("give up", now + _LONGEST, lost)
    withdraws = tuple(map(Withdraw, (UpsertDatabase, CleanUpPermissions, RunMigrations)))
    return Decision((CancelAsked(reason),), timers=(timer,), withdraws=withdraws)


def _next(state: Running) -> Decision:
    done = _done(state.step)
    if state.step == CLEAN_AFTER or (state.step == RUN and not state.whole):
        # All is done: a cancel that came meanwhile has nothing left to prevent.
        told = _told(state, "migrated", succeeded=True)
        return Decision((done, MigrationCompleted()), sends=told)
    if state.cancelled:
        failed = _failed(state, f"cancelled after {state.step}: {state.cancelled}")
        return Decision((done, *failed.events), sends=failed.sends)
    return Decision((done,), (_following(state),))


def _done(step: str) -> Event:
    if step == UPSERT:
        return DatabaseUpserted()
    return MigrationsRun() if step == RUN else PermissionsCleaned(after_run=step == CLEAN_AFTER)


def _following(state: Running) -> Effect:
    if state.step == CLEAN_BEFORE:
        return RunMigrations(state.work)
    return CleanUpPermissions(state.work, after_run=state.step == RUN)


def _failed(state: Running, reason: str) -> Decision:
    return Decision((MigrationFailed(reason),), sends=_told(state, reason, succeeded=False))


def _told(state: Running, reason: str, *, succeeded: bool) -> tuple[Send, ...]:
    return report(state.parent, stream(state.key), succeeded=succeeded, reason=reason)


MIGRATION: machine.Machine[State, Command, Event] = machine.Machine(
    name=NAME,
    initial=Idle(),
    decide=decide,
    evolve=evolve,
    ended=lambda state: isinstance(state, Completed | Failed),
    # No verb: where the SQL lies is a deployment's word, not that of whoever has a token.
    vocabulary=machine.Vocabulary(State, Command, Event, Effect),
)
