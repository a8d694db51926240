"""`fairlead content serve`: load everything, then listen, until a signal comes.

description, two versions ──► editions ──► answers ──► population ──► socket ──► ready
SIGTERM ──► not ready, answers on ──► no new connections, open requests end ──► exit
"""

import asyncio
import contextlib
import os
import signal
import types
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import click
import structlog

from fairlead import errors, loading
from fairlead.areas.content import description
from fairlead.areas.content.commands import versions
from fairlead.areas.content.description import Description
from fairlead.areas.content.domain.edition import Edition
from fairlead.areas.content.service import bearer, http1
from fairlead.areas.content.service.app import Chooser, Service
from fairlead.areas.content.service.catalogue import Catalogue, catalogue
from fairlead.areas.content.service.own_share import OwnShare
from fairlead.areas.content.settings import ContentSettings
from fairlead.console import logs, options
from fairlead.web import server

_FLAGGED = "fairlead.areas.content.service.flagged:flagged"
_log = structlog.get_logger(__name__)


class Population(Chooser, Protocol):
    """One that follows who says the share."""

    async def start(self) -> None: ...

    async def keep(self) -> None:
        """Until cancelled."""
        ...


@click.command()
@versions.both
@click.option("--listen", metavar="ADDRESS:PORT", help="Where to answer; 127.0.0.1:8000 if unset.")
@click.option(
    "--share-file",
    metavar="FILE",
    help="Read the canary's share from this file, again when it changes.",
)
@click.option(
    "--supervised", is_flag=True, help="Listen on 127.0.0.1, at the port in the variable PORT."
)
def serve(file: str, stable: str, canary: str, **given: Any) -> None:
    """Serve the content in FILE: the stable version, and the canary to its share.

    Anything that is wrong with either version fails the start, with file and line. Both versions
    are usually set by a deployment, in STABLE_VERSION and CANARY_VERSION.
    """
    settings = options.settings()
    logs.configure_server(settings.log)
    chosen = settings.of(ContentSettings)
    listen, share_file = given["listen"], given["share_file"]
    if given["supervised"]:
        listen = f"127.0.0.1:{os.environ.get('PORT', '')}"
    if listen is not None:
        chosen = replace(chosen, content_listen=listen)
    if share_file is not None:
        chosen = replace(chosen, content_share_file=share_file)
    content = description.pinned(versions.described(file), chosen.content_commits)
    asyncio.run(_serve(content, (stable, canary), chosen))


async def _serve(content: Description, asked: tuple[str, str], chosen: ContentSettings) -> None:
    server.allow_many_files()
    identity = bearer.identity(chosen)
    first, second = await _loaded(content, *asked)
    population = chooser(content.name, asked[1], chosen)
    await answer(catalogue(content, first, second, identity), population, chosen)


async def answer(served: Catalogue, population: Population, chosen: ContentSettings) -> None:
    """Until a signal comes; Unavailable where the server, or who follows the share, ends before."""
    bind = server.parse_listen(chosen.content_listen)
    await population.start()
    service = Service(served, population)
    # Only now: whoever can connect finds everything loaded.
    with server.claim(bind) as listening, _signals() as stop:
        async with (
            _kept(population) as keeping,
            http1.serving(service, listening, server.most_connections()) as task,
        ):
            address = server.bound(bind, listening).url
            click.echo(f"fairlead content is serving {served.name}: {address}", err=True)
            await _until(stop, task, keeping)
            service.draining = True
            await asyncio.wait({task}, timeout=chosen.content_drain_seconds)


async def _loaded(content: Description, stable: str, canary: str) -> tuple[Edition, Edition | None]:
    first, second = await versions.loaded(content, stable, canary)
    for channel, each in (("stable", first), ("canary", second)):
        if each is not None:
            found = {"version": each.edition.version, "commit": each.commit, "sha256": each.sha256}
            _log.info("content_loaded", channel=channel, **found)
    return first.edition, second.edition if second else None


def chooser(name: str, canary: str, chosen: ContentSettings) -> Population:
    """Who says which channel somebody gets; Rejected where two would."""
    if not chosen.content_unleash_url:
        file = chosen.content_share_file
        return OwnShare(Path(file) if file else None, canary)
    if chosen.content_share_file:
        raise errors.Rejected(
            "both Unleash and a file say the share",
            hint="unset FAIRLEAD_CONTENT_UNLEASH_URL or FAIRLEAD_CONTENT_SHARE_FILE",
        )
    # Late: a client and an evaluator that a share of our own does without.
    made: Population = loading.load(_FLAGGED, types.FunctionType)(name, chosen)
    return made


@contextlib.asynccontextmanager
async def _kept(population: Population) -> AsyncIterator["asyncio.Task[None]"]:
    keeping = asyncio.create_task(population.keep())
    try:
        yield keeping
    finally:
        keeping.cancel()
        await asyncio.wait({keeping})


@contextlib.contextmanager
def _signals() -> Iterator[asyncio.Event]:
    """The first signal asks to stop; the second ends the process where it stands."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def heard(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, heard, each)
    yield stop


async def _until(
    stop: asyncio.Event, task: "asyncio.Task[None]", keeping: "asyncio.Task[None]"
) -> None:
    signalled = asyncio.create_task(stop.wait())
    await asyncio.wait({signalled, task, keeping}, return_when=asyncio.FIRST_COMPLETED)
    signalled.cancel()
    if keeping.done():
        # Served on, everybody would keep the channel of this moment, also after a revert.
        fault = keeping.exception()
        raise errors.Unavailable(
            f"nobody follows the share: {type(fault).__name__}: {fault}", hint="please report this"
        ) from fault
    if not stop.is_set():
        raise errors.Unavailable("the server ended by itself", hint="the log says why")
