"""Connections: kept, given up, trusted, and made through a proxy."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fairlead.errors import Rejected, Unauthorised, Unavailable
from fairlead.kubernetes.client import config
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.client.credentials import Fixed, Identity
from fairlead.kubernetes.client.limits import Limits
from fairlead.kubernetes.client.pool import Pool, Unconnected, endpoint
from fairlead.kubernetes.client.transport import ClientOptions
from fairlead.kubernetes.objects import Key
from fairlead.kubernetes.webhook import certificates
from tests.contract.kubernetes_samples import CONFIG_MAPS, config_map
from tests.fakes.kubernetes.hand_clock import RushingClock

A = Key("default", "a")
PAIR = certificates.make(("127.0.0.1", "api.example"), datetime.now(UTC))
Talk = Callable[["Peer", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Peer:
    """A server on a real socket that remembers the heads of requests, by connection."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self.heads: list[list[str]] = []
        self.port = 0

    @contextlib.asynccontextmanager
    async def serving(self, trust: ssl.SSLContext | None = None) -> AsyncIterator["Peer"]:
        server = await asyncio.start_server(self._meet, "127.0.0.1", 0, ssl=trust)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def head(self, reader: asyncio.StreamReader) -> str:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        for line in head.splitlines():
            name, _, value = line.partition(": ")
            if name == "Content-Length":
                await reader.readexactly(int(value))
        self.heads[-1].append(head)
        return head

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append([])
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            await self._talk(self, reader, writer)
        writer.close()


async def answer(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    await writer.drain()


async def friendly(peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await peer.head(reader)
        await answer(writer)


async def forgetful(peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers once, then closes over the next request, as a server does that was just about to."""
    await peer.head(reader)
    await answer(writer)
    await peer.head(reader)


def secured() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    config.load_certificate(context, PAIR.certificate)
    return context


def client(server: str, **more: object) -> Client:
    options = ClientOptions(Limits(attempts=1), RushingClock().clock())
    return Client(Connection(server, Fixed(), **more), options=options)  # type: ignore[arg-type]  # its fields


def soon() -> float:
    return asyncio.get_running_loop().time() + 10


async def test_calls_one_after_the_other_share_a_connection() -> None:
    async with Peer(friendly).serving() as peer, client(f"http://127.0.0.1:{peer.port}") as ours:
        for _ in range(3):
            await ours.get(CONFIG_MAPS, A)

    assert [len(heads) for heads in peer.heads] == [3]


async def test_a_read_goes_on_over_a_new_connection_where_the_kept_one_was_closed() -> None:
    async with Peer(forgetful).serving() as peer, client(f"http://127.0.0.1:{peer.port}") as ours:
        await ours.get(CONFIG_MAPS, A)
        await ours.get(CONFIG_MAPS, A)

    assert [len(heads) for heads in peer.heads] == [2, 1]


async def test_a_create_is_not_sent_again_where_the_kept_one_was_closed() -> None:
    async with Peer(forgetful).serving() as peer, client(f"http://127.0.0.1:{peer.port}") as ours:
        await ours.get(CONFIG_MAPS, A)
        with pytest.raises(Unavailable):
            await ours.create(CONFIG_MAPS, config_map("default", "a"))

    assert [len(heads) for heads in peer.heads] == [2]


async def test_what_lies_idle_for_long_is_closed_and_not_used() -> None:
    async with Peer(friendly).serving() as peer:
        pool = Pool(f"http://127.0.0.1:{peer.port}", None, None, keep=0.0)
        connection = await pool.connect(None, soon())
        pool.give_back(connection)

        other = await pool.take(None, soon())
        pool.give_back(other)
        await other.gone
        await pool.close()

    assert other is not connection
    assert not connection.is_open


async def test_another_client_certificate_takes_another_connection() -> None:
    trusts = [ssl.create_default_context(cadata=PAIR.authority.decode()) for _ in range(2)]
    async with Peer(friendly).serving(secured()) as peer:
        pool = Pool(f"https://127.0.0.1:{peer.port}", None, None)
        first = await pool.take(trusts[0], soon())
        pool.give_back(first)
        again = await pool.take(trusts[0], soon())
        pool.give_back(again)
        other = await pool.take(trusts[1], soon())
        await pool.close()

    assert again is first
    assert other is not first


async def test_a_server_that_nobody_vouches_for_is_not_spoken_to() -> None:
    stranger = certificates.make(("127.0.0.1",), datetime.now(UTC)).authority
    async with (
        Peer(friendly).serving(secured()) as peer,
        client(f"https://127.0.0.1:{peer.port}", ca=stranger) as ours,
    ):
        with pytest.raises(Unauthorised, match="no trusted connection"):
            await ours.get(CONFIG_MAPS, A)

    assert peer.heads == []


async def test_the_name_in_the_certificate_may_be_told_apart_from_the_address() -> None:
    async with Peer(friendly).serving(secured()) as peer:
        url = f"https://localhost:{peer.port}"
        async with client(url, ca=PAIR.authority, server_name="api.example") as ours:
            await ours.get(CONFIG_MAPS, A)
        async with client(url, ca=PAIR.authority) as ours:
            with pytest.raises(Unauthorised):
                await ours.get(CONFIG_MAPS, A)

    assert len(peer.heads) == 1


async def test_a_path_before_the_api_is_kept() -> None:
    async with (
        Peer(friendly).serving() as peer,
        client(f"http://127.0.0.1:{peer.port}/clusters/one/") as ours,
    ):
        await ours.get(CONFIG_MAPS, A)

    assert peer.heads[0][0].startswith("GET /clusters/one/api/v1/namespaces/default/configmaps/a ")


@pytest.mark.parametrize("token", ["a\r\nX-Evil: yes", "a\nb", "a\x00"])
async def test_a_token_cannot_become_a_header_of_its_own(token: str) -> None:
    async with Peer(friendly).serving() as peer:
        connection = Connection(f"http://127.0.0.1:{peer.port}", Fixed(Identity(token=token)))
        async with Client(connection) as ours:
            with pytest.raises(Unauthorised) as refused:
                await ours.get(CONFIG_MAPS, A)

    assert token not in str(refused.value)
    assert peer.heads == []


async def relay(peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A proxy that opens a way to wherever it is asked."""
    asked = await peer.head(reader)
    host, _, port = asked.split()[1].rpartition(":")
    there, away = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

    async def pump(from_: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        while data := await from_.read(65536):
            to.write(data)
            await to.drain()
        to.close()

    await asyncio.gather(pump(reader, away), pump(there, writer), return_exceptions=True)


@pytest.mark.parametrize("is_secure", [False, True])
async def test_a_proxy_opens_the_way_and_hears_nothing(
    is_secure: bool,  # noqa: FBT001  both cases
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_bytes(PAIR.authority)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    async with (
        Peer(friendly).serving(secured()) as server,
        Peer(relay).serving(secured() if is_secure else None) as proxy,
    ):
        by = f"http{'s' if is_secure else ''}://we:pass%3Aword@127.0.0.1:{proxy.port}"
        url = f"https://127.0.0.1:{server.port}"
        async with client(url, ca=PAIR.authority, proxy=by) as ours:
            for _ in range(2):
                await ours.get(CONFIG_MAPS, A)

    permit = base64.b64encode(b"we:pass:word").decode()
    assert [len(heads) for heads in proxy.heads] == [1]
    assert f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n" in proxy.heads[0][0]
    assert f"Proxy-Authorization: Basic {permit}\r\n" in proxy.heads[0][0]
    assert [len(heads) for heads in server.heads] == [2]
    assert "Proxy-Authorization" not in "".join(server.heads[0])


async def test_a_proxy_passes_on_what_is_not_secret() -> None:
    async with Peer(friendly).serving() as proxy:
        by = f"http://we:us@127.0.0.1:{proxy.port}"
        async with client("http://api.example:8080", proxy=by) as ours:
            await ours.get(CONFIG_MAPS, A)

    head = proxy.heads[0][0]
    assert head.startswith("GET http://api.example:8080/api/v1/namespaces/default/configmaps/a ")
    assert "Host: api.example:8080\r\nProxy-Authorization: Basic " in head


async def test_a_proxy_that_refuses_is_no_connection() -> None:
    async def refuse(
        peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await peer.head(reader)
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    async with Peer(refuse).serving() as proxy:
        pool = Pool("https://api.example", None, f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(Unconnected, match="407"):
            await pool.take(ssl.create_default_context(), soon())
        await pool.close()


@pytest.mark.parametrize("url", ["10.0.0.1:6443", "ftp://a", "https://", "https://a:b", ""])
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(Rejected, match="not the URL"):
        endpoint(url)


def test_an_endpoint_is_named_as_http_wants_it() -> None:
    assert endpoint("https://api.example/").authority == "api.example"
    assert endpoint("https://api.example:80").authority == "api.example:80"
    assert endpoint("http://[::1]:8080").authority == "[::1]:8080"
    assert endpoint("https://[::1]").address == "[::1]:443"
