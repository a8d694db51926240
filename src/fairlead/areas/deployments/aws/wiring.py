"""AWS and an engine: handlers for the effects of deployments and migrations."""

import contextlib
from collections.abc import AsyncIterator

from fairlead import settings as settings_
from fairlead.area import parts
from fairlead.areas.deployments import host, migration_handlers, requests
from fairlead.areas.deployments.aws import handlers, nudges
from fairlead.areas.deployments.aws.databases import Databases
from fairlead.areas.deployments.settings import DeploymentSettings
from fairlead.clients.aws.events import EventQueue
from fairlead.clients.aws.session import Account, Aws
from fairlead.engine import outbox, service
from fairlead.web.services import Services


def platform(chosen: settings_.Settings) -> parts.Platform:
    here = chosen.of(DeploymentSettings)
    queue = host.queue(here)
    services = Services().provided(requests.AWS_TARGET, requests.AwsTarget(queue, here.aws_bucket))
    if not here.aws_events_queue:
        return parts.Platform({queue: performed(here)}, services=services)

    @contextlib.asynccontextmanager
    async def background(engine: service.Engine) -> AsyncIterator[None]:
        client = Aws(here.aws_endpoint, here.aws_seconds).client("sqs", Account(""))
        async with nudges.listening(EventQueue(client, here.aws_events_queue), engine):
            yield

    return parts.Platform({queue: performed(here)}, background, services)


def performed(here: DeploymentSettings) -> outbox.Handlers:
    aws = Aws(here.aws_endpoint, here.aws_seconds)
    databases = Databases(aws, here.aws_scratch_url, here.aws_pg_dump)
    return {**handlers.handlers(aws, databases), **migration_handlers.handlers(databases)}
