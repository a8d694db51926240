"""This machine and an engine: handlers for the effects of deployments and migrations."""

import contextlib
from collections.abc import AsyncIterator

from fairlead import errors
from fairlead import settings as settings_
from fairlead.area import parts
from fairlead.areas.deployments import migration_handlers, requests
from fairlead.areas.deployments.local import handlers
from fairlead.areas.deployments.local.databases import Databases
from fairlead.areas.deployments.settings import DeploymentSettings
from fairlead.areas.deployments.specs.workload import Machine
from fairlead.areas.rollouts.local import wiring as rollouts
from fairlead.areas.rollouts.local.plan_steps import PlanFiles
from fairlead.engine import service
from fairlead.web.services import Services


def machine(chosen: settings_.Settings) -> Machine:
    url = chosen.of(DeploymentSettings).deployments_postgres_url
    folder = rollouts.folder(chosen) / "credentials"
    return Machine(rollouts.queue(chosen), folder, postgres=bool(url))


def platform(chosen: settings_.Settings) -> parts.Platform:
    """On the queue of this machine's rollouts, which plans start there."""
    here = chosen.of(DeploymentSettings)
    folder, queue = rollouts.folder(chosen), rollouts.queue(chosen)
    url = here.deployments_postgres_url
    databases = Databases(url, folder, here.aws_pg_dump)
    running: list[service.Engine] = []

    def engine() -> service.Engine:
        if not running:
            raise errors.Unavailable("the engine is not up yet", hint="it is tried again")
        return running[-1]

    @contextlib.asynccontextmanager
    async def background(made: service.Engine) -> AsyncIterator[None]:
        running.append(made)
        try:
            yield
        finally:
            running.remove(made)

    performed = {
        **handlers.handlers(PlanFiles(folder), databases, engine),
        **migration_handlers.handlers(databases),
    }
    services = Services().provided(requests.MACHINE, machine(chosen))
    return parts.Platform({queue: performed}, background, services)
