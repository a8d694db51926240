"""Where reading commands look: the store itself, or a running control plane."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from fairlead import bootstrap, errors
from fairlead import settings as settings_
from fairlead.engine import library, messages
from fairlead.engine.store import protocol


class Source(Protocol):
    """Something that can be asked for streams and events."""

    def stream(self, name: messages.StreamName) -> library.StreamView: ...

    def streams(self, which: library.StreamFilter) -> Sequence[library.StreamView]: ...

    def events(
        self, name: messages.StreamName, after: int, limit: int
    ) -> Sequence[library.EventView]: ...

    def feed(self, after: library.Place, limit: int) -> Sequence[library.EventView]: ...

    def feed_end(self) -> library.Place: ...


class StoreSource:
    """Reads the store through one session."""

    def __init__(self, session: protocol.Session) -> None:
        self._session = session

    def stream(self, name: messages.StreamName) -> library.StreamView:
        return library.stream(self._session, name)

    def streams(self, which: library.StreamFilter) -> Sequence[library.StreamView]:
        return library.streams(self._session, which)

    def events(
        self, name: messages.StreamName, after: int, limit: int
    ) -> Sequence[library.EventView]:
        return library.events(self._session, name, after, limit)

    def feed(self, after: library.Place, limit: int) -> Sequence[library.EventView]:
        return library.feed(self._session, after, limit)

    def feed_end(self) -> library.Place:
        return library.feed_end(self._session)


@contextlib.contextmanager
def session(chosen: settings_.StoreSettings) -> Iterator[protocol.Session]:
    """A session on the store, which must be there and in the shape we know."""
    kept = existing(chosen, bootstrap.Cast())
    opened = kept.open()
    try:
        yield opened
    finally:
        opened.close()


def existing(chosen: settings_.StoreSettings, players: bootstrap.Cast) -> protocol.Store:
    """The store, refused where it is not there: to look must not create anything."""
    check_there(chosen)
    kept = bootstrap.store(chosen, players)
    if pending := kept.pending_migrations():
        raise errors.Conflict(
            f"the database is not migrated: {', '.join(pending)}",
            hint="run fairlead store migrate",
        )
    return kept


def check_there(chosen: settings_.StoreSettings) -> None:
    file = bootstrap.database_file(chosen)
    if not chosen.database_url and not file.exists():
        raise errors.NotFound(
            f"no database here: {file}",
            hint="start one with fairlead up, or set FAIRLEAD_STATE_DIR or FAIRLEAD_DATABASE_URL",
        )
