"""What a shell completes: the kinds and names that there are, asked for within a moment."""

import contextlib

import click

from fairlead import errors
from fairlead.console import clients, options

_SECONDS = 1.0
_MOST = 500


def kinds(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """What `get` and `watch` may name."""
    with context.scope(cleanup=False):
        return sorted(word for word in known_kinds() if word.startswith(incomplete))


def known_kinds() -> set[str]:
    installation = options.installation()
    words = {each for noun in installation.nouns() for each in noun.words}
    return {"streams", *words, *(each.name for each in installation.machines)}


def names(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Names of the kind that was typed before, or of all; none where nobody answers in time."""
    kind = context.params.get("what") or context.params.get("stream")
    found: list[str] = []
    # Whoever presses a key wants no error: without an answer there is nothing to complete.
    with context.scope(cleanup=False), contextlib.suppress(errors.FairleadError):
        chosen, installation = options.settings(), options.installation()
        with clients.source(installation, chosen, _SECONDS) as asked:
            for noun in installation.nouns():
                if kind is None or kind in noun.words:
                    found += [noun.row(one)[0] for one in noun.list(asked, _MOST, "")]
    return sorted(name for name in found if name.startswith(incomplete))
