"""Changes of stacks that EventBridge tells: whoever waits for one looks at once.

An event only makes us look, and what we see then decides. So one that comes late, twice, from a
stranger or not at all changes nothing but when that is; polling goes on beside it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import structlog

from fairlead import errors
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.deployment.state import Deployment, Status
from fairlead.areas.deployments.domain.messages import StepStatus
from fairlead.areas.deployments.domain.spec import deployment_stream, stack_stream
from fairlead.areas.deployments.domain.stack.state import Stack
from fairlead.clients.aws.events import EventQueue, Received
from fairlead.engine import service, visibility
from fairlead.engine.messages import StreamName, command_id
from fairlead.engine.store import protocol

_PAUSE = 30.0
_log = structlog.get_logger(__name__)
Look = messages.Observe | messages.ObserveAgain


class _Detail(msgspec.Struct):
    stack_id: str = msgspec.field(name="stack-id", default="")


class _Event(msgspec.Struct):
    source: str = ""
    detail: _Detail = msgspec.field(default_factory=_Detail)


@contextlib.asynccontextmanager
async def listening(queue: EventQueue, engine: service.Engine) -> AsyncIterator[None]:
    task = asyncio.create_task(_listen(queue, engine))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def looks(session: protocol.Session, body: str) -> list[tuple[StreamName, Look]]:
    """Who is asked to look again; nobody where the event is about nothing that runs here."""
    try:
        event = msgspec.json.decode(body, type=_Event)
        # arn:aws:cloudformation:REGION:ACCOUNT:stack/ENVIRONMENT-APPLICATION/ID
        environment, _, app = event.detail.stack_id.split("/")[1].rpartition("-")
        stream = stack_stream(f"{environment}/{app}")
    except (msgspec.MsgspecError, IndexError, errors.Rejected):
        return []
    if event.source != "aws.cloudformation":
        return []
    stack = _state(session, stream, Stack)
    if stack is None or not stack.current:
        return []
    at = deployment_stream(stack.current)
    running = _state(session, at, Deployment)
    if running is None:
        return []
    if running.status is Status.WAITING:
        return [(at, messages.Observe())]
    # One that was not yet found to be under way is still being begun.
    active = [run for run in running.those(StepStatus.ACTIVE) if run.polls and run.child is None]
    return [(at, messages.ObserveAgain(run.step.name, run.attempt)) for run in active]


async def _listen(queue: EventQueue, engine: service.Engine) -> None:
    while True:
        try:
            for received in await asyncio.to_thread(queue.receive):
                await _take(received, engine)
                await asyncio.to_thread(queue.delete, received)
        except errors.FairleadError as error:
            # It comes again, and polling goes on meanwhile.
            _log.warning("stack_events_unavailable", error=error.message)
            await asyncio.sleep(_PAUSE)


async def _take(received: Received, engine: service.Engine) -> None:
    found = await engine.read(lambda session: looks(session, received.body))
    for n, (at, look) in enumerate(found):
        await engine.submit(at, look, command_id(f"event {received.id} {n}"))


def _state(session: protocol.Session, stream: StreamName, shape: type[Any]) -> Any:
    view = visibility.find(session, stream)
    return None if view is None else msgspec.convert(view.data, shape)
