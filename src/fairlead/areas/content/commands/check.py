"""`fairlead content check`: what a start would say, without a start."""

import asyncio

import click

from fairlead.areas.content.commands import versions
from fairlead.areas.content.loader import Loaded
from fairlead.console import options, printing


@click.command()
@versions.both
@options.output
def check(file: str, stable: str, canary: str, *, as_json: bool) -> None:
    """Load both versions of the content in FILE as the service would, and serve nothing.

    Says all that is wrong, with file and line. What is printed of a sound version, its commit and
    its sum, can be recorded under `pins` in FILE: a moved tag or a changed archive is refused then.
    """
    found = asyncio.run(versions.loaded(versions.described(file), stable, canary))
    channels = {"stable": found[0], **({"canary": found[1]} if found[1] else {})}
    if as_json:
        printing.document({channel: _told(each) for channel, each in channels.items()})
        return
    heads = ("CHANNEL", "VERSION", "FILES", "COMMIT", "SHA256")
    rows = [
        (channel, each.edition.version, str(_files(each)), each.commit[:12], each.sha256)
        for channel, each in channels.items()
    ]
    printing.columns(heads, rows)


def _told(found: Loaded) -> dict[str, object]:
    return {
        "version": found.edition.version,
        "files": _files(found),
        "commit": found.commit,
        "sha256": found.sha256,
    }


def _files(found: Loaded) -> int:
    documents = found.edition.documents.values()
    return len({body.file for each in documents for body in each.bodies})
