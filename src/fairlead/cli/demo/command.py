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

from fairlead import bootstrap
from fairlead import settings as settings_
from fairlead._demo.load import Load
from fairlead.cli import options
from fairlead.cli.demo import screen, stage, story, summary, untold

_TERMINATED = 128 + signal.SIGTERM
_LATE_CUSTOMERS = 20.0


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the command line asks for."""

    places: stage.Places
    pause: float
    ends: bool


@click.command()
@click.option("--exit", "ends", is_flag=True, help="End after the story; do not keep the page up.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    default=8600,
    show_default=True,
    help="Where the page answers; another is taken where this one is in use.",
)
@click.option(
    "--shop-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    default=8080,
    show_default=True,
    help="Where the shop answers, through Envoy; another is taken where this one is in use.",
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
    """See a good release go live and a bad one go home.

    A small shop runs on this machine behind Envoy, with customers at its door. Version 2 takes
    10, 50, then all of the requests while its numbers hold; version 3 answers with errors, and is
    taken back by itself. Takes about a minute and leaves nothing behind.
    """
    if options.settings().log.log_level != "debug":
        # The story is told by the screen; what goes wrong is still logged.
        bootstrap.logs(settings_.LogSettings(log_level="error"))
    with tempfile.TemporaryDirectory(prefix="fairlead-demo-") as folder, _cleaned(Path(folder)):
        places = stage.Places(Path(folder), port, shop_port)
        try:
            asyncio.run(_show(_Wish(places, pause, ends)))
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
            asyncio.run(bootstrap.clean_up(folder))
        finally:
            signal.signal(signal.SIGINT, before)


async def _show(wish: _Wish) -> None:
    task = asyncio.current_task()
    assert task is not None
    # A polite end must clean up as Ctrl-C does, and so must a terminal that is closed.
    for each in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(each, task.cancel)
    shown = screen.Screen()
    async with stage.set_up(wish.places, shown.say) as set_up:
        shown.say(f"shop: {set_up.shop_url} (Envoy)   page: {set_up.page}")
        with shown.live():
            told = await story.tell(set_up, shown, wish.pause)
        _sum_up(told)
        _say_next(wish, set_up)
        if not wish.ends:
            await _until_stopped(shown, set_up)


def _sum_up(told: story.Told) -> None:
    found = list(summary.findings(told))
    click.echo()
    for each in found:
        mark = click.style("failed", fg="red") if each.against else click.style("ok", fg="green")
        click.echo(f"  {mark}  {each.claim}{': ' if each.against else ''}{each.against}")
    click.echo()
    for line in summary.why(told):
        click.echo(line)
    if wrong := [each for each in found if each.against]:
        raise untold.Untold(wrong[0].against)


def _say_next(wish: _Wish, set_up: stage.Stage) -> None:
    click.echo("\nWhat to type next:")
    if wish.ends:
        click.echo("  fairlead demo             the same, with a page that stays")
    else:
        where = f"fairlead --state-dir {shlex.quote(str(wish.places.folder))}"
        click.echo(f"  curl -i {set_up.shop_url}")
        click.echo(f"  {where} get rollout {story.NAME}")
    click.echo("  fairlead up               a control plane that stays, in one terminal")
    click.echo("  fairlead deploy FILE      your own program, in another")
    click.echo("\ndocs/tutorial/first-rollout.md has a program and a file to begin with.")


async def _until_stopped(shown: screen.Screen, set_up: stage.Stage) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    # After the story, Ctrl-C is the expected end and no failure.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(each, stop.set)
    shown.say(f"\nthe page is at {set_up.page}; Ctrl-C ends it")
    # Customers go on coming, so that the page has something to show.
    async with Load(set_up.shop_url, per_second=_LATE_CUSTOMERS).running():
        await stop.wait()
    shown.say("\nended")
