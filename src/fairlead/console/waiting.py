"""`deploy --wait`: what was deployed, until it is done, given up, or waits for a person.

A terminal gets the steps drawn in place; anything else gets a line for each change.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import click
from rich import console as consoles
from rich import live as lives
from rich import text as texts

from fairlead import errors
from fairlead.console import printing, remote
from fairlead.console.nouns import Noun, Progress

_POLL_SECONDS = 0.5
# A control plane that is updated is away for some seconds; what it leads goes on.
_TRIES = 60


class DeployRolledBack(errors.Conflict):
    """`deploy --wait`: the version was rolled back, or given up."""

    exit_code = 20


class DeployPaused(errors.Conflict):
    """`deploy --wait`: the rollout waits for a person."""

    exit_code = 21


class DeployTimedOut(errors.Unavailable):
    """`deploy --wait`: it was not done within `--timeout`; it goes on."""

    exit_code = 22


ENDINGS = (DeployRolledBack, DeployPaused, DeployTimedOut)
_FATES: dict[str, type[errors.FairleadError]] = {
    "failed": DeployRolledBack,
    "paused": DeployPaused,
    "replaced": errors.Conflict,
}


def wait(
    noun: Noun, asked: remote.ServerSource, name: str, revision: str, seconds: float | None
) -> Progress:
    """How it ended well; an error of its own for each other end."""
    until = None if seconds is None else time.monotonic() + seconds
    with _goes_on(noun, name), _screen(noun) as show:
        while True:
            found, progress = _now(noun, asked, name, revision)
            show(found, progress)
            if progress.state != "working":
                break
            if until is not None and time.monotonic() >= until:
                raise DeployTimedOut(
                    f"{name} was not done within {seconds:g} s: {progress.why}",
                    hint=_where(noun, name),
                )
            time.sleep(_POLL_SECONDS)
    if progress.state in _FATES:
        raise _FATES[progress.state](f"{name}: {progress.why}", hint=progress.hint)
    return progress


@contextlib.contextmanager
def _goes_on(noun: Noun, name: str) -> Iterator[None]:
    """Who stops waiting may think that the release stops too."""
    try:
        yield
    except KeyboardInterrupt:
        printing.talk(_where(noun, name))
        raise


def _where(noun: Noun, name: str) -> str:
    return f"it goes on: fairlead watch {noun.singular} {name}"


def _now(noun: Noun, asked: remote.ServerSource, name: str, revision: str) -> tuple[Any, Progress]:
    assert noun.progress is not None
    tries = 0
    while True:
        try:
            found = noun.find(asked, name)
            return found, noun.progress(found, revision)
        except errors.Unavailable:
            tries += 1
            if tries > _TRIES:
                raise
        time.sleep(_POLL_SECONDS)


Show = Callable[[Any, Progress], None]


@contextlib.contextmanager
def _screen(noun: Noun) -> Iterator[Show]:
    if not sys.stderr.isatty():
        yield _Lines(noun)
        return
    console = consoles.Console(stderr=True, highlight=False)
    with lives.Live(console=console, auto_refresh=False) as live:

        def draw(_: Any, progress: Progress) -> None:
            lines = "\n".join(printing.shown(line) for line in progress.frame)
            live.update(texts.Text(lines, overflow="ellipsis", no_wrap=True), refresh=True)

        yield draw


class _Lines:
    """A line whenever it says something new."""

    def __init__(self, noun: Noun) -> None:
        self._noun = noun
        self._told: object = None

    def __call__(self, found: Any, _: Progress) -> None:
        one = self._noun.summary(found)
        if self._noun.essence(one) != self._told:
            self._told = self._noun.essence(one)
            click.echo(printing.shown(self._noun.line(one)), err=True)
