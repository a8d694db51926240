"""A resource driven by hand through real handlers against a resource manager over HTTP."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlead.areas.resources import handlers
from fairlead.areas.resources.domain.model import Model
from fairlead.areas.resources.domain.reconcile import messages
from fairlead.areas.resources.domain.reconcile.draft import stream
from fairlead.areas.resources.domain.reconcile.messages import Declared
from fairlead.areas.resources.domain.reconcile.state import Phase
from fairlead.clients.arm.client import Arm
from fairlead.clients.arm.identity import FileToken
from fairlead.engine import outbox
from tests.simulated_cloud import SimulatedCloud
from tests.unit.areas.resources.domain.reconcile.samples import Story
from tests.unit.areas.resources.domain.scale_set import SEAL, SETS

ID = "/subscriptions/s/resourceGroups/g/providers/Acme.Toys/sets/a"
SPEC = {
    "location": "westus",
    "sku": {"name": "Standard_D2_v3", "capacity": 3},
    "tags": {"tag1": "value"},
    "properties": {"mode": "Flexible"},
}
RESTING = (Phase.READY, Phase.GONE, Phase.FAILED)


def declared(**more: Any) -> Declared:
    return Declared("Acme.Toys/sets", "2026-01-01", ID, {**SPEC, **more})


def ports(
    cloud: SimulatedCloud, folder: Path, model: Model = SETS, **secrets: str
) -> handlers.ResourcePorts:
    cloud.tokens["a-token"] = 1_000_000
    (folder / "token").write_text("a-token\n")
    arm = Arm(cloud.url, FileToken(folder / "token"), "FAIRLEAD_RESOURCES_API_URL")
    return handlers.ResourcePorts(arm, lambda _, __: model, SEAL, secrets.__getitem__, Once())


@dataclass
class Once:
    """Who says it first, as a store without crashes knows it."""

    said: set[tuple[str, int]] = field(default_factory=set)

    async def __call__(self, name: str, order: int) -> bool:
        first = (name, order) not in self.said
        self.said.add((name, order))
        return first


@dataclass
class Driven:
    """One resource and its world."""

    cloud: SimulatedCloud
    performers: Mapping[type, outbox.Handler]
    story: Story = field(default_factory=Story)
    pending: list[Any] = field(default_factory=list)
    id: str = ID

    async def tell(self, *commands: Any) -> "Driven":
        for each in commands:
            self.story.tell(each)
            gone = {one.effect for one in self.story.last.withdraws}
            self.pending = [one for one in self.pending if type(one) not in gone]
            self.pending += self.story.last.effects
        return await self.rest()

    async def rest(self, most: int = 300) -> "Driven":
        """Until it rests; time passes as fast as it is waited for."""
        for _ in range(most):
            if self.pending:
                await self.perform()
            elif self.story.state.phase in RESTING:
                return self
            else:
                self.story.woken()
                self.pending += self.story.last.effects
        raise AssertionError(self.story.names)

    async def perform(self) -> None:
        effect = self.pending.pop(0)
        context = outbox.EffectContext(stream(self.id), "1-2-3", 1)
        answer = await self.performers[type(effect)].perform(effect, context)
        self.story.tell(answer)
        self.pending += self.story.last.effects

    async def woken(self) -> "Driven":
        """It is looked at again, as its turn has come."""
        self.story.woken()
        self.pending += self.story.last.effects
        return await self.rest()

    @property
    def phase(self) -> Phase:
        return self.story.state.phase

    @property
    def wrote(self) -> list[str]:
        return [method for method, _, _ in self.cloud.writes]

    @property
    def shown(self) -> dict[str, Any]:
        found = self.cloud.shown(ID)
        assert found is not None
        return found


@contextlib.asynccontextmanager
async def driven(
    cloud: SimulatedCloud, folder: Path, model: Model = SETS, **secrets: str
) -> AsyncIterator[Driven]:
    async with cloud.serving():
        world = ports(cloud, folder, model, **secrets)
        assert isinstance(world.api, Arm)
        async with world.api.open():
            yield Driven(cloud, handlers.handlers(world))


APPLY = messages.Apply(declared())
