"""What one thing did: its history, and what it wrote; nouns say whether they have them."""

import time
from urllib.parse import quote

import click
import msgspec

from fairlead.cli import steering
from fairlead.console import clients, completing, options, printing, remote
from fairlead.console.nouns import Noun, PastRun

_FOLLOW_SECONDS = 0.5


class LogLine(msgspec.Struct):
    """One line, and who wrote it."""

    source: str
    text: str


class LogPage(msgspec.Struct):
    """Lines as the API has them, and where to go on."""

    lines: list[LogLine]
    next: str


@click.command()
@click.argument("name", shell_complete=completing.names)
@options.output
def history(name: str, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Show the runs of NAME, the newest first: which version, when, how it ended and why."""
    able = [noun for noun in options.installation().nouns() if noun.history is not None]
    noun, name = steering.named_thing(name, able, "history")
    with options.source() as asked:
        found = noun.find(asked, name)
    assert noun.history is not None
    runs = noun.history(found)
    if as_json:
        printing.document(msgspec.to_builtins(runs))
    elif runs:
        heads = ("RUN", "VERSION", "REVISION", "STARTED", "TOOK", "OUTCOME", "WHY")
        printing.columns(heads, [_row(run) for run in runs])
    else:
        printing.talk(f"no runs yet of {noun.singular} {name}")


@click.command()
@click.argument("name", shell_complete=completing.names)
@click.option(
    "--version", default="", metavar="VERSION", help="Of this one, also of what has stopped."
)
@click.option("--follow", "-f", is_flag=True, help="Show what is written from now on, too.")
@click.option(
    "--tail",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    metavar="N",
    help="The last lines of each process.",
)
@options.output
def logs(name: str, *, version: str, follow: bool, tail: int, as_json: bool) -> None:
    """Show what the processes of NAME wrote, each line with the process it comes from.

    With -o json, each line is one document. On Kubernetes, kubectl logs shows those of pods.
    """
    able = [noun for noun in options.installation().nouns() if noun.logs]
    noun, name = steering.named_thing(name, able, "logs")
    asked = clients.control_plane(options.settings().web)
    page = _page(asked, noun, name, {"version": version, "tail": tail})
    _print(page, as_json=as_json)
    if not page.lines and not follow:
        printing.talk("nothing was written yet")
    while follow:
        time.sleep(_FOLLOW_SECONDS)
        page = _page(asked, noun, name, {"version": version, "after": page.next})
        _print(page, as_json=as_json)


def _page(
    asked: remote.ServerSource, noun: Noun, name: str, wanted: dict[str, str | int]
) -> LogPage:
    return asked.get(LogPage, f"/{noun.plural}/{quote(name)}/logs", wanted)


def _print(page: LogPage, *, as_json: bool) -> None:
    for line in page.lines:
        if as_json:
            printing.line(line)
        else:
            click.echo(printing.shown(f"{line.source} | {line.text.expandtabs()}"))


def _row(run: PastRun) -> tuple[str, ...]:
    took = "" if run.ended is None else f"{(run.ended - run.started).total_seconds():.0f} s"
    return (
        str(run.number),
        run.version,
        run.revision,
        printing.moment(run.started),
        took,
        run.outcome or "in progress",
        run.why,
    )
