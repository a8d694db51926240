"""Resources as the terminal shows them: the list, one of them closely, each change."""

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote

import click

from fairlead.areas.resources import view
from fairlead.areas.resources.view import Summary
from fairlead.console import printing
from fairlead.console.clients import Source
from fairlead.console.nouns import Noun
from fairlead.engine.store import protocol


def show(one: Summary) -> None:
    printing.pairs(
        [
            ("resource", one.id),
            ("type", f"{one.type}@{one.version}"),
            ("phase", one.phase),
            ("why", one.why or "-"),
            ("last write", printing.moment(one.last_write) or "never"),
            ("next look", printing.moment(one.next) or "-"),
            ("stream", one.stream),
        ]
    )
    if one.differs:
        click.echo("\nDIFFERS")
        printing.columns(("PATH", "WHY"), [(each.path, each.why) for each in one.differs])


def line(one: Summary) -> str:
    told = (printing.moment(one.updated), one.id, one.phase, _differing(one), one.why)
    return "  ".join(filter(None, told))


def _differing(one: Summary) -> str:
    return ", ".join(each.path or each.why for each in one.differs)


def _row(one: Summary) -> tuple[str, ...]:
    moments = (printing.moment(one.last_write) or "-", printing.moment(one.next) or "-")
    return one.id, one.phase, _differing(one) or "-", *moments, one.why


def _listed(asked: Source, limit: int, where: str) -> Sequence[Summary]:
    return asked.read(
        lambda session: _all(session, limit, where),
        lambda server: server.listed(Summary, "/resources", limit, where),
    )


def _all(session: protocol.Session, limit: int, where: str) -> list[Summary]:
    """A page ends by its size too: what is declared may be large."""
    found, further = list[Summary](), None
    while True:
        page, further = view.listed(session, limit - len(found), where, before=further)
        found += page
        if further is None or len(found) >= limit:
            return found


def _find(asked: Source, name: str) -> Summary:
    path = f"/resources/{quote(name.strip('/'))}"
    return asked.read(
        lambda session: view.read(session, name, datetime.now(UTC)),
        lambda server: server.get(Summary, path),
    )


RESOURCE = Noun(
    singular="resource",
    plural="resources",
    list=_listed,
    find=_find,
    heads=("RESOURCE", "PHASE", "DIFFERS", "LAST WRITE", "NEXT LOOK", "WHY"),
    row=_row,
    show=show,
    line=line,
    key=lambda one: str(one.id),
    essence=lambda one: (one.phase, one.why, one.differs),
)
