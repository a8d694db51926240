"""A person's hand in the outbox: see what waits, retry or give up what lies dead."""

import contextlib
from collections.abc import Sequence

import click

from fairlead import errors
from fairlead.cli import errands, options, printing, sources
from fairlead.engine import library, messages, service

# One run takes this many.
_MOST = 100_000


@click.group()
def outbox() -> None:
    """List, retry or discard effects that have not been settled.

    An effect that failed too often lies dead until somebody retries or discards it.
    """


@outbox.command("list")
@click.option("--dead", is_flag=True, help="Only effects that lie dead.")
@click.option("--stream", metavar="STREAM", help="Only effects of this stream.")
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    metavar="N",
    help="Show at most this many.",
)
@options.output
def list_(dead: bool, stream: str | None, limit: int, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Show effects that wait, are held by a worker, or lie dead."""
    name = None if stream is None else messages.parse_stream(stream)
    with sources.source(options.settings()) as asked:
        found = asked.effects(name, limit, dead=dead or None)
    if as_json:
        printing.document([printing.effect_data(each) for each in found])
    elif found:
        _show(found)
    else:
        printing.talk("no dead effects" if dead else "no effects")


@outbox.command()
@click.argument("effect", required=False, metavar="[ID]")
@click.option("--all-dead", is_flag=True, help="Every effect that lies dead.")
def retry(effect: str | None, all_dead: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Let the dead effect ID, as the list shows it, start over."""
    if (effect is None) != all_dead:
        raise click.UsageError("Name one effect, or all of them with --all-dead.")
    if effect is None:
        printing.talk(f"retried: {_retry_all()}")
        return
    key = library.parse_effect_id(effect)
    server = sources.server(options.settings().web)
    if server is None:
        errands.with_engine(lambda engine: engine.retry(key))
    else:
        server.retry(key)
    printing.talk("retried: 1")


@outbox.command()
@click.argument("effect", metavar="ID")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def discard(effect: str, yes: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Give up the dead effect ID for ever; nobody will perform it."""
    key = library.parse_effect_id(effect)
    if not (yes or _agreed(f"Give up effect {effect} for ever?")):
        printing.talk("left as it is")
        raise click.Abort
    server = sources.server(options.settings().web)
    if server is None:
        errands.with_engine(lambda engine: engine.discard(key))
    else:
        server.discard(key)
    printing.talk(f"discarded: {effect}")


def _agreed(question: str) -> bool:
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        # Nobody is there to answer, which is no yes.
        return False


def _retry_all() -> int:
    """How many were retried; all are named first, for one may die again at once."""
    server = sources.server(options.settings().web)
    if server is None:
        return errands.with_engine(_retry_in_store)
    count = 0
    for each in server.effects(None, _MOST, dead=True):
        with contextlib.suppress(errors.NotFound):  # somebody else was quicker
            server.retry(each.key)
            count += 1
    return count


async def _retry_in_store(engine: service.Engine) -> int:
    dead = await engine.read(lambda session: library.effects(session, dead=True, limit=_MOST))
    count = 0
    for each in dead:
        with contextlib.suppress(errors.NotFound):
            await engine.retry(each.key)
            count += 1
    return count


def _show(found: Sequence[library.EffectView]) -> None:
    rows = [
        (
            each.id,
            each.stream,
            each.type,
            "dead" if each.dead_at else "held" if each.held else "waiting",
            str(each.attempts),
            printing.moment(each.due_at),
            each.error or "",
        )
        for each in found
    ]
    printing.columns(("ID", "STREAM", "EFFECT", "STATE", "ATTEMPTS", "DUE", "ERROR"), rows)
