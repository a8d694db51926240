"""A process whose disk is full for a while: no file may grow past what the log has now.

    python -m tests.durability.cramped DATABASE BOOK ANSWER

A limit on file sizes needs no rights, and makes the same write fail as a full disk does.
Writes what the refused caller was told to a file, as JSON.
"""

import asyncio
import contextlib
import dataclasses
import json
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import structlog

from fairlead import errors
from fairlead.console import stderr
from fairlead.engine import messages, service, visibility
from fairlead.engine.sample.messages import Order
from fairlead.engine.store import protocol
from tests.durability import checks, story

SIZE = story.Size(depots=2, trips=6, strikes=20)
REFUSALS = 3


@contextlib.contextmanager
def full_disk(log: Path) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def tell(story_setup: story.StorySetup) -> dict[str, object]:
    refused: list[errors.Unavailable] = []
    async with story.engine(story_setup, story_setup.store()).running() as running:
        await story.order(running, dataclasses.replace(SIZE, depots=1))
        with full_disk(Path(f"{story_setup.database}-wal")):
            for number in range(REFUSALS):
                try:
                    await _order(running, number)
                except errors.Unavailable as error:
                    refused.append(error)
            whole = await running.read(_read_all)
        # The other half of the story was refused; asked again, it is taken.
        await story.order(running, SIZE)
        await story.over(running, SIZE)
        return {
            "refused": len(refused),
            "message": refused[0].message if refused else "",
            "hint": refused[0].hint if refused else "",
            "seen_meanwhile": whole,
            "troubles": running.counts.troubles,
        }


async def _order(running: service.Engine, number: int) -> None:
    stream = messages.stream_name("depot", f"refused-{number}")
    command = Order(f"refused-{number}", 1)
    await running.submit(stream, command, messages.command_id(f"do {stream}"))


def _read_all(session: protocol.Session) -> list[str]:
    streams = visibility.streams(session, visibility.StreamFilter(limit=1000))
    for each in streams:
        checks.check_events(session, each.name)
    return sorted(each.name for each in streams)


if __name__ == "__main__":
    # As every server of ours does: a log that finds no room must not end the work.
    stderr.queue()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    told = asyncio.run(tell(story.StorySetup(sys.argv[1], Path(sys.argv[2]), SIZE, 0.02)))
    Path(sys.argv[3]).write_text(json.dumps(told))
