"""A control plane with the local platform in this process, for whole releases of a real shop."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from fairlead import bootstrap, settings
from fairlead.access import intake
from fairlead.areas.rollouts import requests, workloads
from fairlead.areas.rollouts.domain import coordination, messages
from fairlead.cli.demo.load import Load
from fairlead.clients.processes import clean_up
from fairlead.engine import messages as engine_messages
from fairlead.engine import service, visibility
from tests.contract.local import shop_platform
from tests.contract.local.shop_versions import free_port

STREAM = coordination.rollout_stream("shop")
PATIENCE = 240.0
"""Ends a test that hangs; nothing is said about how long anything takes."""


@dataclasses.dataclass(frozen=True)
class Plane:
    """One that runs, and the shop's port."""

    engine: service.Engine
    deployer: workloads.Deployer
    folder: Path
    port: int
    metrics_port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def load(self, **more: Any) -> Load:
        return Load(self.url, **more)

    async def deploy(self, version: str, arguments: Sequence[str] = (), **more: Any) -> None:
        words = shop_platform.document(version, self.port, arguments, **more)
        await self.deployer.deploy(intake.LOCAL, words | {"metricsPort": self.metrics_port})

    async def live(self, version: str, arguments: Sequence[str] = (), **more: Any) -> None:
        """The first version, until it carries everything."""
        await self.deploy(version, arguments, **more)
        await self.until(lambda rollout, state: state == "Idle")

    async def ended(self) -> tuple[str, str]:
        """How the run that is under way ended, and why."""
        rollout = await self.until(
            lambda rollout, state: state == "Idle" and bool(rollout["outcome"])
        )
        return rollout["outcome"]["ending"], rollout["outcome"]["why"]

    async def at(self, weight: int) -> None:
        await self.until(
            lambda rollout, state: (
                state == "Analysing" and rollout["route"]["split"]["canary"] == weight
            )
        )

    async def until_told(self, check: str, words: str) -> None:
        """Until a check's last answer has these words in it."""
        async with asyncio.timeout(PATIENCE):
            while True:
                view = await self.engine.read(lambda s: visibility.stream(s, STREAM))
                if words in view.data.get("round", {}).get("reasons", {}).get(check, ""):
                    return
                await asyncio.sleep(0.1)

    async def until(
        self, holds: Callable[[dict[str, Any], str], bool], seconds: float = PATIENCE
    ) -> dict[str, Any]:
        """The rollout's book once something holds of it and its state."""
        with self.engine.watch() as signal:
            async with asyncio.timeout(seconds):
                while True:
                    view = await self.engine.read(lambda s: visibility.stream(s, STREAM))
                    rollout: dict[str, Any] = view.data.get("rollout", {})
                    if holds(rollout, view.state):
                        return rollout
                    await signal.wait()
                    signal.clear()

    async def say(self, command: messages.Command, name: str) -> None:
        await self.engine.submit(STREAM, command, engine_messages.command_id(name))

    async def sentence(self) -> str:
        row = await self.engine.read(lambda s: requests.listed(s, 1))
        return row[0][0].sentence

    async def weights(self) -> list[int]:
        """The weights that were reached, of all runs."""
        events = await self.engine.read(lambda s: visibility.events(s, STREAM, 0, 5000))
        return [each.data["weight"] for each in events if each.type == "StepReached"]


@contextlib.asynccontextmanager
async def plane(
    folder: Path, measures: settings.MeasureSettings | None = None, database: str = ""
) -> AsyncIterator[Plane]:
    """A control plane with a state folder, and a store of its own unless one is shared."""
    chosen = settings.Settings(
        store=settings.StoreSettings(state_dir=folder, database_url=database),
        measures=measures or settings.MeasureSettings(),
    )
    installation = bootstrap.with_platforms(chosen, bootstrap.installation())
    target = installation.services.find(workloads.DEPLOY_TARGET)
    assert target is not None
    kept = installation.store(chosen.store)
    kept.migrate()
    made = installation.engine(chosen, kept)
    try:
        async with installation.in_background(made), made.running() as engine:
            deployer = workloads.Deployer(target, intake.Intake(engine))
            yield Plane(engine, deployer, folder, free_port(), free_port())
    finally:
        await clean_up(folder / "local" / "processes", drain_seconds=2.0)
