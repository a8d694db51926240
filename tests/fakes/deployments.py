"""Stacks with deployments, brought to where a test wants to see them; nobody performs them."""

from dataclasses import replace

from fairlead.areas.deployments.domain import definition, messages
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.infrastructure import StackStatus
from fairlead.areas.deployments.domain.messages import StatementFound, StepStatus
from fairlead.areas.deployments.domain.spec import (
    Database,
    DeploymentSpec,
    Policy,
    TemplatePlace,
    deployment_stream,
)
from fairlead.areas.deployments.domain.trigger.messages import (
    Refuse,
    Source,
    Start,
    Target,
    trigger_stream,
)
from fairlead.engine import service
from fairlead.engine.messages import command_id
from tests.engines import tell

_USUAL = Policy()
STATEMENTS = (
    StatementFound("ALTER TABLE orders ADD COLUMN note text", Impact.BEFORE, (
        "AccessExclusiveLock on orders",), reasons=("adds column orders.note",)),
    StatementFound("CREATE INDEX CONCURRENTLY orders_at ON orders (at)", Impact.PARALLEL,
        ("ShareUpdateExclusiveLock on orders",), scan=True, reasons=("scans orders",),
        suggestion="none is needed"),
)  # fmt: skip


def spec(app: str, version: str, policy: Policy = _USUAL) -> DeploymentSpec:
    place = TemplatePlace("templates", f"prod/{app}/abc.json", "eu-west-1")
    databases = (Database("orders", f"prod_{app}_orders", "main"),)
    return DeploymentSpec(app, "prod", version, place, databases=databases, policy=policy)


async def requested(engine: service.Engine, wanted: DeploymentSpec) -> str:
    """Its name, once it waits in the queue or for its infrastructure."""
    name = f"{wanted.key}/{wanted.version}"
    asked = messages.Request(name, wanted, "", "push to main of acme/shop", "github:ann")
    await engine.submit(deployment_stream(name), asked, command_id(f"request {name}"))
    return name


async def settled(engine: service.Engine, name: str) -> None:
    """Its infrastructure was looked at, so it has a plan."""
    found = messages.ReportStackStatus(StackStatus.COMPLETE, "UPDATE_COMPLETE")
    await tell(engine, deployment_stream(name), found)


async def reported(
    engine: service.Engine, name: str, step: str, *, error: str = "", impact: Impact | None = None
) -> None:
    """A step came to its end."""
    status = StepStatus.FAILED if error else StepStatus.DONE
    told = messages.ReportStep(step, 1, status, error, impact=impact)
    if step == "PGEval":
        told = replace(told, statements=STATEMENTS, reasons=("adds column orders.note: BEFORE",))
    await tell(engine, deployment_stream(name), told)


async def evaluated(engine: service.Engine, app: str = "shop", version: str = "v2") -> str:
    """In the middle of its plan, after an evaluation that came to BEFORE."""
    name = await requested(engine, spec(app, version))
    await settled(engine, name)
    await reported(engine, name, "PGUpsert")
    await reported(engine, name, "PGEval", impact=Impact.BEFORE)
    await reported(engine, name, "CFPlan", impact=Impact.NOP)
    return name


async def broken(engine: service.Engine, app: str = "till", version: str = "v7") -> str:
    name = await requested(engine, spec(app, version))
    await settled(engine, name)
    await reported(engine, name, "CFPlan", impact=Impact.NOP)
    for attempt in (1, 2, 3):
        failed = messages.ReportStep("PGUpsert", attempt, StepStatus.FAILED, "no room on the disk")
        await tell(engine, deployment_stream(name), failed)
    return name


async def asking(engine: service.Engine, app: str = "desk", version: str = "v1") -> str:
    """It waits for a person before anything runs."""
    name = await requested(engine, spec(app, version, Policy(approve=True)))
    await settled(engine, name)
    return name


async def everything(engine: service.Engine) -> None:
    """Stacks that run, wait, ask and are broken; a trigger; and what is stored, in two versions."""
    await evaluated(engine)
    await requested(engine, spec("shop", "v3"))
    await broken(engine)
    await asking(engine)
    source = Source("github", "acme/shop", "refs/heads/main", "c" * 40)
    targets = (Target("prod", "shop", "shop.yaml"), Target("prod", "till", "till.yaml"))
    start = Start("main:1", source, targets, "push to main of acme/shop", "github:ann")
    await tell(engine, trigger_stream("main:1"), start)
    await tell(engine, trigger_stream("main:1"), Refuse("prod/till", "no such file: till.yaml"))
    target = {"environment": "prod", "application": "shop", "repository": "acme/shop"}
    for branches in (["main"], ["main", "release/*"]):
        store = definition.Store({**target, "branches": branches}, "ann")
        await tell(engine, "push-target/prod/shop", store)
    await tell(engine, "environment/prod", definition.Store({"full_name": "prod"}, "ann"))
