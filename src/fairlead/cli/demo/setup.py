"""Where the story plays: an engine with the local platform and a page, in a folder of its own."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from fairlead import bootstrap, errors
from fairlead import settings as settings_
from fairlead.access import intake
from fairlead.areas.deployments import requests
from fairlead.areas.deployments.settings import DeploymentSettings
from fairlead.areas.rollouts import host
from fairlead.areas.rollouts.traffic_stats import TRAFFIC_STATS, Numbers
from fairlead.cli import serve_web
from fairlead.clients.postgres.server import wheel
from fairlead.engine import service
from fairlead.web import app, context, server
from fairlead.web.layout import Layout

_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Places:
    """Where the story is kept, and which ports it would like."""

    folder: Path
    page: int
    shop: int


@dataclass(frozen=True, slots=True)
class DemoSetup:
    """Everything the story acts on."""

    engine: service.Engine
    deployer: requests.Deployer
    numbers: Numbers
    page: str
    shop: int

    @property
    def shop_url(self) -> str:
        return f"http://{_HOST}:{self.shop}/"


@contextlib.asynccontextmanager
async def set_up(
    places: Places, database: str, say: Callable[[str], None]
) -> AsyncIterator[DemoSetup]:
    """The setup, until the block is left; what it started is for the caller to end."""
    # The demo's own settings: whatever store the user has is left alone.
    pg_dump = str(wheel.installed_wheel().programs / "pg_dump")
    chosen = settings_.Settings(
        store=settings_.StoreSettings(state_dir=places.folder),
        areas=(DeploymentSettings(deployments_postgres_url=database, aws_pg_dump=pg_dump),),
    )
    given = bootstrap.with_platforms(chosen, bootstrap.installation())
    machine = given.services.find(requests.MACHINE)
    numbers = given.services.find(TRAFFIC_STATS)
    if machine is None or numbers is None:
        raise errors.Unavailable(host.NO_ENVOY, hint="run it on Linux, x86-64 or arm64")
    kept = given.store(chosen.store)
    await asyncio.to_thread(kept.migrate)
    made = given.engine(chosen, kept)
    listening = _claim(places.page, "the page", say)
    bind = server.bound(server.Bind(_HOST, places.page), listening)
    async with given.in_background(made), made.running() as engine:
        door = intake.Intake(engine)
        mounts = serve_web.mounted(given)
        around = context.WebContext(
            *(engine, kept, bind, door, given.projection_names),
            services=given.services,
            layout=Layout(mounts),
        )
        async with server.serving(app.create(around, mounts), listening, around.closing):
            deployer = requests.Deployer(requests.Targets(machine=machine), door, _nothing_stored)
            yield DemoSetup(engine, deployer, numbers, bind.url, _free(places.shop, say))


async def _nothing_stored(name: str, _: bool) -> NoReturn:  # noqa: FBT001 - the port's shape
    """Nobody but the demo deploys here, and it brings its environment along."""
    raise errors.NotFound(f"no such environment: {name}", hint="the demo has none stored")


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
