"""Who performs what: the queues of a store, what waits in them, and moving a stream."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from fairlead import errors
from fairlead.console import local_engine, options, printing
from fairlead.engine import messages, visibility


@click.group()
def queues() -> None:
    """List queues, or move a stream to another.

    A stream's effects go to workers that serve its queue, such as kubernetes@prod. What no
    worker serves waits until one does.
    """


@queues.command("list")
@options.output
def list_(as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Show each queue: what waits there, since when, and how many workers serve it."""
    now = datetime.now(UTC)
    with options.source() as asked:
        found = asked.read(lambda s: visibility.queues(s, now), lambda server: server.queues())
    if as_json:
        printing.document([_data(each, now) for each in found])
    elif found:
        _show(found, now)
    else:
        printing.talk("no queues: nothing waits, and no worker is here")


@queues.command()
@click.argument("stream")
@click.argument("queue")
def move(stream: str, queue: str) -> None:
    """Give STREAM to QUEUE, with everything it asked for that is not done.

    An effect that a worker performs right now is finished there. "none" is the queue of
    streams that have none.
    """
    name = messages.parse_stream(stream)
    asked = "" if queue == "none" else messages.parse_queue(queue)
    moved, effects = local_engine.write(
        lambda engine: engine.move([name], asked), lambda server: (1, server.move(name, asked))
    )
    if not moved:
        raise errors.NotFound(f"no such stream: {name}", hint="list them with fairlead get")
    printing.talk(f"moved: {name} to {queue}, effects that go along: {effects}")


def _data(view: visibility.QueueView, now: datetime) -> dict[str, Any]:
    return {**msgspec.to_builtins(view), "problem": view.problem(now)}


def _show(found: Sequence[visibility.QueueView], now: datetime) -> None:
    rows = [
        (
            each.name or "none",
            str(each.waiting),
            printing.moment(each.oldest) if each.oldest else "",
            str(len(each.workers)),
            each.problem(now) or "",
        )
        for each in found
    ]
    printing.columns(("QUEUE", "WAITING", "OLDEST", "WORKERS", "PROBLEM"), rows)
