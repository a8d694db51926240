"""Stacks and deployments together on the real engine: the whole sequence, cut at every commit."""

import asyncio
import dataclasses
import itertools
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.area import parts
from fairlead.areas.deployments import area
from fairlead.areas.deployments.domain import messages, migration
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.spec import DeploymentSpec, Freeze, Policy
from fairlead.engine import clock, outbox, service, visibility
from fairlead.engine.messages import command_id, stream_name
from fairlead.engine.store import protocol, sqlite
from fairlead.engine.testing import HandWoundClock, Play, crash_at_every_commit
from tests.engines import events, state, tell, until
from tests.unit.areas.deployments.domain.samples import SPEC, TWO
from tests.unit.areas.deployments.recorded import RecordedPlatform

MACHINES = parts.machines([parts.core(area.DEPLOYMENTS)])


def built(store: protocol.Store, wall: clock.Clock, platform: RecordedPlatform) -> service.Engine:
    return service.Engine(service.Parts(store, MACHINES, platform.handlers(), wall=wall))


async def request(
    engine: service.Engine, name: str, spec: DeploymentSpec = SPEC, *, fixes: bool = False
) -> None:
    asked = messages.Request(name, spec, "{}", "push", "ann", fixes)
    await engine.submit(stream_name("deployment", name), asked, command_id(f"request {name}"))


async def status(engine: service.Engine, stream: str) -> str:
    found: dict[str, Any] = await state(engine, stream)
    return str(found["status"])


async def ended(engine: service.Engine, wall: HandWoundClock, name: str, *expected: str) -> str:
    async def over() -> bool:
        return await status(engine, f"deployment/{name}") in (expected or OVER)

    await until(over, wall)
    return await status(engine, f"deployment/{name}")


OVER = ("DONE", "FAILED", "TERMINATED")


@dataclasses.dataclass
class Story:
    """A new stack and its first deployment; each cut has a store and a cloud of its own."""

    folder: Path
    exists: bool = False
    platform: RecordedPlatform = dataclasses.field(init=False)
    count: Any = dataclasses.field(default_factory=itertools.count)

    def fresh_store(self) -> protocol.Store:
        self.platform = RecordedPlatform(exists=self.exists, impact=Impact.BEFORE)
        return sqlite.SqliteStore(self.folder / f"{next(self.count)}.db")

    def build(self, store: protocol.Store, wall: clock.Clock) -> service.Engine:
        return built(store, wall, self.platform)

    async def act(self, engine: service.Engine) -> None:
        await request(engine, "d1")

    async def settled(self, engine: service.Engine) -> bool:
        unsettled = await engine.read(visibility.effects)
        return not unsettled and await status(engine, "stack/prod/shop") == "AVAILABLE"


SEQUENCE = [
    # Q5, Q8 to Q14: stored, triggered, and nothing is there yet.
    *("store prod/shop/abc.json", "stack is MISSING"),
    # Q15 to Q18: made at no count.
    "InfraMigrate",
    # Q20 to Q24: the migration machine.
    *("database upsert", "database clean-before", "database run", "database clean-after"),
    # Q28 to Q31: scaled up.
    "ScaleUp",
]


@pytest.mark.slow
@pytest.mark.requirement(
    "deployer Q1",
    "deployer Q5",
    "deployer Q6",
    "deployer Q7",
    "deployer Q8",
    "deployer Q9",
    "deployer Q10",
    "deployer Q11",
    "deployer Q12",
    "deployer Q13",
    "deployer Q14",
    "deployer Q15",
    "deployer Q16",
    "deployer Q17",
    "deployer Q18",
    "deployer Q19",
    "deployer Q20",
    "deployer Q21",
    "deployer Q22",
    "deployer Q23",
    "deployer Q24",
    "deployer Q25",
    "deployer Q26",
    "deployer Q27",
    "deployer Q28",
    "deployer Q29",
    "deployer Q30",
    "deployer Q31",
    "deployer Q32",
)
async def test_the_sequence_cut_at_any_commit_ends_the_same(tmp_path: Path) -> None:
    story = Story(tmp_path)

    async def check(engine: service.Engine) -> None:
        assert await status(engine, "deployment/d1") == "DONE"
        assert sorted(story.platform.asked) == sorted(SEQUENCE)
        # However often an effect was delivered, its token was the same: the cloud acts once on it.
        tokens = {each for each in story.platform.tokens if not each.startswith("database")}
        steps = ("InfraMigrate", "ScaleUp")
        assert tokens == {"prod/shop/abc.json", *(f"d1-{step}-1" for step in steps)}
        assert len(story.platform.tokens - tokens) == len(migration.STEPS)
        told = await events(engine, "postgres-migration/d1-PGMigrate-1")
        assert [each for each in told if each not in {"RunUnderway", "AskedAgain"}] == [
            *("MigrationRequested", "DatabaseUpserted", "PermissionsCleaned", "MigrationsRun"),
            *("PermissionsCleaned", "MigrationCompleted"),
        ]
        assert await events(engine, "stack/prod/shop") == [
            *("Triggered", "DeploymentCompleted", "BecameAvailable")
        ]
        told = await events(engine, "deployment/d1")
        beside = {"TemplateStored", "StackObserved", "StillUnderway", "AskedAgain"}
        assert [each for each in told if each not in beside] == [
            *("Requested", "Triggered", "StackWait", "StackAvailable", "Running"),
            *("RunStep", "StepResult") * 3,
            "Done",
        ]

    play = Play(story.fresh_store, story.build, story.act, story.settled)
    cuts = await crash_at_every_commit(play, check)

    assert cuts > 10


@pytest.mark.requirement("deployer P4b")
async def test_an_evaluated_deployment_walks_the_branch_that_was_found(
    sqlite_home: Any, wall: HandWoundClock
) -> None:
    platform = RecordedPlatform(exists=True, impact=Impact.BEFORE)
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        await request(engine, "d1")

        assert await ended(engine, wall, "d1") == "DONE"

    steps = [each for each in platform.asked if " " not in each]
    assert {*steps[:3]} == {"PGUpsert", "PGEval", "CFPlan"}
    assert {*steps[3:5]} == {"InfraMigrate", "PGCleanup"}
    assert steps[5:] == ["VersionMigrate"]
    # The run alone: others made the database, and clean up.
    assert [each for each in platform.asked if each.startswith("database")] == ["database run"]


async def test_a_migration_that_dies_breaks_the_stack_and_says_why(
    sqlite_home: Any, wall: HandWoundClock
) -> None:
    platform = RecordedPlatform(fails="database run")
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        await request(engine, "d1")

        assert await ended(engine, wall, "d1") == "FAILED"
        found = await state(engine, "deployment/d1")
        assert found["reason"] == "Step PGMigrate: run: the task exited with code 1"
        assert await status(engine, "stack/prod/shop") == "BROKEN"
    assert "ScaleUp" not in platform.asked


async def test_a_template_that_cannot_be_stored_fails_the_deployment_and_not_the_stack(
    sqlite_home: Any, wall: HandWoundClock
) -> None:
    platform = RecordedPlatform(fails="store")
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        await request(engine, "d1")

        assert await ended(engine, wall, "d1") == "FAILED"
        found = await state(engine, "deployment/d1")
        assert found["reason"] == "the template is not stored: no such bucket"
        assert await status(engine, "stack/prod/shop") == "AVAILABLE"


@pytest.mark.requirement("deployer S6", "deployer S11")
async def test_deployments_of_one_stack_run_one_after_another_in_their_order(
    sqlite_home: Any, wall: HandWoundClock
) -> None:
    platform = RecordedPlatform(exists=True)
    names = [f"d{n}" for n in range(6)]
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        for name in names:
            await request(engine, name)
        for name in names:
            await ended(engine, wall, name)
        started = await engine.read(
            lambda session: visibility.events(session, stream_name("stack", "prod/shop"))
        )

    turns = [each for each in started if each.type in {"DeploymentStarted", "DeploymentCompleted"}]
    told = [(each.type, each.data["deployment"]) for each in turns]
    expected = [("DeploymentCompleted", "d0")]
    for name in names[1:]:
        expected += [("DeploymentStarted", name), ("DeploymentCompleted", name)]
    assert told == expected


async def test_a_terminated_one_in_the_queue_leaves_the_current_alone(
    sqlite_home: Any, wall: HandWoundClock
) -> None:
    platform = RecordedPlatform(exists=True)
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        for name in ("d1", "d2", "d3"):
            await request(engine, name)
        await tell(engine, "deployment/d2", messages.Terminate("ann"))

        assert await status(engine, "stack/prod/shop") in {"CREATING", "MIGRATING"}
        assert [await ended(engine, wall, name) for name in ("d1", "d2", "d3")] == [
            *("DONE", "TERMINATED", "DONE")
        ]
    assert "d2-PGUpsert-1" not in platform.tokens


@pytest.mark.requirement("deployer D11")
async def test_one_that_is_terminated_in_its_steps_leaves_nothing_to_do(
    sqlite_home: Any, wall: HandWoundClock
) -> None:
    platform = RecordedPlatform(exists=True)
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        await request(engine, "d1")

        async def begun() -> bool:
            return "CFPlan" in platform.asked and "PGUpsert" in platform.asked

        # Time stands still, so that both steps are under way and nobody asks about them.
        await until(begun)
        await tell(engine, "deployment/d1", messages.Terminate("ann", "wrong version"))
        broken = await state(engine, "stack/prod/shop")
        await tell(engine, "stack/prod/shop", messages.ForceAvailable("ann", "looked at it"))

        async def nothing_left() -> bool:
            return not await engine.read(visibility.effects)

        await until(nothing_left, wall)
        assert (broken["status"], broken["reason"]) == (
            "BROKEN",
            "terminated by ann: wrong version",
        )
        assert await status(engine, "deployment/d1") == "TERMINATED"
        assert await status(engine, "stack/prod/shop") == "AVAILABLE"
        timers = await engine.read(visibility.timers)
    assert [*timers] == []


@dataclasses.dataclass
class Locked(RecordedPlatform):
    """Others hold a lock, so a run of migrations is tried again and again."""

    tries: int = 0

    async def migrate(
        self, effect: migration.Effect, about: outbox.EffectContext
    ) -> migration.StepDone | migration.StepUnderway | migration.StepFailed:
        if isinstance(effect, migration.RunMigrations):
            self.tries += 1
            raise errors.Unavailable("others hold a lock", hint="it is tried again")
        return await super().migrate(effect, about)


async def test_a_migration_that_waits_for_a_lock_is_not_run_after_its_deployment_was_ended(
    sqlite_home: Any, wall: HandWoundClock
) -> None:
    platform = Locked()
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        await request(engine, "d1")

        async def tried() -> bool:
            return platform.tries > 1

        async def over() -> bool:
            told = await events(engine, "postgres-migration/d1-PGMigrate-1")
            return told[-1] == "MigrationFailed"

        await until(tried, wall)
        await tell(engine, "deployment/d1", messages.Terminate("ann", "wrong day"))
        before = platform.tries
        for _ in range(14):
            wall.advance(timedelta(hours=1))
            await asyncio.sleep(0.05)
        await until(over, wall)
        left = await engine.read(visibility.effects), await engine.read(visibility.timers)

    # One may have been on its way while the person decided.
    assert platform.tries - before <= 1
    assert [[*each] for each in left] == [[], []]


@pytest.mark.requirement("deployer S9", "deployer S-gap")
async def test_a_broken_stack_keeps_its_queue_and_leaves_by_a_retry(
    sqlite_home: Any, wall: HandWoundClock
) -> None:
    platform = RecordedPlatform(exists=True, fails="CFPlan", slow=False)
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        await request(engine, "d1")
        await request(engine, "d2")
        assert await ended(engine, wall, "d1") == "FAILED"
        broken = await state(engine, "stack/prod/shop")
        platform.fails = ""
        await tell(engine, "stack/prod/shop", messages.Retry("ann"))
        assert [await ended(engine, wall, name) for name in ("d1.r2", "d2")] == ["DONE", "DONE"]

        assert (broken["status"], broken["queue"]) == ("BROKEN", ["d2"])
        assert await status(engine, "stack/prod/shop") == "AVAILABLE"


async def test_a_fix_goes_before_those_that_wait(sqlite_home: Any, wall: HandWoundClock) -> None:
    platform = RecordedPlatform(exists=True, fails="CFPlan", slow=False)
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        await request(engine, "d1")
        await request(engine, "d2")
        await ended(engine, wall, "d1")
        platform.fails = ""
        await request(engine, "d3", fixes=True)
        assert [await ended(engine, wall, name) for name in ("d3", "d2")] == ["DONE", "DONE"]

        told = await events(engine, "stack/prod/shop")
        assert told.index("DeploymentFailed") < told.index("DeploymentCompleted")


async def test_a_newer_one_supersedes_those_that_wait(
    sqlite_home: Any, wall: HandWoundClock
) -> None:
    spec = dataclasses.replace(SPEC, policy=Policy(supersede=True))
    platform = RecordedPlatform(exists=True)
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        for name in ("d1", "d2", "d3"):
            await request(engine, name, spec)

        assert [await ended(engine, wall, name) for name in ("d1", "d2", "d3")] == [
            *("DONE", "TERMINATED", "DONE")
        ]
        assert (await state(engine, "deployment/d2"))["reason"] == "superseded by d3"


async def test_nothing_begins_in_a_freeze_and_it_goes_on_by_itself_after_it(
    sqlite_home: Any, wall: HandWoundClock
) -> None:
    hour, begins = timedelta(hours=1), wall.now()
    freezes = (
        Freeze(begins, begins + hour, "holidays"),
        Freeze(begins + hour, begins + 2 * hour, "and the day after"),
    )
    spec = dataclasses.replace(SPEC, policy=Policy(freezes=freezes))
    platform = RecordedPlatform(exists=True)
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        await request(engine, "d1", spec)
        waited = list[str]()
        for freeze in freezes:

            async def frozen(why: str = freeze.reason) -> bool:
                found = await state(engine, "deployment/d1")
                return bool(found["waits_for"] == f"end of a freeze: {why}")

            await until(frozen)
            waited += [each for each in platform.asked if each in {"PGUpsert", "CFPlan"}]
            wall.advance(hour)
        assert await ended(engine, wall, "d1") == "DONE"

    assert waited == []


async def test_what_asks_for_approval_waits_for_a_person_and_holds_the_others_back(
    sqlite_home: Any, wall: HandWoundClock
) -> None:
    spec = dataclasses.replace(SPEC, policy=Policy(approve=True))
    platform = RecordedPlatform(exists=True)
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        for name in ("d1", "d2"):
            await request(engine, name, spec)
        await ended(engine, wall, "d1", "AVAILABLE")
        waiting = [each for each in platform.asked if each in {"PGUpsert", "CFPlan"}]
        await tell(engine, "deployment/d1", messages.Approve("ann"))
        first = await ended(engine, wall, "d1")
        await ended(engine, wall, "d2", "AVAILABLE")
        await tell(engine, "deployment/d2", messages.Terminate("ann", "not today"))
        found = await state(engine, "deployment/d1"), await status(engine, "stack/prod/shop")

    assert waiting == []
    assert (first, found[0]["approved"], found[1]) == ("DONE", "ann", "AVAILABLE")


async def test_two_databases_are_migrated_beside_each_other(
    sqlite_home: Any, wall: HandWoundClock
) -> None:
    platform = RecordedPlatform()
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        await request(engine, "d1", TWO)

        assert await ended(engine, wall, "d1") == "DONE"
        for each in ("orders", "stock"):
            told = await events(engine, f"postgres-migration/d1-PGMigrate.{each}-1")
            assert told[-1] == "MigrationCompleted"
    # Both were asked for before either had ended, and the stack is scaled up once, after both.
    assert platform.asked[-1] == "ScaleUp"
