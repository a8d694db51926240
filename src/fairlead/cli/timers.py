"""Timers by hand: list what waits, retry or discard what is dead."""

from collections.abc import Sequence

import click

from fairlead.console import local_engine, options, printing
from fairlead.engine import messages, visibility


@click.group()
def timers() -> None:
    """List, retry or discard timers that have not fired.

    A timer that its stream refused too often is dead until somebody retries or discards it.
    """


@timers.command("list")
@click.option("--dead", is_flag=True, help="Only dead timers.")
@options.limit(500)
@options.output
def list_(dead: bool, limit: int, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Show timers that wait, are held by a worker, or are dead."""
    which = dead or None
    with options.source() as asked:
        found = asked.read(
            lambda session: visibility.timers(session, dead=which, limit=limit),
            lambda server: server.timers(limit, dead=which),
        )
    if as_json:
        printing.document(found)
    elif found:
        _show(found)
    else:
        printing.talk("no dead timers" if dead else "no timers")


@timers.command()
@click.argument("stream")
@click.argument("name")
def retry(stream: str, name: str) -> None:
    """Fire the dead timer NAME of STREAM anew."""
    owner = messages.parse_stream(stream)
    local_engine.write(
        lambda engine: engine.retry_timer(owner, name),
        lambda server: server.change_timer(owner, name, "retry"),
    )
    printing.talk(f"retried: {name}")


@timers.command()
@click.argument("stream")
@click.argument("name")
def discard(stream: str, name: str) -> None:
    """Discard the dead timer NAME of STREAM for good; it will not fire."""
    owner = messages.parse_stream(stream)
    local_engine.write(
        lambda engine: engine.discard_timer(owner, name),
        lambda server: server.change_timer(owner, name, "discard"),
    )
    printing.talk(f"discarded: {name}")


def _show(found: Sequence[visibility.TimerView]) -> None:
    rows = [
        (
            each.stream,
            each.name,
            each.command,
            "dead" if each.dead_at else "held" if each.held else "waiting",
            str(each.attempts),
            printing.moment(each.due_at),
            each.error or "",
        )
        for each in found
    ]
    printing.columns(("STREAM", "TIMER", "COMMAND", "STATE", "ATTEMPTS", "DUE", "ERROR"), rows)
