"""The web page beside the story, on the story's own engine."""

import contextlib
import socket
from collections.abc import AsyncIterator, Callable

from fairlead import errors
from fairlead.engine import service
from fairlead.engine.store import protocol
from fairlead.intents import intake
from fairlead.web import app, context, server

_HOST = "127.0.0.1"


@contextlib.asynccontextmanager
async def shown(
    engine: service.Engine, kept: protocol.Store, port: int, say: Callable[[str], None]
) -> AsyncIterator[str]:
    """The page's address, as long as the block is not left."""
    listening = _claim(port, say)
    bind = server.bound(server.Bind(_HOST, port), listening)
    surroundings = context.Context(engine, kept, bind, intake.Intake(engine))
    async with server.serving(app.create(surroundings), listening, surroundings.closing):
        say(f"page: {bind.url}")
        yield bind.url


def _claim(port: int, say: Callable[[str], None]) -> socket.socket:
    """The port that was asked for, or any other where somebody has it."""
    try:
        return server.claim(server.Bind(_HOST, port))
    except errors.Conflict as error:
        say(f"{error.message}; taking another")
        return server.claim(server.Bind(_HOST, 0))
