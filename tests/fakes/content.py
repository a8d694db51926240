"""A world for releases of content that does at once what it is asked, or waits where told to."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta

from fairlead import bootstrap, errors
from fairlead.areas.content import requests
from fairlead.areas.content.area import CONTENT
from fairlead.areas.content.domain.population import Population
from fairlead.areas.content.domain.release.place import Place, Versions
from fairlead.areas.content.domain.release.view import Summary
from fairlead.areas.content.release import handlers
from fairlead.areas.content.release.host import QUEUE
from fairlead.areas.content.release.ports import Observed, Progress
from fairlead.checks.registry import Registry
from fairlead.engine import service
from fairlead.engine.testing import START
from fairlead.web.services import Services

WORK = "content@test"


@dataclass
class World:
    """Both ports of a release."""

    broken: set[str] = field(default_factory=set)
    """Versions that cannot be served."""

    away: bool = False
    """Whoever says the share does not answer."""

    starting: bool = False
    """New instances are not ready yet."""

    share: Population = Population("")
    versions: Versions | None = None

    async def set(self, _name: str, _place: Place, chosen: Population) -> None:
        if self.away:
            raise errors.Unavailable("Unleash does not answer", hint="wait")
        self.share = chosen

    async def deploy(self, _name: str, _place: Place, versions: Versions) -> Observed:
        if {versions.stable, versions.canary} & self.broken:
            return Observed(Progress.FAILED, f"version not found: {versions.canary}")
        if self.starting:
            return Observed(Progress.WAITING, "starting")
        self.versions = versions
        return Observed(Progress.READY)

    def cast(self) -> bootstrap.Installation:
        made = handlers.ReleasePorts(self, self, Registry(), lambda: START)
        return replace(
            bootstrap.installation((CONTENT,)),
            queues={WORK: handlers.handlers(made)},
            services=Services({QUEUE: WORK}),
        )


async def until(engine: service.Engine, holds: Callable[[Summary], bool]) -> Summary:
    with engine.watch() as signal:
        async with asyncio.timeout(60):
            while True:
                for one in await engine.read(lambda session: requests.listed(session, 10)):
                    if holds(one):
                        return one
                await engine.wait(signal, timedelta(seconds=0.2))
