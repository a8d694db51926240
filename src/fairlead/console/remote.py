"""A running control plane as a source: its JSON API, asked with the standard library.

No redirect is followed and no proxy is asked, so that a token goes to the server that was
named and to nobody else; and it goes there only encrypted, or within this machine.
"""

import contextlib
import http.client
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

import fairlead
from fairlead import errors, values
from fairlead.console.api_shapes import Effect, Event, Moved, Page, Steered
from fairlead.engine import messages, visibility
from fairlead.engine.store import protocol

_API = "/api/v1"
SECONDS = 30.0
"""How long a server may take to answer."""

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
    if token and not server.secure and not values.is_loopback(host):
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

    def __init__(self, server: Server, seconds: float = SECONDS) -> None:
        self._server = server
        self._seconds = seconds

    def stream(self, name: messages.StreamName) -> visibility.StreamView:
        return self.get(visibility.StreamView, f"/streams/{quote(name)}")

    def streams(
        self, which: visibility.StreamFilter, where: str = ""
    ) -> Sequence[visibility.StreamView]:
        """Those that the filter and what was typed after --where fit."""
        asked = {
            "machine": which.machine,
            "ended": _flag(value=which.ended),
            "before": which.before,
            "where": where or None,
        }
        return self._paged(visibility.StreamView, "/streams", asked, which.limit)

    def events(
        self, name: messages.StreamName, after: int, limit: int
    ) -> Sequence[visibility.EventView]:
        wanted = {"after": after, "limit": min(_PAGE, limit)}
        page = self.get(Page[Event], f"/streams/{quote(name)}/events", wanted)
        return [each.view() for each in page.items]

    def live(
        self, after: visibility.Place | None, name: messages.StreamName | None
    ) -> Iterator[visibility.EventView]:
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
    ) -> Sequence[visibility.EffectView]:
        asked = {"dead": _flag(value=dead), "stream": name, "after": None}
        found = self._paged(Effect, "/effects", asked, limit)
        return [each.view() for each in found]

    def retry(self, key: messages.EffectKey) -> None:
        with self._answer(f"/effects/{_id(key)}/retry", body=b""):
            pass

    def discard(self, key: messages.EffectKey) -> None:
        with self._answer(f"/effects/{_id(key)}/discard", body=b""):
            pass

    def read(
        self,
        local: Callable[[protocol.Session], T],  # noqa: ARG002 - the store's way
        remote: Callable[["ServerSource"], T],
    ) -> T:
        return remote(self)

    def listed(self, shape: type[T], path: str, limit: int, where: str = "") -> list[T]:
        """Everything at a path that the API gives page by page, and that a filter fits."""
        return self._paged(shape, path, {"before": None, "where": where or None}, limit)

    def steer(
        self, thing: str, verb: str, words: Mapping[str, Any], id_: messages.CommandId
    ) -> messages.Receipt:
        """Ask something of a thing, such as /rollouts/shop; the token tells who asks."""
        return self.post(Steered, f"{thing}/{verb}", {**words, "id": id_}).receipt

    def timers(self, limit: int, *, dead: bool | None) -> list[visibility.TimerView]:
        wanted = {"dead": _flag(value=dead), "limit": limit}
        return self.get(list[visibility.TimerView], "/timers", wanted)

    def change_timer(self, stream: messages.StreamName, name: str, verb: str) -> None:
        """Retry or discard a dead timer."""
        body = msgspec.json.encode({"stream": stream, "name": name})
        with self._answer(f"/timers/{verb}", body=body):
            pass

    def queues(self) -> list[visibility.QueueView]:
        return self.get(list[visibility.QueueView], "/queues")

    def move(self, stream: messages.StreamName, queue: str) -> int:
        """How many effects went along."""
        return self.post(Moved, f"/streams/{quote(stream)}/queue", {"queue": queue}).effects

    def submit(
        self, stream: messages.StreamName, command: Mapping[str, Any], id_: messages.CommandId
    ) -> messages.Receipt:
        """Hand in a command: its type, its data, and the queue of a stream that it creates."""
        path = f"/streams/{quote(stream)}/commands"
        return self.post(messages.Receipt, path, {**command, "id": id_})

    def post(self, shape: type[T], path: str, content: Any) -> T:
        body = msgspec.json.encode(content)
        with self._answer(path, body=body) as response, self._translated():
            return msgspec.json.decode(response.read(_MOST_BYTES), type=shape)

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

    def get(self, shape: type[T], path: str, wanted: Mapping[str, Any] | None = None) -> T:
        with self._answer(path, wanted) as response, self._translated():
            # A longer answer is cut, and a cut one makes no sense.
            return msgspec.json.decode(response.read(_MOST_BYTES), type=shape, strict=False)

    def _paged(self, shape: type[T], path: str, asked: Mapping[str, Any], limit: int) -> list[T]:
        """All pages of a list, up to a limit; `asked` names the place that a page begins at."""
        place = next(name for name in asked if name in ("before", "after"))
        wanted, found = dict(asked), list[T]()
        while len(found) < limit:
            wanted["limit"] = min(_PAGE, limit - len(found))
            page = self.get(Page[shape], path, wanted)  # type: ignore[valid-type]  # msgspec reads it
            found += page.items
            if page.next is None:
                break
            wanted[place] = page.next
        return found

    def _listen(
        self, after: visibility.Place | None, name: messages.StreamName | None
    ) -> Iterator[visibility.EventView]:
        wanted = {"after": after, "stream": name}
        with self._answer("/feed/live", wanted) as response, self._translated():
            while line := response.readline(_MOST_BYTES):
                if line.startswith(b"data: "):
                    yield msgspec.json.decode(line.removeprefix(b"data: "), type=Event).view()

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
        return kind(server.host, server.port, timeout=self._seconds)

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
            if problems := told.get("problems"):
                return errors.Invalid(msgspec.convert(problems, list[errors.Problem]))
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
                f"the server sent an invalid answer: {self._server.url}: {error}",
                hint="check that FAIRLEAD_SERVER names a fairlead control plane",
            ) from error


def _id(key: messages.EffectKey) -> str:
    return f"{key.stream}.{key.seq}.{key.n}"


def _flag(*, value: bool | None) -> str | None:
    """As a query has it."""
    return None if value is None else str(value).lower()
