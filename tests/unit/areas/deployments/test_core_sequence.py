"""The document's sequence as it goes when nothing is cut, and what must not disturb it."""

from typing import Any

import msgspec
import pytest

from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.deployment import events as deployment_events
from fairlead.areas.deployments.domain.deployment.state import Deployment, evolve, phase
from fairlead.areas.deployments.domain.infrastructure import CLOUDFORMATION, StackStatus
from fairlead.areas.deployments.domain.messages import StepStatus
from fairlead.areas.deployments.domain.plan import build as plans
from fairlead.areas.deployments.domain.plan.steps import Observation
from fairlead.areas.deployments.domain.spec import Flag
from fairlead.engine import service, visibility
from fairlead.engine.messages import ChildEnded, parse_stream, stream_name
from fairlead.engine.testing import HandWoundClock
from tests.engines import events, state, tell, until
from tests.unit.areas.deployments.domain.samples import flagged
from tests.unit.areas.deployments.recorded import RecordedPlatform
from tests.unit.areas.deployments.test_core import SEQUENCE, built, ended, request, status


async def walked(engine: service.Engine, name: str) -> list[str]:
    """Each status and phase that a deployment was in, in their order."""
    stream = stream_name("deployment", name)
    told = await engine.read(lambda session: visibility.events(session, stream))
    now, found = Deployment(), list[str]()
    for each in told:
        event: Any = msgspec.convert(each.data, getattr(deployment_events, each.type))
        now = evolve(now, event)
        shown = phase(now) or now.status.value
        if shown not in found[-1:]:
            found.append(shown)
    return found


@pytest.mark.requirement("deployer Q-conflict")
async def test_the_sequence_goes_in_the_documents_order_with_its_notes(
    sqlite_home: Any, wall: HandWoundClock
) -> None:
    platform = RecordedPlatform()
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        await request(engine, "d1")
        await ended(engine, wall, "d1")

        assert await walked(engine, "d1") == [
            # The states of the deployment; TRIGGERED is passed within one decision.
            *("QUEUED", "TRIGGERED", "WAITING", "AVAILABLE"),
            # RUNNING, by the notes of the sequence.
            *("STARTING", "INFRA_MIGRATING", "INFRA_MIGRATED", "DB_MIGRATING", "DB_MIGRATED"),
            *("SCALING_UP", "SCALED_UP"),
            "DONE",
        ]
    # Storing goes on beside the wait, so either may be first.
    assert {*platform.asked[:2]} == {*SEQUENCE[:2]}
    assert platform.asked[2:] == SEQUENCE[2:]


FAILS = {StackStatus.TERMINAL, StackStatus.CREATE_FAILED}


@pytest.mark.parametrize("name", CLOUDFORMATION)
async def test_a_stack_in_any_status_at_the_start_has_its_end(
    name: str, sqlite_home: Any, wall: HandWoundClock
) -> None:
    """What moves is waited for until it rests; from where nothing leads on, it fails."""
    meaning = CLOUDFORMATION[name]
    after = ["UPDATE_COMPLETE"] if meaning.moving else []
    platform = RecordedPlatform(statuses=[name, *after], slow=False)
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        await request(engine, "d1")

        found = await ended(engine, wall, "d1")
        stack = await status(engine, "stack/prod/shop")

    if meaning in FAILS:
        assert (found, stack) == ("FAILED", "BROKEN")
        assert not any(each.startswith("database") for each in platform.asked)
    else:
        assert (found, stack) == ("DONE", "AVAILABLE")
        made = meaning is StackStatus.MISSING
        assert ("InfraMigrate" in platform.asked) is made
        assert ("CFPlan" in platform.asked) is not made


FOREIGN = [
    messages.ReportStackStatus(StackStatus.TERMINAL, "late"),
    messages.ReportTemplate("late"),
    messages.ReportStep("InfraMigrate", 7, StepStatus.FAILED, "of another attempt"),
    messages.ReportStep("Unknown", 1, StepStatus.FAILED, "of another deployment"),
    messages.TimeOut("InfraMigrate", 7),
    messages.ObserveAgain("Unknown", 1),
    ChildEnded(parse_stream("postgres-migration/other"), succeeded=False, reason="not ours"),
    messages.TriggerDeployment(),
    messages.Supersede("d9"),
    messages.Observe(),
    messages.FreezeEnded(),
]


async def test_late_double_and_foreign_messages_change_nothing(
    sqlite_home: Any, wall: HandWoundClock
) -> None:
    platform = RecordedPlatform()
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        await request(engine, "d1")

        async def running() -> bool:
            # Time stands still, so the first step is under way and nobody asks about it.
            return "InfraMigrate" in platform.asked and not await engine.read(visibility.effects)

        await until(running)
        before = await events(engine, "deployment/d1")
        for each in FOREIGN:
            await tell(engine, "deployment/d1", each)
        amid = await events(engine, "deployment/d1")
        assert await ended(engine, wall, "d1") == "DONE"
        done = await events(engine, "deployment/d1")
        for each in [*FOREIGN, messages.ReportStep("ScaleUp", 1, StepStatus.FAILED, "late")]:
            await tell(engine, "deployment/d1", each)

        assert amid == before
        assert await events(engine, "deployment/d1") == done
        assert (await state(engine, "stack/prod/shop"))["status"] == "AVAILABLE"


EVALUATED = ("PGUpsert", "PGEval", "CFPlan", "EvalJoin")
PLANS = {
    "P1": ((Flag.QUICK, Flag.SEQUENTIAL), Impact.NOP, ("CFUpsert",)),
    "P2": ((Flag.SEQUENTIAL,), Impact.NOP, ("ScaleDown", "InfraMigrate", "PGMigrate", "ScaleUp")),
    "P3": ((Flag.QUICK,), Impact.NOP, ("CFUpsert", "PGUpsert", "PGMigrate", "PGCleanup")),
    "P4a": (
        (),
        Impact.DOWNTIME,
        (*EVALUATED, "ScaleDown", "InfraMigrate", "PGMigrate", "PGCleanup", "ScaleUp"),
    ),
    "P4b": (
        (),
        Impact.BEFORE,
        (*EVALUATED, "InfraMigrate", "PGMigrate", "PGCleanup", "VersionMigrate"),
    ),
    "P4c": ((), Impact.NOP, (*EVALUATED, "VersionMigrate")),
    "P4d": ((), Impact.PARALLEL, (*EVALUATED, "CFUpsert", "PGMigrate", "PGCleanup")),
}


@pytest.mark.requirement(
    "deployer P1",
    "deployer P2",
    "deployer P3",
    "deployer P4",
    "deployer P4a",
    "deployer P4b",
    "deployer P4c",
    "deployer P4d",
    "deployer P5",
)
@pytest.mark.parametrize("name", PLANS)
async def test_a_run_takes_the_steps_of_its_plan_each_after_those_it_waits_for(
    name: str, sqlite_home: Any, wall: HandWoundClock
) -> None:
    flags, impact, steps = PLANS[name]
    spec = flagged(*flags)
    shown = plans.build(spec, Observation(exists=True))
    platform = RecordedPlatform(exists=True, impact=impact)
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        await request(engine, "d1", spec)
        assert await ended(engine, wall, "d1") == "DONE"
        stream = stream_name("deployment", "d1")
        told = await engine.read(lambda session: visibility.events(session, stream, limit=500))

    began = {each.data["step"]: each.seq for each in told if each.type == "RunStep"}
    done = {each.data["step"]: each.seq for each in told if each.type == "StepResult"}
    assert sorted(began) == sorted(steps)
    planned = (*shown.steps, *shown.branch(impact))
    assert sorted(each.name for each in planned) == sorted(steps), "what is shown is what runs"
    late = [
        (each.name, before)
        for each in planned
        for before in each.depends_on
        if began[each.name] < done[before]
    ]
    assert late == []
