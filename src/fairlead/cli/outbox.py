"""The outbox by hand: list what waits, retry or discard what is dead."""

import contextlib
from collections.abc import Sequence

import click

from fairlead import errors
from fairlead.console import clients, local_engine, options, printing, remote
from fairlead.engine import messages, service, visibility

# One run takes this many.
_MOST = 100_000


@click.group()
def outbox() -> None:
    """List, retry or discard effects that are not settled.

    An effect that failed too often is dead until somebody retries or discards it.
    """


@outbox.command("list")
@click.option("--dead", is_flag=True, help="Only dead effects.")
@click.option("--stream", metavar="STREAM", help="Only effects of this stream.")
@options.limit(10_000)
@options.output
def list_(dead: bool, stream: str | None, limit: int, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Show effects that wait, are held by a worker, or are dead."""
    name = None if stream is None else messages.parse_stream(stream)
    with options.source() as asked:
        found = asked.effects(name, limit, dead=dead or None)
    if as_json:
        printing.document([each.told() for each in found])
    elif found:
        _show(found)
    else:
        printing.talk("no dead effects" if dead else "no effects")


@outbox.command()
@click.argument("effect", required=False, metavar="[ID]")
@click.option("--all-dead", is_flag=True, help="All dead effects.")
def retry(effect: str | None, all_dead: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Retry the dead effect ID, as the list shows it."""
    if (effect is None) != all_dead:
        raise click.UsageError("Name one effect, or all of them with --all-dead.")
    if effect is None:
        # All are named first, for one may die again at once.
        printing.talk(f"retried: {local_engine.write(_retry_in_store, _retry_by)}")
        return
    key = visibility.parse_effect_id(effect)
    local_engine.write(lambda engine: engine.retry(key), lambda server: server.retry(key))
    printing.talk("retried: 1")


@outbox.command()
@click.argument("effect", metavar="ID")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def discard(effect: str, yes: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Discard the dead effect ID for good; nobody will perform it."""
    key = visibility.parse_effect_id(effect)
    if not (yes or _agreed(f"Discard effect {effect} for good?")):
        printing.talk("nothing changed")
        raise click.Abort
    local_engine.write(lambda engine: engine.discard(key), lambda server: server.discard(key))
    printing.talk(f"discarded: {effect}")


def _agreed(question: str) -> bool:
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        # Nobody is there to answer, which is no yes.
        return False


def _retry_by(server: remote.ServerSource) -> int:
    count = 0
    for each in server.effects(None, _MOST, dead=True):
        with contextlib.suppress(errors.NotFound):  # somebody else was quicker
            server.retry(each.key)
            count += 1
    return count


async def _retry_in_store(engine: service.Engine) -> int:
    dead = await engine.read(
        lambda session: clients.StoreSource(session).effects(None, _MOST, dead=True)
    )
    count = 0
    for each in dead:
        with contextlib.suppress(errors.NotFound):
            await engine.retry(each.key)
            count += 1
    return count


def _show(found: Sequence[visibility.EffectView]) -> None:
    rows = [
        (
            each.id,
            each.stream,
            each.queue or "none",
            each.type,
            "dead" if each.dead_at else "held" if each.held else "waiting",
            str(each.attempts),
            printing.moment(each.due_at),
            each.error or "",
        )
        for each in found
    ]
    printing.columns(("ID", "STREAM", "QUEUE", "EFFECT", "STATE", "ATTEMPTS", "DUE", "ERROR"), rows)
