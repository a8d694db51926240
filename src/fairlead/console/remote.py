"""A running control plane as a source: its JSON API, asked with the standard library.

No redirect is followed and no proxy is asked, so that a token goes to the server that was
named and to nobody else; and it goes there only encrypted, or within this machine.
"""

import contextlib
import http.client
import ipaddress
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

import fairlead
from fairlead import errors
from fairlead.domain.rollouts import choices, detail, rows
from fairlead.engine import library, messages

_API = "/api/v1"
_SECONDS = 30.0
_MOST_BYTES = 64 * 1024 * 1024
_PAGE = 500
_TRIES = 30
_PAUSE = 1.0
_FATES: Mapping[int, type[errors.FairleadError]] = {
    400: errors.Rejected,
    401: errors.Unauthorised,
    403: errors.Unauthorised,
    404: errors.NotFound,
    409: errors.Conflict,
    413: errors.Rejected,
}
_BROKEN = (OSError, http.client.HTTPException)


T = TypeVar("T")


class _Streams(msgspec.Struct):
    """A page of streams."""

    items: list[library.StreamView]
    next: int | None


class _Event(msgspec.Struct):
    """An event as the API writes it."""

    stream: messages.StreamName
    seq: int
    type: str
    version: int
    data: Any
    cause: str
    at: datetime
    place: str

    def view(self) -> library.EventView:
        return library.EventView(
            self.stream,
            self.seq,
            self.type,
            self.version,
            self.data,
            self.cause,
            self.at,
            library.parse_place(self.place),
        )


class _Events(msgspec.Struct):
    """A page of events."""

    items: list[_Event]


class _Effect(msgspec.Struct):
    """An effect as the API writes it."""

    id: str
    stream: messages.StreamName
    type: str
    data: Any
    attempts: int
    due_at: datetime
    held: bool
    dead_at: datetime | None
    error: str | None

    def view(self) -> library.EffectView:
        return library.EffectView(
            self.stream,
            library.parse_effect_id(self.id),
            self.type,
            self.data,
            self.attempts,
            self.due_at,
            self.held,
            self.dead_at,
            self.error,
        )


class _Effects(msgspec.Struct):
    """A page of effects."""

    items: list[_Effect]
    next: str | None = None


class _Rollouts(msgspec.Struct):
    """A page of rollouts."""

    items: list[rows.Summary]
    next: int | None


class _Steered(msgspec.Struct):
    """What became of a verb."""

    receipt: "_Receipt"


class _Receipt(msgspec.Struct):
    """The recorded answer to a command."""

    stream: messages.StreamName
    first: int
    last: int
    duplicate: bool


@dataclass(frozen=True, slots=True)
class Server:
    """Where the control plane answers, and what it is shown."""

    secure: bool
    host: str
    port: int | None
    path: str
    token: str

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        return f"{'https' if self.secure else 'http'}://{host}{port}{self.path}"


def parse_server(text: str, token: str) -> Server:
    """FAIRLEAD_SERVER and FAIRLEAD_TOKEN, refused where the token would travel in the open."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https") or parts.username or parts.query:
        raise errors.Rejected(
            "malformed setting FAIRLEAD_SERVER: not an http:// or https:// URL",
            hint="use the address that fairlead up printed, such as http://127.0.0.1:8600",
        )
    server = Server(parts.scheme == "https", host, port, parts.path.rstrip("/"), token)
    if token and not server.secure and not _is_here(host):
        raise errors.Rejected(
            f"refusing to send a token unencrypted to another machine: {server.url}",
            hint="use https://, or unset FAIRLEAD_TOKEN",
        )
    if not (token.isascii() and token.isprintable()):
        raise errors.Rejected(
            "malformed setting FAIRLEAD_TOKEN: (not shown)", hint="copy it again, without breaks"
        )
    return server


class ServerSource:
    """Asks a control plane what the store would be asked."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def stream(self, name: messages.StreamName) -> library.StreamView:
        return self._get(library.StreamView, f"/streams/{quote(name)}")

    def streams(self, which: library.StreamFilter) -> Sequence[library.StreamView]:
        found: list[library.StreamView] = []
        before = which.before
        while len(found) < which.limit:
            wanted = {
                "machine": which.machine,
                "ended": None if which.ended is None else str(which.ended).lower(),
                "before": before,
                "limit": min(_PAGE, which.limit - len(found)),
            }
            page = self._get(_Streams, "/streams", wanted)
            found += page.items
            if page.next is None:
                break
            before = page.next
        return found

    def events(
        self, name: messages.StreamName, after: int, limit: int
    ) -> Sequence[library.EventView]:
        wanted = {"after": after, "limit": min(_PAGE, limit)}
        page = self._get(_Events, f"/streams/{quote(name)}/events", wanted)
        return [each.view() for each in page.items]

    def live(
        self, after: library.Place | None, name: messages.StreamName | None
    ) -> Iterator[library.EventView]:
        """The server's live feed; a line that breaks is taken up where it broke."""
        tries = 0
        while True:
            try:
                for event in self._listen(after, name):
                    yield event
                    after, tries = event.place, 0
            except errors.Unavailable:
                tries += 1
                if after is None or tries > _TRIES:
                    raise
            time.sleep(_PAUSE)

    def effects(
        self, name: messages.StreamName | None, limit: int, *, dead: bool | None
    ) -> Sequence[library.EffectView]:
        asked = {"dead": None if dead is None else str(dead).lower(), "stream": name}
        found: list[library.EffectView] = []
        after = None
        while len(found) < limit:
            wanted = {**asked, "after": after, "limit": min(_PAGE, limit - len(found))}
            page = self._get(_Effects, "/effects", wanted)
            found += [each.view() for each in page.items]
            if page.next is None:
                break
            after = page.next
        return found

    def retry(self, key: messages.EffectKey) -> None:
        with self._answer(f"/effects/{_id(key)}/retry", body=b""):
            pass

    def discard(self, key: messages.EffectKey) -> None:
        with self._answer(f"/effects/{_id(key)}/discard", body=b""):
            pass

    def rollouts(self, limit: int) -> Sequence[rows.Summary]:
        found: list[rows.Summary] = []
        before = None
        while len(found) < limit:
            wanted = {"before": before, "limit": min(_PAGE, limit - len(found))}
            page = self._get(_Rollouts, "/rollouts", wanted)
            found += page.items
            if page.next is None:
                break
            before = page.next
        return found

    def rollout(self, name: str) -> detail.Detail:
        return self._get(detail.Detail, f"/rollouts/{quote(name)}")

    def steer(self, name: str, wish: choices.Wish, id_: messages.CommandId) -> messages.Receipt:
        """The server knows who asks by the token."""
        body = msgspec.json.encode({"why": wish.why, "revision": wish.revision, "id": id_})
        path = f"/rollouts/{quote(name)}/{wish.verb}"
        with self._answer(path, body=body) as response, self._translated():
            told = msgspec.json.decode(response.read(_MOST_BYTES), type=_Steered).receipt
            return messages.Receipt(told.stream, told.first, told.last, told.duplicate)

    def submit(
        self, stream: messages.StreamName, type_: str, fields: Any, id_: messages.CommandId
    ) -> messages.Receipt:
        body = msgspec.json.encode({"type": type_, "data": fields, "id": id_})
        path = f"/streams/{quote(stream)}/commands"
        with self._answer(path, body=body) as response, self._translated():
            told = msgspec.json.decode(response.read(_MOST_BYTES), type=_Receipt)
            return messages.Receipt(told.stream, told.first, told.last, told.duplicate)

    def deploy(self, content: Any) -> dict[str, Any]:
        """Hand a workload in; what became of it, as the API tells it."""
        body = msgspec.json.encode(content)
        with self._answer("/workloads", body=body) as response, self._translated():
            return msgspec.json.decode(response.read(_MOST_BYTES), type=dict[str, Any])

    def answers(self) -> bool:
        """Whether anybody listens there."""
        connection = self._connection()
        try:
            connection.connect()
        except OSError:
            return False
        finally:
            connection.close()
        return True

    def _get(self, shape: type[T], path: str, wanted: Mapping[str, Any] | None = None) -> T:
        with self._answer(path, wanted) as response, self._translated():
            # A longer answer is cut, and a cut one makes no sense.
            return msgspec.json.decode(response.read(_MOST_BYTES), type=shape, strict=False)

    def _listen(
        self, after: library.Place | None, name: messages.StreamName | None
    ) -> Iterator[library.EventView]:
        wanted = {"after": after, "stream": name}
        with self._answer("/feed/live", wanted) as response, self._translated():
            while line := response.readline(_MOST_BYTES):
                if line.startswith(b"data: "):
                    yield msgspec.json.decode(line.removeprefix(b"data: "), type=_Event).view()

    @contextlib.contextmanager
    def _answer(
        self, path: str, wanted: Mapping[str, Any] | None = None, body: bytes | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """The answer to a GET, or to a POST where there is a body, however empty."""
        given = {name: value for name, value in (wanted or {}).items() if value is not None}
        target = f"{self._server.path}{_API}{path}" + (f"?{urlencode(given)}" if given else "")
        connection = self._connection()
        try:
            with self._translated():
                method = "GET" if body is None else "POST"
                connection.request(method, target, body, self._headers())
                response = connection.getresponse()
            if response.status not in (http.client.OK, http.client.NO_CONTENT):
                raise self._refusal(response)
            yield response
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        server = self._server
        kind = http.client.HTTPSConnection if server.secure else http.client.HTTPConnection
        return kind(server.host, server.port, timeout=_SECONDS)

    def _headers(self) -> dict[str, str]:
        said = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"fairlead/{fairlead.__version__}",
        }
        token = self._server.token
        return said | ({"Authorization": f"Bearer {token}"} if token else {})

    def _refusal(self, response: http.client.HTTPResponse) -> errors.FairleadError:
        """The server's own error, with its hint where it gave one."""
        fate = _FATES.get(response.status, errors.Unavailable)
        with contextlib.suppress(*_BROKEN, msgspec.MsgspecError, KeyError, TypeError):
            told = msgspec.json.decode(response.read(_MOST_BYTES))["error"]
            return fate(str(told["message"]), hint=str(told["hint"]))
        return fate(
            f"the server answered {response.status}: {self._server.url}",
            hint="check that FAIRLEAD_SERVER names a fairlead control plane",
        )

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except _BROKEN as error:
            raise errors.Unavailable(
                f"the server did not answer: {self._server.url}: {error}",
                hint="check FAIRLEAD_SERVER and that fairlead up runs there",
            ) from error
        except msgspec.MsgspecError as error:
            raise errors.Unavailable(
                f"the server's answer makes no sense: {self._server.url}: {error}",
                hint="check that FAIRLEAD_SERVER names a fairlead control plane",
            ) from error


def _id(key: messages.EffectKey) -> str:
    return f"{key.stream}.{key.seq}.{key.n}"


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
