"""Where commands look: the store itself, or a running control plane."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Protocol

from fairlead import bootstrap, errors
from fairlead import settings as settings_
from fairlead.cli import remote
from fairlead.domain.rollouts import detail, rows
from fairlead.engine import library, messages
from fairlead.engine.store import protocol
from fairlead.intents import requests

_PAGE = 500
# A person who watches does not notice a quarter of a second; the store hardly notices it.
_PAUSE = 0.25


class Source(Protocol):
    """Something that can be asked for streams and events."""

    def stream(self, name: messages.StreamName) -> library.StreamView: ...

    def streams(self, which: library.StreamFilter) -> Sequence[library.StreamView]: ...

    def events(
        self, name: messages.StreamName, after: int, limit: int
    ) -> Sequence[library.EventView]: ...

    def effects(
        self, name: messages.StreamName | None, limit: int, *, dead: bool | None
    ) -> Sequence[library.EffectView]: ...

    def live(
        self, after: library.Place | None, name: messages.StreamName | None
    ) -> Iterator[library.EventView]:
        """Events of all streams or of one, from a place or from now on, without end."""

    def rollouts(self, limit: int) -> Sequence[rows.Summary]: ...

    def rollout(self, name: str) -> detail.Detail: ...


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

    def effects(
        self, name: messages.StreamName | None, limit: int, *, dead: bool | None
    ) -> Sequence[library.EffectView]:
        return library.effects(self._session, dead=dead, name=name, limit=limit)

    def live(
        self, after: library.Place | None, name: messages.StreamName | None
    ) -> Iterator[library.EventView]:
        # Looked up before anything is said of watching: what comes after that is new.
        place = library.feed_end(self._session) if after is None else after
        return self._fed(place, name)

    def rollouts(self, limit: int) -> Sequence[rows.Summary]:
        return requests.listed(self._session, limit)[0]

    def rollout(self, name: str) -> detail.Detail:
        return requests.look(self._session, name, datetime.now(UTC))

    def _fed(
        self, place: library.Place, name: messages.StreamName | None
    ) -> Iterator[library.EventView]:
        while True:
            page = library.feed(self._session, place, _PAGE)
            yield from (each for each in page if name in (None, each.stream))
            if page:
                place = page[-1].place
            if len(page) < _PAGE:
                time.sleep(_PAUSE)


@contextlib.contextmanager
def source(chosen: settings_.Settings) -> Iterator[Source]:
    """The store, or the control plane where one is named."""
    if (asked := server(chosen.web)) is not None:
        yield asked
        return
    with session(chosen.store) as opened:
        yield StoreSource(opened)


def server(chosen: settings_.WebSettings) -> remote.ServerSource | None:
    """The control plane that the settings name, if they name one."""
    if not chosen.server:
        return None
    return remote.ServerSource(remote.parse_server(chosen.server, chosen.token))


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
