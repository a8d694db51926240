"""A request is a choice among answers that are there already: no framework, no parsing of bodies.

path ──► document ──► channel of who asks ──► answer by version ──► 304, or bytes in an encoding
What is no route is answered as the original's router did.
"""

import posixpath
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import quote

from fairlead.areas.content.domain import go_json
from fairlead.areas.content.domain.population import Channel
from fairlead.areas.content.service import http1, openapi
from fairlead.areas.content.service.answers import JSON
from fairlead.areas.content.service.catalogue import AUTHORIZATION, Catalogue, Channels, Refusal
from fairlead.areas.content.service.http1 import Headers
from fairlead.areas.content.service.metrics import Tally

_READING = frozenset({"GET", "HEAD"})
_LONGEST_HEADER = 8192
_ERROR_TYPE = "application/json; charset=utf-8"
_TEXT_TYPE = "text/plain; charset=utf-8"
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Chooser(Protocol):
    """Says who gets the canary."""

    @property
    def degraded(self) -> str:
        """Why it goes by what it knew last; empty where it is up to date."""
        ...

    def channel(self, identity: str) -> Channel: ...


class Service:
    """The application of one content."""

    def __init__(self, served: Catalogue, population: Chooser) -> None:
        self._served = served
        self._identify = served.identity.identify
        self._header = served.identity.header.lower()
        self._population = population
        self._tally = Tally(served.name)
        self._description = openapi.document(served)
        self.draining = False
        """Then it is not ready, and asks clients to connect elsewhere."""

    def respond(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[bytes, bytes]:
        """One decision per request, so that it cannot mix two states of the population."""
        found = self._served.find(path)
        if found is None:
            return self._other(method, path)
        if method not in _READING:
            return _made(method, 405, [("allow", "GET, HEAD")])
        return self._content(*found, method, headers)

    def _content(
        self, channels: Channels, version: str, method: str, headers: Mapping[str, str]
    ) -> tuple[bytes, bytes]:
        if len(headers.get(self._header, "")) > _LONGEST_HEADER:
            return self._refuse(method, Refusal(431, "Request Header Fields Too Large"))
        identity = self._identify(headers)
        if isinstance(identity, Refusal):
            return self._refuse(method, identity)
        found = channels[self._population.channel(identity)](version)
        if isinstance(found, Refusal):
            return self._refuse(method, found)
        form = found.form(headers.get("accept-encoding", ""))
        known = headers.get("if-none-match", "")
        if known and found.known(known):
            self._tally.served(found, 304)
            return form.unmodified, b""
        self._tally.served(found, 200)
        return form.head, form.body if method == "GET" else b""

    def _other(self, method: str, path: str) -> tuple[bytes, bytes]:
        """Everything that is no content."""
        known = path in self._served.documents or path in {"/metrics", "/readyz", "/healthz"}
        if known and method not in _READING:
            return _made(method, 405, [("allow", "GET, HEAD")])
        if known:
            return self._known(method, path)
        if (better := self._better(path)) is not None:
            location = quote(better, safe="/:@!$&'()*+,;=~")
            body = f'<a href="{location}">Moved Permanently</a>.\n\n'.encode()
            headers = [("location", location), ("content-type", "text/html; charset=utf-8")]
            return _made(method, 301, headers, body if method == "GET" else b"")
        headers = [("content-type", _TEXT_TYPE), ("x-content-type-options", "nosniff")]
        self._tally.refused(404)
        return _made(method, 404, headers, b"404 page not found\n")

    def _known(self, method: str, path: str) -> tuple[bytes, bytes]:
        degraded = self._population.degraded
        if path == "/metrics":
            text = self._tally.text(degraded=bool(degraded))
            return _made(method, 200, [("content-type", _METRICS_TYPE)], text.encode())
        if path in {"/readyz", "/healthz"}:
            ready = not self.draining or path == "/healthz"
            versions = {"stable": self._served.stable, "canary": self._served.canary}
            told = go_json.Ordered(ready=ready, degraded=degraded, **versions)
            body = go_json.encode(told).encode()
            return _made(method, 200 if ready else 503, [("content-type", JSON)], body)
        return _made(method, 200, [("content-type", JSON)], self._description)

    def _better(self, path: str) -> str | None:
        """Where the original's router would send a path that is not clean, or has a slash more."""
        clean = posixpath.normpath(f"/{path.lstrip('/')}")
        if path.endswith("/") and clean != "/":
            if self._route(clean) and path == f"{clean}/":
                return clean
            clean = f"{clean}/"
        return clean if clean != path else None

    def _route(self, path: str) -> bool:
        return self._served.find(path) is not None or path in self._served.documents

    def _refuse(self, method: str, refusal: Refusal) -> tuple[bytes, bytes]:
        self._tally.refused(refusal.status)
        body = f"{go_json.encode({'status': refusal.message})}\n".encode()
        # The other channel may have an answer: no cache in between may keep this one.
        headers = [
            ("content-type", _ERROR_TYPE),
            ("cache-control", "private, no-cache"),
            ("vary", self._served.identity.header),
        ]
        by_token = self._served.identity.header == AUTHORIZATION
        if refusal.status == 401 and by_token:  # noqa: PLR2004 - HTTP's Unauthorized
            headers.append(("www-authenticate", "Bearer"))
        return _made(method, refusal.status, headers, body)


def _made(method: str, status: int, headers: Headers, body: bytes = b"") -> tuple[bytes, bytes]:
    sized = http1.head(status, [*headers, ("content-length", str(len(body)))])
    return sized, b"" if method == "HEAD" else body
