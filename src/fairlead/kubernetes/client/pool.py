"""Connections to one API server: how they are made, kept and taken again.

Beneath the transport. A connection is made directly or through a proxy, carries one call at a
time, and is kept for the next one for a while.
"""

import asyncio
import base64
import dataclasses
import functools
import math
import socket
import ssl
import urllib.parse
from http import HTTPStatus

from fairlead.errors import Rejected
from fairlead.kubernetes.client.connection import HttpConnection

# Shorter than balancers in between keep an idle connection, or we would send into closed ones.
_KEEP_SECONDS = 15.0
_CLOSE_SECONDS = 2.0
_PORTS = {"http": 80, "https": 443}


class Unconnected(ConnectionError):
    """No connection came about, so nobody can have acted on the request."""


class Distrusted(Exception):
    """The two sides do not trust each other's certificates, or speak no common TLS."""


@dataclasses.dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a URL leads."""

    secure: bool
    host: str
    port: int
    path: str = ""
    userinfo: str = dataclasses.field(default="", repr=False)

    @property
    def authority(self) -> str:
        """The address as a request names it."""
        return self.address.removesuffix(":443" if self.secure else ":80")

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def endpoint(url: str) -> Endpoint:
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
        host = (parts.hostname or "").encode("idna").decode()
    except (ValueError, KeyError) as error:
        raise _unfit(url) from error
    if not host:
        raise _unfit(url)
    userinfo = parts.netloc.rpartition("@")[0]
    path = urllib.parse.quote(parts.path.rstrip("/"), safe="/%")
    return Endpoint(parts.scheme == "https", host, port, path, userinfo)


class Pool:
    """Connections to one endpoint, each with the TLS settings that it was made with."""

    def __init__(
        self, server: str, server_name: str | None, proxy: str | None, keep: float = _KEEP_SECONDS
    ) -> None:
        self.server = endpoint(server)
        self.proxy = endpoint(proxy) if proxy else None
        self._server_name = server_name or self.server.host
        self._keep = keep
        self._idle: list[HttpConnection] = []
        self._all: set[HttpConnection] = set()
        self._sweeping: asyncio.TimerHandle | None = None

    @property
    def is_relayed(self) -> bool:
        """Without TLS a proxy passes each request on by itself, so each says where it goes."""
        return self.proxy is not None and not self.server.secure

    @property
    def greeting(self) -> str:
        """The headers that say where a request goes, and by whose leave."""
        leave = _permit(self.proxy) if self.proxy and self.is_relayed else ""
        return f"Host: {self.server.authority}\r\n{leave}"

    def target(self, path: str) -> str:
        """A path of the API as the first line of a request names it."""
        before = f"http://{self.server.authority}" if self.is_relayed else ""
        return f"{before}{self.server.path}{path}"

    async def take(self, trust: ssl.SSLContext | None, until: float) -> HttpConnection:
        """One that is free, or a new one by this time of the loop."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            # The one used last: those at the front get old, and are swept away.
            connection = self._idle.pop()
            if (
                connection.is_open
                and connection.trust is trust
                and now - connection.idle_since < self._keep
            ):
                return connection
            connection.abort()
        return await self.connect(trust, until)

    def give_back(self, connection: HttpConnection) -> None:
        """Keep it for the next call, where it is still of use."""
        if not connection.is_open:
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._sweeping is None:
            self._sweeping = loop.call_later(self._keep, self._sweep)

    async def connect(self, trust: ssl.SSLContext | None, until: float) -> HttpConnection:
        """A new connection, by this time of the loop."""
        async with asyncio.timeout_at(until):
            try:
                connection = await (
                    self._through(self.proxy, trust) if self.proxy else self._to(trust)
                )
            except ssl.SSLError as error:
                raise Distrusted(str(error)) from error
            except OSError as error:
                raise Unconnected(str(error)) from error
        connection.trust = trust
        return connection

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._idle.clear()
        ending = [connection.gone for connection in self._all]
        for connection in list(self._all):
            connection.abort()
        if ending:
            await asyncio.wait(ending, timeout=_CLOSE_SECONDS)

    async def _to(self, trust: ssl.SSLContext | None) -> HttpConnection:
        return await self._dial(self.server, trust, self._server_name)

    async def _through(self, proxy: Endpoint, trust: ssl.SSLContext | None) -> HttpConnection:
        trusted = ssl.create_default_context() if proxy.secure else None
        connection = await self._dial(proxy, trusted, proxy.host)
        if trust is None:
            return connection
        try:
            return await self._tunnel(connection, proxy, trust)
        except BaseException:
            connection.abort()
            # Half-way between two transports it may never hear of its end.
            self._all.discard(connection)
            raise

    async def _tunnel(
        self, connection: HttpConnection, proxy: Endpoint, trust: ssl.SSLContext
    ) -> HttpConnection:
        where = self.server.address
        asked = f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n{_permit(proxy)}\r\n"
        # Its time is that of the whole connection.
        answer = await connection.begin(asked.encode(), math.inf)
        if answer.status != HTTPStatus.OK:
            raise Unconnected(f"the proxy refused the connection: {answer.status}")
        loop = asyncio.get_running_loop()
        secured = await loop.start_tls(
            connection.transport, connection, trust, server_hostname=self._server_name
        )
        assert secured is not None
        connection.attach(secured)
        return connection

    async def _dial(self, to: Endpoint, trust: ssl.SSLContext | None, name: str) -> HttpConnection:
        transport, connection = await asyncio.get_running_loop().create_connection(
            functools.partial(HttpConnection, self._all.discard),
            to.host,
            to.port,
            ssl=trust,
            server_hostname=name if trust is not None else None,
            happy_eyeballs_delay=0.25,
        )
        self._all.add(connection)
        _keep_alive(transport.get_extra_info("socket"))
        return connection

    def _sweep(self) -> None:
        """End what nobody has used for long: each connection costs some 150 kB."""
        loop = asyncio.get_running_loop()
        oldest = loop.time() - self._keep
        for connection in self._idle:
            if connection.idle_since <= oldest:
                connection.abort()
        self._idle = [connection for connection in self._idle if connection.is_open]
        self._sweeping = loop.call_later(self._keep, self._sweep) if self._idle else None


def _permit(proxy: Endpoint) -> str:
    """The header by which a proxy knows us, where its URL names somebody."""
    if not proxy.userinfo:
        return ""
    plain = urllib.parse.unquote(proxy.userinfo)
    return f"Proxy-Authorization: Basic {base64.b64encode(plain.encode()).decode()}\r\n"


def _keep_alive(made: socket.socket) -> None:
    """Notice a dead peer: a watch may be silent for minutes by right."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _unfit(url: str) -> Rejected:
    shown = url.rpartition("@")[2][:80]
    return Rejected(f"not the URL of a server: {shown}", hint="such as https://10.0.0.1:6443")
