"""The one way in for commands: authorise, name, read, submit.

Every door (the API, later webhooks and objects of a cluster) brings a request here. A
request that carries its own id, or one derived from what its sender calls it, is taken once
however often it is delivered; without either, each delivery counts.
"""

import asyncio
import hashlib
import uuid
from dataclasses import dataclass, replace
from typing import Any

import structlog
from opentelemetry import trace

from fairlead import errors
from fairlead.access import scopes, tokens
from fairlead.engine import machine, messages, service, visibility

PATIENCE_SECONDS = 30.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks."""

    name: str
    role: tokens.Role
    token: str | None = None
    """The public id of the token shown, if one was."""

    scope: str = scopes.EVERYWHERE
    """The project or namespace that the role is good for."""


LOCAL = Caller("local", tokens.Role.ADMIN)
"""Somebody on this machine, while no token has been set up."""


@dataclass(frozen=True, slots=True)
class Request:
    """A command as it comes from outside: words and plain data."""

    stream: messages.StreamName
    type: str
    data: Any
    id: messages.CommandId | None = None
    queue: str = ""
    """Who performs for a stream that this creates."""


class Intake:
    """Takes requests in on behalf of callers."""

    def __init__(self, engine: service.Engine, tracer: trace.Tracer | None = None) -> None:
        self._engine = engine
        self._tracer = tracer or trace.NoOpTracer()

    async def submit(self, caller: Caller, request: Request) -> messages.Receipt:
        """Hand a command to its stream; the recorded answer if it was taken before."""
        authorise(caller, tokens.Role.OPERATOR)
        scopes.check(caller.scope, request.stream)
        command_id = request.id or fresh_id()
        registered = self._engine.registry.of(request.stream)
        command = registered.codec.commands.parse(request.type, request.data)
        attributes = {
            "fairlead.stream": request.stream,
            "fairlead.command": request.type,
            "fairlead.command_id": command_id,
        }
        with self._tracer.start_as_current_span("submit", attributes=attributes) as span:
            receipt = await self._settled(request, command, command_id)
            span.set_attribute("fairlead.events", receipt.events)
        _log.info(
            "command_taken",
            stream=request.stream,
            command=command_id,
            type=request.type,
            caller=caller.name,
            events=receipt.events,
            duplicate=receipt.duplicate,
        )
        return receipt

    async def ask(self, caller: Caller, request: Request) -> messages.Receipt:
        """What a person asks in a machine's own words: one of its verbs, in the caller's name."""
        authorise(caller, tokens.Role.OPERATOR)
        vocabulary = self._engine.registry.of(request.stream).machine.vocabulary
        commands = {each.__name__: each for each in machine.members(vocabulary.commands)}
        verbs, asked = machine.members(vocabulary.verbs), commands.get(request.type)
        if asked is not None and asked not in verbs:
            known = ", ".join(each.__name__ for each in verbs) or "none"
            raise errors.Forbidden(
                f"not a command of people: {request.type}", hint=f"its verbs: {known}"
            )
        if "by" in getattr(asked, "__match_args__", ()) and isinstance(request.data, dict):
            request = replace(request, data={**request.data, "by": caller.name})
        return await self.submit(caller, request)

    async def find(self, stream: messages.StreamName) -> visibility.StreamView | None:
        """The stream as it stands, None where there is no such stream yet."""
        return await self._engine.read(lambda session: visibility.find(session, stream))

    async def waits(self, stream: messages.StreamName) -> bool:
        """Whether the stream has asked for something that is not done."""
        found = await self._engine.read(lambda s: visibility.effects(s, name=stream, limit=1))
        return bool(found)

    async def move(self, stream: messages.StreamName, queue: str) -> None:
        """Give a stream to another queue."""
        await self._engine.move([stream], queue)

    async def _settled(
        self, request: Request, command: object, command_id: messages.CommandId
    ) -> messages.Receipt:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await self._engine.submit(
                    request.stream, command, command_id, queue=request.queue
                )
        except TimeoutError as error:
            raise errors.Unavailable(
                f"no answer within {PATIENCE_SECONDS:g} s: {command_id}",
                hint="send it again under the same id: it is taken once",
            ) from error


def authorise(caller: Caller, needed: tokens.Role) -> None:
    if caller.role < needed:
        raise errors.Forbidden(
            f"this takes the role {needed.word}, the caller has: {caller.role.word}",
            hint=f"use a token of role {needed.word} (fairlead token create --role {needed.word})",
        )


def fresh_id() -> messages.CommandId:
    """For a request that nobody has named: it is taken as often as it comes."""
    return messages.CommandId(f"request {uuid.uuid4()}")


def derived_id(door: str, *parts: str) -> messages.CommandId:
    """The same words give the same id, so that a repeated delivery is taken once."""
    # Lengths part the words: ("a", "bc") and ("ab", "c") are two deliveries.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return messages.command_id(f"{door} {digest}")
