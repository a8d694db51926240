"""An engine at work in this process, until a signal asks it to stop."""

import asyncio
import contextlib
import gc
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass

import click

from fairlead import bootstrap
from fairlead import settings as settings_
from fairlead.bootstrap.tracing import Tracing
from fairlead.engine import service
from fairlead.engine.store import protocol


@dataclass(frozen=True, slots=True)
class ServerParts:
    """Everything a process works with."""

    settings: settings_.Settings
    installation: bootstrap.Installation
    store: protocol.Store
    tracing: Tracing


@dataclass(frozen=True, slots=True)
class Role:
    """What a process does around its engine until it is told to stop."""

    serve: Callable[[ServerParts], Awaitable[None]]


@contextlib.contextmanager
def starting() -> Iterator[None]:
    """Around a server: until it is ready, nearly all that is made stays; no garbage is sought."""
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.enable()


def ready(line: str) -> None:
    """Say that it works; garbage is sought from here on, but not among what is loaded by now."""
    gc.freeze()
    gc.enable()
    click.echo(line, err=True)


@contextlib.asynccontextmanager
async def working(parts: ServerParts) -> AsyncIterator[tuple[service.Engine, asyncio.Event]]:
    """The engine, and the signal that it is time to stop.

    Leaving the block drains: nothing new is begun, what is being performed may end by
    itself for FAIRLEAD_DRAIN_SECONDS, and the lease is released.
    """
    stop = asyncio.Event()
    made = parts.installation.engine(parts.settings, parts.store)
    with signals(stop.set):
        async with parts.installation.in_background(made), made.running() as engine:
            yield engine, stop


@contextlib.contextmanager
def signals(stop: Callable[[], object]) -> Iterator[None]:
    """The first signal asks to stop; the second ends the process where it stands."""
    loop = asyncio.get_running_loop()
    told = False

    def heard(number: int) -> None:
        nonlocal told
        if told:
            # Every commit is durable and every lease lapses: there is nothing to save.
            os._exit(128 + number)
        told = True
        click.echo("fairlead is stopping; press Ctrl-C again to stop at once", err=True)
        stop()

    both = (signal.SIGINT, signal.SIGTERM)
    for each in both:
        loop.add_signal_handler(each, heard, each)
    try:
        yield
    finally:
        for each in both:
            loop.remove_signal_handler(each)
