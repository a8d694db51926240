"""Where commands read: the store itself, or a running control plane."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from fairlead import errors
from fairlead import settings as settings_
from fairlead.console import remote
from fairlead.engine import messages, visibility
from fairlead.engine.store import protocol

T = TypeVar("T")
_PAGE = 500
# A person who watches does not notice a quarter of a second; the store hardly notices it.
_PAUSE = 0.25


class Source(Protocol):
    """Something that can be asked for streams and events."""

    def stream(self, name: messages.StreamName) -> visibility.StreamView: ...

    def streams(self, which: visibility.StreamFilter) -> Sequence[visibility.StreamView]: ...

    def events(
        self, name: messages.StreamName, after: int, limit: int
    ) -> Sequence[visibility.EventView]: ...

    def effects(
        self, name: messages.StreamName | None, limit: int, *, dead: bool | None
    ) -> Sequence[visibility.EffectView]: ...

    def live(
        self, after: visibility.Place | None, name: messages.StreamName | None
    ) -> Iterator[visibility.EventView]:
        """Events of all streams or of one, from a place or from now on, without end."""

    def read(
        self,
        local: Callable[[protocol.Session], T],
        remote: Callable[[remote.ServerSource], T],
    ) -> T:
        """What an area keeps of its own: from the store's session, or from the server."""
        ...


class StoreSource:
    """Reads the store through one session."""

    def __init__(self, session: protocol.Session) -> None:
        self._session = session

    def stream(self, name: messages.StreamName) -> visibility.StreamView:
        return visibility.stream(self._session, name)

    def streams(self, which: visibility.StreamFilter) -> Sequence[visibility.StreamView]:
        found = page = visibility.streams(self._session, which)
        while page.more and len(found) < which.limit:
            rest = which.limit - len(found)
            further = dataclasses.replace(which, before=found[-1].number, limit=rest)
            page = visibility.streams(self._session, further)
            found = visibility.Page([*found, *page], more=page.more)
        return found

    def events(
        self, name: messages.StreamName, after: int, limit: int
    ) -> Sequence[visibility.EventView]:
        return visibility.events(self._session, name, after, limit)

    def effects(
        self, name: messages.StreamName | None, limit: int, *, dead: bool | None
    ) -> Sequence[visibility.EffectView]:
        found = page = visibility.effects(self._session, dead=dead, name=name, limit=limit)
        while page.more and len(found) < limit:
            rest, after = limit - len(found), found[-1].key
            page = visibility.effects(self._session, dead=dead, name=name, after=after, limit=rest)
            found = visibility.Page([*found, *page], more=page.more)
        return found

    def live(
        self, after: visibility.Place | None, name: messages.StreamName | None
    ) -> Iterator[visibility.EventView]:
        # Looked up before anything is said of watching: what comes after that is new.
        place = visibility.feed_end(self._session) if after is None else after
        return self._fed(place, name)

    def read(
        self,
        local: Callable[[protocol.Session], T],
        remote: Callable[[remote.ServerSource], T],  # noqa: ARG002 - the server's way
    ) -> T:
        return local(self._session)

    def _fed(
        self, place: visibility.Place, name: messages.StreamName | None
    ) -> Iterator[visibility.EventView]:
        while True:
            page = visibility.feed(self._session, place, _PAGE)
            yield from (each for each in page if name in (None, each.stream))
            if page:
                place = page[-1].place
            if not page.more:
                time.sleep(_PAUSE)


@contextlib.contextmanager
def source(
    opener: "OpensStores", chosen: settings_.Settings, seconds: float = remote.SECONDS
) -> Iterator[Source]:
    """The store, or the control plane where one is named, which must answer in so many seconds."""
    if (asked := server(chosen.web, seconds)) is not None:
        yield asked
        return
    with session(opener, chosen.store) as opened:
        yield StoreSource(opened)


def server(
    chosen: settings_.WebSettings, seconds: float = remote.SECONDS
) -> remote.ServerSource | None:
    """The control plane that the settings name, if they name one."""
    if not chosen.server:
        return None
    return remote.ServerSource(remote.parse_server(chosen.server, chosen.token), seconds)


def control_plane(chosen: settings_.WebSettings) -> remote.ServerSource:
    """The control plane that is named, or the one that answers where ours would."""
    if (named := server(chosen)) is not None:
        return named
    asked = remote.ServerSource(remote.parse_server(f"http://{chosen.listen}", chosen.token))
    if not asked.answers():
        raise errors.Unavailable(
            f"no control plane answers: http://{chosen.listen}",
            hint="start one with fairlead up, or name one with FAIRLEAD_SERVER",
        )
    return asked


def unserved(asked: Source, view: visibility.StreamView) -> str:
    """Why nobody performs what a stream asks; a server says it of the whole queue."""
    now = datetime.now(UTC)

    def of_queue(server: remote.ServerSource) -> str:
        # A token with a scope hears of no queue.
        with contextlib.suppress(errors.Unauthorised):
            mine = [each for each in server.queues() if each.name == view.queue]
            return next((told for each in mine if (told := each.problem(now))), "")
        return ""

    if view.ended_at is not None:
        return ""
    return asked.read(lambda session: visibility.unserved(session, view, now), of_queue)


class OpensStores(Protocol):
    """An installation, as far as it is needed here."""

    def store(self, chosen: settings_.StoreSettings) -> protocol.Store: ...


@contextlib.contextmanager
def session(opener: OpensStores, chosen: settings_.StoreSettings) -> Iterator[protocol.Session]:
    """A session on the store, which must be there and in the shape we know."""
    opened = existing(opener, chosen).open()
    try:
        yield opened
    finally:
        opened.close()


def existing(opener: OpensStores, chosen: settings_.StoreSettings) -> protocol.Store:
    """The store, refused where it is not there: reading must not create anything."""
    check_there(chosen)
    kept = opener.store(chosen)
    if pending := kept.pending_migrations():
        raise errors.Conflict(
            f"the database is not migrated: {', '.join(pending)}",
            hint="run fairlead store migrate",
        )
    return kept


def check_there(chosen: settings_.StoreSettings) -> None:
    file = chosen.database_file
    if not chosen.database_url and not file.exists():
        raise errors.NotFound(
            f"no database here: {file}",
            hint="start one with fairlead up, or set FAIRLEAD_STATE_DIR or FAIRLEAD_DATABASE_URL",
        )
