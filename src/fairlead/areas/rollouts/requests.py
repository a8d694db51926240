"""How people reach rollouts: find one by its name, read it, request something of it.

The page, the API and the command all come through here, so that a name, a refusal and a hint
are the same wherever they are read.
"""

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from fairlead import errors
from fairlead.access import intake, scopes
from fairlead.areas.rollouts import detail, projection
from fairlead.areas.rollouts.domain import actions, coordination, names
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.engine import filters, machine, messages, projections, visibility
from fairlead.engine.store import protocol
from fairlead.values import nearest

_CHUNK = 500
_MOST_NAMED = 5
_LONGEST = 200
_PREFIX = f"{ROLLOUT.name}/"
_ONLY_ROLLOUTS = machine.Machines([ROLLOUT])


def find(
    session: protocol.Session, name: str, scope: str = scopes.EVERYWHERE
) -> visibility.StreamView:
    """The stream behind a name: the whole name, or NAMESPACE/NAME or NAME where only one has it."""
    exact = _stream(session, name)
    if exact is not None and scopes.covers(scope, exact.name):
        return exact
    every = list(_active(session, scope))
    found = [view for view in every if _is_called(view.name, name)]
    if not found:
        titles = (names.title(view.name.removeprefix(_PREFIX)) for view in every)
        meant = nearest(name[:_LONGEST], itertools.islice(titles, _CHUNK))
        guess = f"did you mean {meant}? " if meant else ""
        raise errors.NotFound(
            f"no such rollout: {name[:_LONGEST]}",
            hint=f"{guess}list them with fairlead get rollouts",
        )
    if len(found) > 1:
        whole = ", ".join(view.name.removeprefix(_PREFIX) for view in found[:_MOST_NAMED])
        raise errors.Conflict(
            f"several rollouts have this name: {name[:_LONGEST]}", hint=f"use one of: {whole}"
        )
    return found[0]


def read(
    session: protocol.Session,
    name: str,
    now: datetime,
    scope: str = scopes.EVERYWHERE,
    run: int | None = None,
) -> detail.Detail:
    """One rollout with everything a page shows of it, and of this run; else of the newest."""
    return _detail(session, find(session, name, scope), now, run)


def told(session: protocol.Session, stream: messages.StreamName, now: datetime) -> detail.Detail:
    """One whose stream is known, also when it was deleted a moment ago."""
    return _detail(session, visibility.stream(session, stream), now)


def listed(
    session: protocol.Session,
    limit: int,
    before: int | None = None,
    scope: str = scopes.EVERYWHERE,
    where: str = "",
) -> tuple[list[projection.Summary], int | None]:
    """Rollouts, the newest first, and the number to go on from where there are more."""
    fits = filters.where(where, _ONLY_ROLLOUTS, ROLLOUT.name)
    which = visibility.StreamFilter(
        ROLLOUT.name, ended=False, before=before, limit=limit, scope=scope, where=fits
    )
    found = visibility.streams(session, which)
    further = found[-1].number if found.more else None
    now = datetime.now(UTC)
    return [sheet.summary(now) for sheet in _sheets(session, found)], further


def request(
    stream: messages.StreamName,
    action: actions.ActionRequest,
    command_id: messages.CommandId | None = None,
) -> intake.Request:
    """A person's action as a request for the intake."""
    command = actions.command(action)
    return intake.Request(stream, type(command).__name__, msgspec.to_builtins(command), command_id)


@contextlib.contextmanager
def in_place() -> Iterator[None]:
    """Around a verb that may not fit now: a refusal becomes a Conflict with what would work."""
    try:
        yield
    except errors.Rejected as error:
        if type(error) is not errors.Rejected:
            raise
        # Well-formed as it is, it can only be out of place: the same words may fit later.
        raise errors.Conflict(error.message, hint=error.hint) from error


def _detail(
    session: protocol.Session, view: visibility.StreamView, now: datetime, run: int | None = None
) -> detail.Detail:
    told = detail.of(_sheets(session, [view])[0], now, run)
    return dataclasses.replace(told, unserved=visibility.unserved(session, view, now))


def _stream(session: protocol.Session, name: str) -> visibility.StreamView | None:
    try:
        view = visibility.stream(session, coordination.rollout_stream(name))
    except errors.Rejected:
        # Not there, or no name that a stream could have; the search finds those that are.
        return None
    return None if view.ended_at is not None else view


def _active(session: protocol.Session, scope: str) -> Iterator[visibility.StreamView]:
    before: int | None = None
    while True:
        which = visibility.StreamFilter(
            ROLLOUT.name, ended=False, before=before, limit=_CHUNK, scope=scope
        )
        page = visibility.streams(session, which)
        yield from page
        if not page.more:
            return
        before = page[-1].number


def _is_called(stream: str, name: str) -> bool:
    title = names.title(stream.removeprefix(_PREFIX))
    return name in (title, title.rpartition("/")[2])


def _sheets(
    session: protocol.Session, views: Sequence[visibility.StreamView]
) -> list[projection.Sheet]:
    """Each stream's sheet as it stands now: the kept row, and what it does not know yet."""
    streams = [view.name for view in views]
    kept = dict(projections.rows_of(session, projection.NAME, streams)) if streams else {}
    return [_caught_up(session, view, projection.read(kept.get(view.name))) for view in views]


def _caught_up(
    session: protocol.Session, view: visibility.StreamView, sheet: projection.Sheet
) -> projection.Sheet:
    if sheet.seq + 1 < view.kept_from and (kept := visibility.snapshot(session, view)):
        # No row yet, and the first events are in the archive.
        sheet = projection.restored(kept)
    while sheet.seq < view.version:
        missed = visibility.events(session, view.name, sheet.seq, _CHUNK)
        if not missed:
            break
        sheet = projection.follow(sheet, missed)
    return sheet
