"""The PostgreSQL-migration machine: its whole table, its sequence, and a crash at every commit."""

import itertools
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.areas.deployments.domain import migration
from fairlead.areas.deployments.domain.messages import POLL
from fairlead.areas.deployments.domain.migration import (
    MIGRATION,
    AskedAgain,
    CancelAsked,
    CleanUpPermissions,
    Completed,
    DatabaseUpserted,
    Failed,
    Idle,
    MigratePostgresDatabase,
    MigrationCompleted,
    MigrationFailed,
    MigrationRequested,
    MigrationsRun,
    ObserveRun,
    ObserveTask,
    PermissionsCleaned,
    RunMigrations,
    Running,
    RunUnderway,
    StepDone,
    StepFailed,
    StepUnderway,
    UpsertDatabase,
)
from fairlead.areas.deployments.domain.spec import Server, Work
from fairlead.engine import clock, messages, outbox, service, visibility
from fairlead.engine.messages import Cancel, ChildEnded, Decision, Send, SetTimer, Withdraw
from fairlead.engine.store import protocol, sqlite
from fairlead.engine.testing import START, Play, crash_at_every_commit, given

WORK = Work(Server("main"), "shop", "prod/shop", ("citext",), migrations="shop")
PARENT = messages.parse_stream("deployment/d1")
ASK = MigratePostgresDatabase("d1-shop", WORK, PARENT)
REQUESTED = MigrationRequested("d1-shop", WORK, PARENT)
CHILD = migration.stream("d1-shop")
COMMANDS: tuple[Any, ...] = (
    ASK,
    *(StepDone(step) for step in migration.STEPS),
    *(StepFailed(step, "broken") for step in migration.STEPS),
    *(StepUnderway(step, "arn:task") for step in migration.STEPS),
    ObserveRun(),
    Cancel("enough"),
)
ALONE = Running("run", "d1-shop", WORK, PARENT, whole=False)
UNDERWAY = Running("run", "d1-shop", WORK, PARENT, task="arn:task", polls=1)

STATES: tuple[Any, ...] = (
    Idle(),
    *(Running(step, "d1-shop", WORK, PARENT) for step in migration.STEPS),
    *(Running(step, "d1-shop", WORK, PARENT, "enough") for step in migration.STEPS),
    ALONE,
    UNDERWAY,
    Completed(),
    Failed("broken"),
)
DONE = {
    "upsert": (DatabaseUpserted(), CleanUpPermissions(WORK, after_run=False)),
    "clean-before": (PermissionsCleaned(after_run=False), RunMigrations(WORK)),
    "run": (MigrationsRun(), CleanUpPermissions(WORK, after_run=True)),
}


def told(reason: str, *, succeeded: bool) -> tuple[Send, ...]:
    return (Send(PARENT, ChildEnded(CHILD, succeeded, reason)),)


def expected(state: Any, command: Any) -> Decision:  # noqa: PLR0911 - one for each row
    """The whole table, said once more and otherwise than in the machine."""
    match state, command:
        case Idle(), MigratePostgresDatabase():
            return Decision((REQUESTED,), (UpsertDatabase(WORK),))
        case Running(step="run"), StepUnderway("run"):
            due = START + (POLL * 2 if state == UNDERWAY else POLL)
            wake = SetTimer("observe", due, ObserveRun())
            return Decision((RunUnderway("arn:task"),), timers=(wake,))
        case Running(step="run", task="arn:task"), ObserveRun():
            return Decision((AskedAgain(),), (ObserveTask(WORK, "arn:task"),))
        case Running(step="run", whole=False), StepDone("run"):
            run = (MigrationsRun(), MigrationCompleted())
            return Decision(run, sends=told("migrated", succeeded=True))
        case Running(step="clean-after"), StepDone("clean-after"):
            ends = (PermissionsCleaned(after_run=True), MigrationCompleted())
            return Decision(ends, sends=told("migrated", succeeded=True))
        case Running(cancelled="enough"), StepDone(step) if step == state.step:
            why = f"cancelled after {step}: enough"
            ended = (DONE[step][0], MigrationFailed(why))
            return Decision(ended, sends=told(why, succeeded=False))
        case Running(), StepDone(step) if step == state.step:
            return Decision((DONE[step][0],), (DONE[step][1],))
        case Running(), StepFailed(step) if step == state.step:
            why = f"{step}: broken"
            return Decision((MigrationFailed(why),), sends=told(why, succeeded=False))
        case Running(cancelled=""), Cancel():
            lost = StepFailed(state.step, "cancelled, and its end was not told: enough")
            timer = SetTimer("give up", START + timedelta(hours=13), lost)
            withdrawn = tuple(map(Withdraw, (UpsertDatabase, CleanUpPermissions, RunMigrations)))
            return Decision((CancelAsked("enough"),), timers=(timer,), withdraws=withdrawn)
    return Decision()


@pytest.mark.parametrize(("state", "command"), [*itertools.product(STATES, COMMANDS)])
def test_every_state_answers_every_command(state: Any, command: Any) -> None:
    decided = MIGRATION.decide(state, command, START)

    assert decided == expected(state, command)
    event: Any
    for event in decided.events:
        state = MIGRATION.evolve(state, event)
    if isinstance(state, Running):
        state = replace(state, polls=0, task="", cancelled="")
    assert state in STATES or isinstance(state, Failed)


@pytest.mark.requirement(
    "deployer Q20", "deployer Q21", "deployer Q22", "deployer Q23", "deployer Q24", "deployer Q25"
)
def test_the_steps_go_in_order_and_permissions_are_cleaned_twice() -> None:
    asked: list[object] = []
    at = given(MIGRATION)

    step = at.when(ASK)
    for answer in migration.STEPS:
        asked += step.decision.effects
        step = given(MIGRATION, *_events(asked)).when(StepDone(answer))

    assert asked == [
        UpsertDatabase(WORK),
        CleanUpPermissions(WORK, after_run=False),
        RunMigrations(WORK),
        CleanUpPermissions(WORK, after_run=True),
    ]
    assert step.state == Completed()
    step.sends(*told("migrated", succeeded=True))


def _events(asked: list[object]) -> list[object]:
    done = [DatabaseUpserted(), PermissionsCleaned(after_run=False), MigrationsRun()]
    return [REQUESTED, *done[: len(asked) - 1]]


@pytest.mark.requirement("deployer Q26")
def test_a_failure_is_told_to_whoever_asked_and_nothing_follows() -> None:
    ended = given(MIGRATION, REQUESTED).when(StepFailed("upsert", "no rights"))

    ended.then(MigrationFailed("upsert: no rights")).asks()
    ended.sends(*told("upsert: no rights", succeeded=False))


def test_the_run_alone_begins_with_it_and_ends_with_it() -> None:
    words = {"work": msgspec.to_builtins(WORK)}
    sent = migration.start(PARENT, "d1-PGMigrate-1", words)

    asked = given(MIGRATION).when(sent.command)
    ended = given(MIGRATION, *asked.decision.events).when(StepDone("run"))

    assert sent.stream == migration.stream("d1-PGMigrate-1")
    asked.asks(RunMigrations(WORK))
    ended.then(MigrationsRun(), MigrationCompleted()).asks()


async def test_a_crash_at_every_commit_ends_the_same(tmp_path: Path) -> None:
    numbers = itertools.count()
    seen: list[Counter[str]] = []

    def build(store: protocol.Store, wall: clock.Clock) -> service.Engine:
        counted: Counter[str] = Counter()
        seen.append(counted)

        async def perform(effect: Any, _: outbox.EffectContext) -> StepDone:
            step = _step(effect)
            counted[step] += 1
            return StepDone(step)

        types = (UpsertDatabase, CleanUpPermissions, RunMigrations)
        handlers: dict[type, outbox.Handler] = {each: outbox.Handler(perform) for each in types}
        return service.Engine(service.Parts(store, (MIGRATION,), handlers, wall=wall))

    async def act(engine: service.Engine) -> None:
        alone = MigratePostgresDatabase("d1-shop", WORK)
        await engine.submit(CHILD, alone, messages.command_id("the request"))

    async def settled(engine: service.Engine) -> bool:
        every = await engine.read(lambda s: visibility.streams(s, visibility.StreamFilter()))
        return bool(every) and all(view.ended_at for view in every)

    async def check(engine: service.Engine) -> None:
        events = await engine.read(lambda s: visibility.events(s, CHILD))
        assert [event.type for event in events] == [
            *("MigrationRequested", "DatabaseUpserted", "PermissionsCleaned", "MigrationsRun"),
            *("PermissionsCleaned", "MigrationCompleted"),
        ]

    def fresh() -> protocol.Store:
        return sqlite.SqliteStore(tmp_path / f"{next(numbers)}.db")

    cuts = await crash_at_every_commit(Play(fresh, build, act, settled), check)

    assert cuts >= 5


def _step(effect: Any) -> str:
    match effect:
        case UpsertDatabase():
            return "upsert"
        case RunMigrations():
            return "run"
        case CleanUpPermissions(after_run=after):
            return "clean-after" if after else "clean-before"
        case _:
            raise AssertionError(effect)
