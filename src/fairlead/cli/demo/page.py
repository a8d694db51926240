"""The web page beside the story, on the story's own engine."""

import contextlib
import importlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from fairlead import errors
from fairlead.engine import service
from fairlead.engine.store import protocol

_HOST = "127.0.0.1"


@contextlib.asynccontextmanager
async def shown(
    engine: service.Engine, kept: protocol.Store, port: int, say: Callable[[str], None]
) -> AsyncIterator[str | None]:
    """The page's address; None where this installation has no page."""
    try:
        app = importlib.import_module("fairlead.web.app")
        context = importlib.import_module("fairlead.web.context")
        server = importlib.import_module("fairlead.web.server")
        intake = importlib.import_module("fairlead.intents.intake")
    except ModuleNotFoundError:
        say("no page: this installation has no web app")
        yield None
        return
    listening = _claim(server, port, say)
    bind = server.bound(server.Bind(_HOST, port), listening)
    surroundings = context.Context(engine, kept, bind, intake.Intake(engine))
    async with server.serving(app.create(surroundings), listening, surroundings.closing):
        say(f"page: {bind.url}")
        yield bind.url


def _claim(server: Any, port: int, say: Callable[[str], None]) -> Any:
    """The port that was asked for, or any other where somebody has it."""
    try:
        return server.claim(server.Bind(_HOST, port))
    except errors.Conflict as error:
        say(f"{error.message}; taking another")
        return server.claim(server.Bind(_HOST, 0))
