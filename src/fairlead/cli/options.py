"""What commands share: the settings with the root's options applied, and `-o`."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from fairlead import bootstrap, errors
from fairlead import settings as settings_
from fairlead.cli.surroundings import Surroundings

F = TypeVar("F", bound=Callable[..., Any])


def output(command: F) -> F:
    """The option -o of a reading command; the argument `as_json` says what was chosen."""
    return click.option(
        "-o",
        "--output",
        "as_json",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        callback=lambda _context, _parameter, chosen: chosen == "json",
        help="For people, or for programs.",
    )(command)


def settings() -> settings_.Settings:
    """What this command line asks for; from here on, log lines go where it says."""
    chosen = bootstrap.settings({**os.environ, **_surroundings().overrides})
    bootstrap.logs(chosen.log)
    return chosen


def cast() -> bootstrap.Cast:
    """The machines this command works with."""
    given = _surroundings().cast
    players = bootstrap.cast() if given is None else given()
    assert isinstance(players, bootstrap.Cast)
    return players


def joined(chosen: settings_.Settings) -> bootstrap.Cast:
    """The same with this machine as a platform, for the process that runs it."""
    if _surroundings().cast is not None:
        return cast()
    return bootstrap.joined(chosen, cast())


def local_settings() -> settings_.Settings:
    """Settings for a command that must reach the store itself."""
    chosen = settings()
    if chosen.web.server:
        raise errors.Rejected(
            f"this command works on the store, not through a server: {chosen.web.server}",
            hint="unset FAIRLEAD_SERVER, or name the store with --database-url or --state-dir",
        )
    return chosen


def _surroundings() -> Surroundings:
    return click.get_current_context().find_object(Surroundings) or Surroundings()
