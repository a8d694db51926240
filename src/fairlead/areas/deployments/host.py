"""What this process does for deployments: reads for triggers, and performs here and on AWS."""

import contextlib
from collections.abc import AsyncIterator, Sequence

from fairlead import loading
from fairlead import settings as settings_
from fairlead.area import parts
from fairlead.areas.deployments.settings import DeploymentSettings
from fairlead.areas.deployments.specs.workload import Machine
from fairlead.areas.rollouts import host as rollouts
from fairlead.engine import outbox, service
from fairlead.engine.messages import queue_name
from fairlead.web.services import Services

_HERE = "fairlead.areas.deployments"


def queue(chosen: DeploymentSettings) -> str:
    """Of the deployments to AWS."""
    return queue_name("aws", chosen.aws_queue)


def platform(chosen: settings_.Settings) -> parts.Platform:
    """What triggers need everywhere, this machine, and AWS where a bucket is named."""
    machine = None
    if rollouts.can_run():
        machine = loading.make(f"{_HERE}.local.wiring:machine", Machine, chosen)
    made = [loading.make(f"{_HERE}.triggers.wiring:platform", parts.Platform, chosen, machine)]
    if machine is not None:
        made.append(loading.make(f"{_HERE}.local.wiring:platform", parts.Platform, chosen))
    if chosen.of(DeploymentSettings).aws_bucket:
        # Late: boto3 is heavy, and most installations do without.
        made.append(loading.make(f"{_HERE}.aws.wiring:platform", parts.Platform, chosen))
    services = Services()
    for each in made:
        services |= each.services
    return parts.Platform(outbox.merged(*(each.queues for each in made)), _all(made), services)


def _all(made: Sequence[parts.Platform]) -> parts.Background:
    @contextlib.asynccontextmanager
    async def background(engine: service.Engine) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for each in made:
                if each.background is not None:
                    await stack.enter_async_context(each.background(engine))
            yield

    return background
