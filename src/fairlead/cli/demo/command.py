"""`fairlead demo` itself: a place for the story, the story, and what is said after it."""

import asyncio
import contextlib
import shlex
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from fairlead import settings as settings_
from fairlead.areas.rollouts import host
from fairlead.cli.demo import errors, screen, setup, story, summary
from fairlead.cli.demo.load import Load
from fairlead.clients.postgres.server.running import PostgresServer
from fairlead.console import logs, options

_TERMINATED = 128 + signal.SIGTERM
_LATE_CUSTOMERS = 20.0
_SMALL = {"listen_addresses": "", "shared_buffers": "32MB", "max_connections": "40"}


@dataclass(frozen=True, slots=True)
class _Options:
    """What the command line asks for."""

    places: setup.Places
    pause: float
    ends: bool


@click.command()
@click.option("--exit", "ends", is_flag=True, help="Exit after the demo; do not keep the page up.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    default=8600,
    show_default=True,
    help="The page's port; another one if it is in use.",
)
@click.option(
    "--shop-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    default=8080,
    show_default=True,
    help="The shop's port, on Envoy; another one if it is in use.",
)
@click.option(
    "--pause",
    type=click.FloatRange(1, 600),
    metavar="SECONDS",
    default=8.0,
    show_default=True,
    help="How long each step lasts.",
)
def demo(ends: bool, port: int, shop_port: int, pause: float) -> None:  # noqa: FBT001 - click hands options over by name
    """See a good release go live and a bad one roll back.

    A small shop runs on this machine behind Envoy, under load, with its goods in a PostgreSQL.
    Version 2 brings a migration, which is evaluated on a scratch copy and then run; it gets 10 %,
    50 %, then all traffic while its checks pass. Version 3 returns errors and is rolled back
    automatically. The demo takes about a minute and leaves nothing behind.
    """
    if options.settings().log.log_level != "debug":
        # The story is told by the screen; what goes wrong is still logged.
        logs.configure(settings_.LogSettings(log_level="error"))
    with tempfile.TemporaryDirectory(prefix="fairlead-demo-") as folder, _cleaned(Path(folder)):
        places = setup.Places(Path(folder), port, shop_port)
        try:
            asyncio.run(_show(_Options(places, pause, ends)))
        except asyncio.CancelledError:
            raise click.exceptions.Exit(_TERMINATED) from None


@contextlib.contextmanager
def _cleaned(folder: Path) -> Iterator[None]:
    """Whatever way the block is left, no process of this folder stays."""
    try:
        yield
    finally:
        # A second Ctrl-C must not leave half of them.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            asyncio.run(host.clean_up(folder))
        finally:
            signal.signal(signal.SIGINT, before)


async def _show(request: _Options) -> None:
    task = asyncio.current_task()
    assert task is not None
    # A polite end must clean up as Ctrl-C does, and so must a terminal that is closed.
    for each in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(each, task.cancel)
    shown = screen.Screen()
    shown.say("starting a PostgreSQL for the shop")
    # Before anything else runs here: started by the main thread, it ends with this process.
    with PostgresServer(settings=_SMALL) as database:
        await _tell(request, shown, database.socket_url)


async def _tell(request: _Options, shown: screen.Screen, database: str) -> None:
    async with setup.set_up(request.places, database, shown.say) as set_up:
        shown.say(f"shop: {set_up.shop_url} (Envoy)   page: {set_up.page}")
        with shown.live():
            told = await story.tell(set_up, shown, request.pause)
        _sum_up(told)
        _say_next(request, set_up)
        if not request.ends:
            await _until_stopped(shown, set_up)


def _sum_up(told: story.StoryResult) -> None:
    found = list(summary.findings(told))
    click.echo()
    for each in found:
        mark = click.style("failed", fg="red") if each.against else click.style("ok", fg="green")
        click.echo(f"  {mark}  {each.claim}{': ' if each.against else ''}{each.against}")
    click.echo()
    for line in summary.why(told):
        click.echo(line)
    if wrong := [each for each in found if each.against]:
        raise errors.StoryFailed(wrong[0].against)


def _say_next(request: _Options, set_up: setup.DemoSetup) -> None:
    click.echo("\nWhat to type next:")
    if request.ends:
        click.echo("  fairlead demo             the demo again, with its page kept up")
    else:
        where = f"fairlead --state-dir {shlex.quote(str(request.places.folder))}"
        click.echo(f"  curl -i {set_up.shop_url}")
        click.echo(f"  {where} get deployment {story.PLACE}/v2")
    click.echo("  fairlead up               a control plane, in one terminal")
    click.echo("  fairlead deploy FILE      your own program, in another")
    click.echo("\ndocs/tutorial/first-rollout.md has a program and a file to start from.")


async def _until_stopped(shown: screen.Screen, set_up: setup.DemoSetup) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    # After the story, Ctrl-C is the expected end and no failure.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(each, stop.set)
    shown.say(f"\nthe page is at {set_up.page}; press Ctrl-C to stop")
    # Customers go on coming, so that the page has something to show.
    async with Load(set_up.shop_url, per_second=_LATE_CUSTOMERS).running():
        await stop.wait()
    shown.say("\nended")
