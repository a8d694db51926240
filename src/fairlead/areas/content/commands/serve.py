"""`fairlead content serve`: load everything, then listen, until a signal comes.

description, two versions ──► editions ──► answers ──► population ──► socket ──► ready
SIGTERM ──► not ready, answers on ──► no new connections, open requests end ──► exit
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import structlog

from fairlead import errors
from fairlead.areas.content.commands import versions
from fairlead.areas.content.description import Description
from fairlead.areas.content.service.app import Service
from fairlead.areas.content.service.catalogue import Catalogue, catalogue
from fairlead.areas.content.service.flagged import Flagged
from fairlead.areas.content.service.own_share import OwnShare
from fairlead.areas.content.settings import ContentSettings
from fairlead.clients import unleash
from fairlead.console import logs, options
from fairlead.web import server

_log = structlog.get_logger(__name__)


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
    asyncio.run(_serve(versions.described(file), (stable, canary), chosen))


async def _serve(content: Description, asked: tuple[str, str], chosen: ContentSettings) -> None:
    server.allow_many_files()
    bind = server.parse_listen(chosen.content_listen)
    served = await _catalogue(content, *asked)
    population = chooser(content.name, chosen)
    await population.start()
    service = Service(served, population)
    # Only now: whoever can connect finds everything loaded.
    with server.claim(bind) as listening, _signals() as stop:
        async with (
            _kept(population),
            server.serving(service, listening, asyncio.Event(), rsgi=True) as task,
        ):
            address = server.bound(bind, listening).url
            click.echo(f"fairlead content is serving {content.name}: {address}", err=True)
            await _until(stop, task)
            service.draining = True
            await asyncio.wait({task}, timeout=chosen.content_drain_seconds)


async def _catalogue(content: Description, stable: str, canary: str) -> Catalogue:
    first, second = await versions.loaded(content, stable, canary)
    for channel, each in (("stable", first), ("canary", second)):
        if each is not None:
            found = {"version": each.edition.version, "commit": each.commit, "sha256": each.sha256}
            _log.info("content_loaded", channel=channel, **found)
    return catalogue(content, first.edition, second.edition if second else None)


def chooser(name: str, chosen: ContentSettings) -> OwnShare | Flagged:
    """Who says which channel somebody gets; Rejected where two would."""
    if not chosen.content_unleash_url:
        return OwnShare(Path(chosen.content_share_file) if chosen.content_share_file else None)
    if chosen.content_share_file:
        raise errors.Rejected(
            "both Unleash and a file say the share",
            hint="unset FAIRLEAD_CONTENT_UNLEASH_URL or FAIRLEAD_CONTENT_SHARE_FILE",
        )
    access = unleash.Access(
        chosen.content_unleash_url,
        chosen.content_unleash_token,
        chosen.content_unleash_app,
        chosen.content_unleash_poll_seconds,
        Path(chosen.content_unleash_file) if chosen.content_unleash_file else None,
    )
    toggle = chosen.content_unleash_toggle or name
    return Flagged(unleash.Flags(access), toggle, chosen.content_unleash_seconds)


@contextlib.asynccontextmanager
async def _kept(population: OwnShare | Flagged) -> AsyncIterator[None]:
    keeping = asyncio.create_task(population.keep())
    try:
        yield
    finally:
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping


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


async def _until(stop: asyncio.Event, task: "asyncio.Task[None]") -> None:
    signalled = asyncio.create_task(stop.wait())
    await asyncio.wait({signalled, task}, return_when=asyncio.FIRST_COMPLETED)
    signalled.cancel()
    if not stop.is_set():
        raise errors.Unavailable("the server ended by itself", hint="the log says why")
