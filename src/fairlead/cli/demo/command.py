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

from fairlead import bootstrap, errors
from fairlead.cli import options
from fairlead.cli.demo import page, proof, road, scene, screen, story, untold
from fairlead.engine import library, messages, service
from fairlead.engine.store import protocol

_TERMINATED = 128 + signal.SIGTERM


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the command line asks for."""

    folder: Path
    trips: int
    port: int
    ends: bool
    kept: bool


@click.command()
@click.option("--exit", "ends", is_flag=True, help="End after the story; do not keep the page up.")
@click.option(
    "--trips",
    type=click.IntRange(5, 100_000),
    metavar="N",
    default=600,
    show_default=True,
    help="How many trips the depot sends out.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    default=8600,
    show_default=True,
    help="Where the page answers; another is taken where this one is in use.",
)
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep everything in this folder instead of a temporary one.",
)
def demo(ends: bool, trips: int, port: int, keep: Path | None) -> None:  # noqa: FBT001 - click hands options over by name
    """See on this machine that a crash loses nothing.

    A depot sends trips out; a worker drives them, leg by leg. On the way, the demo kills that
    worker (SIGKILL) and starts another. In the end every claim is checked against what the
    store kept and what the outside saw. Takes about 15 seconds and leaves nothing behind.
    """
    options.settings()
    with _folder(keep) as folder:
        wish = _Wish(folder, trips, port, ends, keep is not None)
        try:
            asyncio.run(_show(wish))
        except asyncio.CancelledError:
            raise click.exceptions.Exit(_TERMINATED) from None


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="fairlead-demo-") as folder:
            yield Path(folder)
        return
    try:
        keep.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise errors.Rejected(
            f"cannot use this folder: {keep}: {error.strerror}", hint="name another with --keep"
        ) from error
    yield keep.resolve()


async def _show(wish: _Wish) -> None:
    task = asyncio.current_task()
    assert task is not None
    # A polite end must clean up as Ctrl-C does.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    chosen = scene.settings(wish.folder)
    kept = bootstrap.store(chosen.store, scene.cast())
    await asyncio.to_thread(kept.migrate)
    engine = bootstrap.engine(chosen, scene.cast(), kept, perform=False)
    shown = screen.Screen(wish.trips)
    async with engine.running(), page.shown(engine, kept, wish.port, shown.say) as url:
        plan = scene.Plan(wish.folder, await engine.read(_free_depot), wish.trips)
        await _tell(plan, engine, shown)
        _say_next(wish, plan)
        if not wish.ends:
            await _until_stopped(shown, url)


async def _tell(plan: scene.Plan, engine: service.Engine, shown: screen.Screen) -> None:
    shown.say(
        f"{plan.trips} trips of {scene.LEGS} legs, {scene.AT_ONCE} on the road at once;"
        f" a leg takes about {scene.LEG_SECONDS} s"
    )
    with shown.live():
        told = await story.tell(plan, engine, shown)
    now = await engine.read(lambda session: proof.kept(session, plan))
    seen = await asyncio.to_thread(road.tally, plan.folder, plan.depot)
    found = proof.findings(plan, told, now, seen)
    for each in found:
        mark = click.style("failed", fg="red") if each.against else click.style("ok", fg="green")
        click.echo(f"  {mark}  {each.claim}{': ' if each.against else ''}{each.against}")
    rate = told.record.transitions / told.seconds
    click.echo(
        f"{told.record.transitions:,} transitions in {told.seconds:.1f} s,"
        f" {rate:,.0f} a second at the pace of the road"
    )
    if wrong := [each for each in found if each.against]:
        raise untold.Untold(wrong[0].against)


def _free_depot(session: protocol.Session) -> str:
    """A depot that has not been used: a closed one takes no more orders."""
    number = 1
    with contextlib.suppress(errors.NotFound):
        while True:
            library.stream(session, messages.stream_name("depot", f"demo{number}"))
            number += 1
    return f"demo{number}"


def _say_next(wish: _Wish, plan: scene.Plan) -> None:
    click.echo("\nWhat to type next:")
    if wish.ends and not wish.kept:
        click.echo("  fairlead demo                  the same, with a page to look at in the end")
        click.echo("  fairlead demo --keep DIR       the same, in a folder that stays")
    else:
        where = f"fairlead --state-dir {shlex.quote(str(wish.folder))}"
        click.echo(f"  {where} get {plan.stream}")
        click.echo(f"  {where} events trip/{plan.depot}-1")
    click.echo("  fairlead --help")


async def _until_stopped(shown: screen.Screen, url: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    # After the story, Ctrl-C is the expected end and no failure.
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop.set)
    shown.say(f"\nthe page is at {url}; Ctrl-C ends it")
    await stop.wait()
    shown.say("\nended")
