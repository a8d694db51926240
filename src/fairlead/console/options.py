"""What commands share: the installation, its settings with the root's options applied, and `-o`."""

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from fairlead import errors, loading
from fairlead import settings as settings_
from fairlead.console import clients, logs, printing
from fairlead.console.context import CliContext
from fairlead.console.installation import Installation

F = TypeVar("F", bound=Callable[..., Any])
_SECONDS = {"s": 1, "m": 60, "h": 3600}


class Span(click.ParamType[float]):
    """A span of time such as 90s, 10m or 1h30m, as seconds."""

    name = "span"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        parts = re.findall(r"([0-9]{1,6})(s|m|h)", str(value))
        if not parts or "".join(f"{count}{unit}" for count, unit in parts) != value:
            self.fail(f"not a time such as 90s, 10m or 1h: {value}", param, ctx)
        return float(sum(int(count) * _SECONDS[unit] for count, unit in parts))


SPAN = Span()


def output(command: F) -> F:
    """The option -o of a reading command; the argument `as_json` says whether data is asked for.

    In which form, `printing` knows from the context.
    """
    return click.option(
        "-o",
        "--output",
        "as_json",
        type=click.Choice(["text", "json", "yaml"]),
        default="text",
        show_default=True,
        callback=_chosen,
        help="For people, or for programs.",
    )(command)


def limit(most: int) -> Callable[[F], F]:
    """The option --limit of a list."""
    return click.option(
        "--limit",
        type=click.IntRange(1, most),
        default=100,
        show_default=True,
        metavar="N",
        help="Show at most this many.",
    )


def _chosen(context: click.Context, _: click.Parameter, chosen: str) -> bool:
    context.meta[printing.AS_YAML] = chosen == "yaml"
    return chosen != "text"


def installation() -> Installation:
    """What this program is put together from."""
    given = context()
    made = given.installation() if given.installation else loading.make(given.place, object)
    assert isinstance(made, Installation)
    return made


def settings() -> settings_.Settings:
    """What this command line asks for; from here on, log lines go where it says."""
    chosen = installation().settings({**os.environ, **context().overrides})
    logs.configure(chosen.log)
    return chosen


@contextlib.contextmanager
def source() -> Iterator[clients.Source]:
    """Where this command line reads: the store, or the control plane that the settings name."""
    chosen = settings()
    with clients.source(installation(), chosen) as asked:
        yield asked


def local_settings() -> settings_.Settings:
    """Settings for a command that must reach the store itself."""
    chosen = settings()
    if chosen.web.server:
        raise errors.Rejected(
            f"this command needs the store, not a server: {chosen.web.server}",
            hint="unset FAIRLEAD_SERVER, or name the store with --database-url or --state-dir",
        )
    return chosen


def context() -> CliContext:
    return click.get_current_context().find_object(CliContext) or CliContext()
