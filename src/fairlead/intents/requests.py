"""The door for people who look after rollouts: find one by its name, read it, ask something of it.

The page, the API and the command all come through here, so that a name, a refusal and a hint
are the same wherever they are read.
"""

import contextlib
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from fairlead import errors
from fairlead.domain.rollouts import bonds, choices, detail, rows
from fairlead.domain.rollouts.machine import ROLLOUT
from fairlead.engine import library, messages, projections
from fairlead.engine.store import protocol
from fairlead.intents import intake

_CHUNK = 500
_MOST_NAMED = 5
_PREFIX = f"{ROLLOUT.name}/"


def find(session: protocol.Session, name: str) -> library.StreamView:
    """The stream behind a name: the whole name, or NAMESPACE/NAME or NAME where only one has it."""
    exact = _stream(session, name)
    if exact is not None:
        return exact
    found = [view for view in _active(session) if _is_called(view.name, name)]
    if not found:
        raise errors.NotFound(
            f"no such rollout: {name[:200]}", hint="list them with fairlead get rollouts"
        )
    if len(found) > 1:
        names = ", ".join(view.name.removeprefix(_PREFIX) for view in found[:_MOST_NAMED])
        raise errors.Conflict(
            f"more than one rollout has this name: {name[:200]}", hint=f"use one of: {names}"
        )
    return found[0]


def look(session: protocol.Session, name: str, now: datetime) -> detail.Detail:
    """One rollout with all that is told of it."""
    view = find(session, name)
    return detail.tell(_sheets(session, [view])[0], now)


def listed(
    session: protocol.Session, limit: int, before: int | None = None
) -> tuple[list[rows.Summary], int | None]:
    """Rollouts, the newest first, and the number to go on from where there are more."""
    which = library.StreamFilter(ROLLOUT.name, ended=False, before=before, limit=limit + 1)
    found = library.streams(session, which)
    further = found[limit - 1].number if len(found) > limit else None
    return [sheet.summary() for sheet in _sheets(session, found[:limit])], further


def request(
    stream: messages.StreamName, wish: choices.Wish, command_id: messages.CommandId | None = None
) -> intake.Request:
    """A person's wish as a request for the intake."""
    command = choices.command(wish)
    return intake.Request(stream, type(command).__name__, msgspec.to_builtins(command), command_id)


@contextlib.contextmanager
def in_place() -> Iterator[None]:
    """Around a verb's way to its rollout: where it is no time for it, Conflict with what is."""
    try:
        yield
    except errors.Rejected as error:
        if type(error) is not errors.Rejected:
            raise
        # Well-formed as it is, it can only be out of place: the same words may fit later.
        raise errors.Conflict(error.message, hint=error.hint) from error


def _stream(session: protocol.Session, name: str) -> library.StreamView | None:
    try:
        view = library.stream(session, bonds.rollout_stream(name))
    except errors.Rejected:
        # Not there, or no name that a stream could have; the search tells which are.
        return None
    return None if view.ended_at is not None else view


def _active(session: protocol.Session) -> Iterator[library.StreamView]:
    before: int | None = None
    while True:
        which = library.StreamFilter(ROLLOUT.name, ended=False, before=before, limit=_CHUNK)
        page = library.streams(session, which)
        yield from page
        if len(page) < _CHUNK:
            return
        before = page[-1].number


def _is_called(stream: str, name: str) -> bool:
    title = rows.title(stream.removeprefix(_PREFIX))
    return name in (title, title.rpartition("/")[2])


def _sheets(session: protocol.Session, views: Sequence[library.StreamView]) -> list[rows.Sheet]:
    """Each stream's sheet as it stands now: the kept row, and what it does not know yet."""
    names = [view.name for view in views]
    kept = dict(projections.rows_of(session, rows.NAME, names)) if names else {}
    return [_caught_up(session, view, rows.read(kept.get(view.name))) for view in views]


def _caught_up(
    session: protocol.Session, view: library.StreamView, sheet: rows.Sheet
) -> rows.Sheet:
    while sheet.seq < view.version:
        missed = library.events(session, view.name, sheet.seq, _CHUNK)
        if not missed:
            break
        sheet = rows.follow(sheet, missed)
    return sheet
