"""What this process does for deployments: reads for triggers, and performs on AWS."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator

from fairlead import loading
from fairlead import settings as settings_
from fairlead.area import parts
from fairlead.areas.deployments.settings import DeploymentSettings
from fairlead.engine import service
from fairlead.engine.messages import queue_name

_HERE = "fairlead.areas.deployments"


def queue(chosen: DeploymentSettings) -> str:
    """Of the deployments to AWS."""
    return queue_name("aws", chosen.aws_queue)


def platform(chosen: settings_.Settings) -> parts.Platform:
    """What triggers need everywhere, and AWS where a bucket is named."""
    triggers = loading.make(f"{_HERE}.triggers.wiring:platform", parts.Platform, chosen)
    if not chosen.of(DeploymentSettings).aws_bucket:
        return triggers
    # Late: boto3 is heavy, and most installations do without.
    aws = loading.make(f"{_HERE}.aws.wiring:platform", parts.Platform, chosen)
    return dataclasses.replace(
        triggers,
        queues={**triggers.queues, **aws.queues},
        background=_both(triggers, aws),
        services=triggers.services | aws.services,
    )


def _both(*platforms: parts.Platform) -> parts.Background:
    @contextlib.asynccontextmanager
    async def background(engine: service.Engine) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for each in platforms:
                if each.background is not None:
                    await stack.enter_async_context(each.background(engine))
            yield

    return background
