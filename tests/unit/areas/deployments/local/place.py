"""This machine as far as deployments see it: a real PostgreSQL, files, and pods in memory."""

import asyncio
import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlead.area import parts
from fairlead.areas.deployments import area as deployments
from fairlead.areas.deployments import migration_handlers
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.local import handlers
from fairlead.areas.deployments.local.databases import Databases
from fairlead.areas.deployments.specs import build, reading, workload
from fairlead.areas.rollouts import area as rollouts
from fairlead.areas.rollouts import handlers as rollout_handlers
from fairlead.areas.rollouts.local.plan_steps import PlanFiles
from fairlead.areas.rollouts.local.plan_steps import handlers as step_handlers
from fairlead.areas.rollouts.workloads import DeployRequest, WorkloadWords
from fairlead.clients.postgres.server.wheel import installed_wheel
from fairlead.engine import clock, outbox, service
from fairlead.engine.messages import command_id, stream_name
from fairlead.engine.store import protocol
from fairlead.engine.testing import HandWoundClock
from tests.fakes.checks import registry
from tests.fakes.rollouts import FakePlatform

MACHINES = (*parts.machines([parts.core(deployments.DEPLOYMENTS), parts.core(rollouts.ROLLOUTS)]),)
DATABASE, STACK = "fairlead_test_shop_goods", "fairlead-test/shop"
SQL = {
    "0001_goods.sql": "CREATE TABLE goods (id int PRIMARY KEY); INSERT INTO goods VALUES (1)",
    "0002_stock.sql": "ALTER TABLE goods ADD COLUMN stock int NOT NULL DEFAULT 0",
    "0003_wider.sql": "ALTER TABLE goods ALTER COLUMN stock TYPE bigint",
}
USUAL_LEASE = service.Tuning().lease
ENVIRONMENT = reading.environment({"full_name": "fairlead-test"})
CHECKS = [{"name": "latency", "metric": "request-duration", "high": 1000}]


@dataclass
class Kept:
    """What the platform was told to keep, before its rollout hears of it."""

    revisions: dict[str, str] = field(default_factory=dict)
    queue: str = ""

    async def keep(self, deploy_request: DeployRequest) -> None:
        self.revisions[deploy_request.revision] = deploy_request.words.version

    async def remember(self, words: WorkloadWords) -> None: ...

    async def deployed(self, name: str) -> WorkloadWords | None:
        return None


@dataclass
class Machine:
    """It outlives the control plane."""

    folder: Path
    server: str
    platform: FakePlatform = field(default_factory=FakePlatform)
    kept: Kept = field(default_factory=Kept)
    postgres: dict[str, Any] = field(default_factory=lambda: {"migrations": "sql"})
    """How the database is migrated."""

    def handlers(self, engine: Callable[[], service.Engine], wall: clock.Clock) -> outbox.Handlers:
        databases = Databases(self.server, self.folder, str(installed_wheel().programs / "pg_dump"))
        files, fake = PlanFiles(self.folder), self.platform
        world = rollout_handlers.RolloutPorts(fake, fake, fake, registry(fake), wall.now)
        return {
            **handlers.handlers(files, databases, engine),
            **migration_handlers.handlers(databases),
            **rollout_handlers.handlers(world),
            **step_handlers(self.kept, files),
        }

    def engine(
        self,
        store: protocol.Store,
        wall: clock.Clock,
        lease: dt.timedelta = USUAL_LEASE,
    ) -> service.Engine:
        made: list[service.Engine] = []
        performed = self.handlers(lambda: made[-1], wall)
        tuning = service.Tuning(lease=lease)
        given = service.Parts(store, MACHINES, performed, wall=wall, tuning=tuning)
        made.append(service.Engine(given))
        return made[-1]

    def spec(self, version: str, migrations: int, flags: tuple[Any, ...] = ()) -> build.Built:
        app: dict[str, Any] = {
            "name": "shop",
            "databases": [{"name": "goods", "postgres": self.postgres}],
            "workload": {
                "listen": 8080,
                "replicas": 2,
                "program": {"command": ["serve", version]},
                "strategy": {"steps": [100]},
                "checks": CHECKS,
            },
        }
        here = workload.Machine("", self.folder / "credentials", postgres=True)
        sql = {"goods": dict(list(SQL.items())[:migrations])}
        made = build.build_application(reading.application(app), version, sql)
        return workload.build_spec(made, ENVIRONMENT, here, flags)

    async def request(self, engine: service.Engine, version: str, migrations: int) -> None:
        made = self.spec(version, migrations)
        asked = messages.Request(version, made.spec, made.template, by="ann", beside=made.beside)
        stream = stream_name("deployment", version)
        await engine.submit(stream, asked, command_id(f"request {version}"))


async def ended(
    engine: service.Engine, version: str, settle: Any, wall: HandWoundClock | None = None
) -> dict[str, Any]:
    """The deployment once it is over, in real time unless a clock is wound: a database is asked."""
    async with asyncio.timeout(200):
        while True:
            found: dict[str, Any] = await settle(engine, f"deployment/{version}")
            if found["status"] in {"DONE", "FAILED", "TERMINATED"}:
                return found
            await asyncio.sleep(0.05)
            if wall is not None:
                wall.advance(dt.timedelta(seconds=1))
