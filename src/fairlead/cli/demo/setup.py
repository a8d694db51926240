"""Where the story plays: an engine with the local platform and a page, in a folder of its own."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from fairlead import bootstrap, errors
from fairlead import settings as settings_
from fairlead.domain.rollouts.numbers import Numbers
from fairlead.engine import service
from fairlead.intents import intake, workloads
from fairlead.web import app, context, server

_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Places:
    """Where the story is kept, and which ports it would like."""

    folder: Path
    page: int
    shop: int


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything the story acts on."""

    engine: service.Engine
    deployer: workloads.Deployer
    numbers: Numbers
    page: str
    shop: int

    @property
    def shop_url(self) -> str:
        return f"http://{_HOST}:{self.shop}/"


@contextlib.asynccontextmanager
async def set_up(places: Places, say: Callable[[str], None]) -> AsyncIterator[Stage]:
    """The stage, until the block is left; what it started is for the caller to end."""
    # The demo's own settings: whatever store the user has is left alone.
    chosen = settings_.Settings(store=settings_.StoreSettings(state_dir=places.folder))
    players = bootstrap.joined(chosen, bootstrap.cast())
    ground, numbers = players.ground, players.numbers
    if ground is None or numbers is None:
        raise errors.Unavailable(bootstrap.NO_ENVOY, hint="run it on Linux, x86-64 or arm64")
    kept = bootstrap.store(chosen.store, players)
    await asyncio.to_thread(kept.migrate)
    made = bootstrap.engine(chosen, players, kept)
    listening = _claim(places.page, "the page", say)
    bind = server.bound(server.Bind(_HOST, places.page), listening)
    async with bootstrap.beside(players, made), made.running() as engine:
        views = [view.name for view in players.views]
        door = intake.Intake(engine)
        around = context.Context(engine, kept, bind, door, views, numbers=numbers, ground=ground)
        async with server.serving(app.create(around), listening, around.closing):
            deployer = workloads.Deployer(ground, door)
            yield Stage(engine, deployer, numbers, bind.url, _free(places.shop, say))


def _claim(port: int, what: str, say: Callable[[str], None]) -> socket.socket:
    """The port that was asked for, or any other where somebody has it."""
    try:
        return server.claim(server.Bind(_HOST, port))
    except errors.Conflict as error:
        found = server.claim(server.Bind(_HOST, 0))
        say(f"{error.message}; {what} takes {found.getsockname()[1]} instead")
        return found


def _free(port: int, say: Callable[[str], None]) -> int:
    """A port for the shop; it is Envoy that listens there, so it is only tried here."""
    with _claim(port, "the shop", say) as tried:
        free: int = tried.getsockname()[1]
        return free
