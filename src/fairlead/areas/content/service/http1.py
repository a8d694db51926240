"""HTTP/1.1 as far as finished answers need it: heads of requests in, bytes out, no task for either.

bytes ──► a whole head, well-formed ──► Responder ──► head and body, written at once
A request with a body is answered and its connection ended, so that nothing behind a head is ever
taken for another request. Who says nothing for a while, or does not read, loses its place.
"""

import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncIterator, Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import Protocol
from urllib.parse import unquote

Headers = list[tuple[str, str]]
_END = b"\r\n\r\n"
_MOST_HEAD = 32 * 1024
_MOST_HEADERS = 100
_PIECE = 64 * 1024
_BACKLOG = 1024
_SILENCE_SECONDS = 10.0
_STOP_SECONDS = 5.0
_TICK_SECONDS = 1.0
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEAD = re.compile(
    rb"(?P<method>%b) (?P<target>[!-~]+) HTTP/1\.(?P<minor>[01])(?:\r\n%b:[^\r\n\0]*)*"
    % (_TOKEN, _TOKEN)
)


class Responder(Protocol):
    """Has an answer at once to whatever is asked."""

    draining: bool
    """Then each connection ends with its answer."""

    def respond(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[bytes, bytes]:
        """Head and body; names of headers are in small letters."""
        ...


def head(status: int, headers: Headers) -> bytes:
    """All but what differs from one answer to the next, and its end."""
    lines = (f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{''.join(lines)}".encode("latin-1")


def refusal(status: int) -> tuple[bytes, bytes]:
    """Of what is no request of this protocol."""
    return head(status, [("content-length", "0")]), b""


@contextlib.asynccontextmanager
async def serving(
    responder: Responder,
    listening: socket.socket,
    most: int,
    silence_seconds: float = _SILENCE_SECONDS,
) -> AsyncIterator[asyncio.Task[None]]:
    """Answer at most so many connections until the block is left; open requests may end then.

    The task ends before the block only by a fault of ours.
    """
    loop = asyncio.get_running_loop()
    held = _Held(responder, most, silence_seconds)
    server = await loop.create_server(lambda: _Connection(held), sock=listening, backlog=_BACKLOG)
    ticking = asyncio.create_task(held.tick())
    try:
        yield ticking
    finally:
        server.close()
        await held.end()
        ticking.cancel()
        await asyncio.wait({ticking})


class _Held:
    """All connections, the one that was silent for the longest time first."""

    def __init__(self, responder: Responder, most: int, silence_seconds: float) -> None:
        self.responder = responder
        self.date = b""
        self._most = most
        self._silence = silence_seconds
        self._now = asyncio.get_running_loop().time
        self._open: dict[_Connection, float] = {}
        self._tell_date()

    def seen(self, one: "_Connection") -> None:
        self._open.pop(one, None)
        self._open[one] = self._now()
        if len(self._open) > self._most:
            # A flood of silent ones must not keep the next one out.
            self.forget(next(iter(self._open))).abort()

    def forget(self, one: "_Connection") -> "_Connection":
        self._open.pop(one, None)
        return one

    async def tick(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self._tell_date()
            over = self._now() - self._silence
            for one in [each for each, at in self._open.items() if at <= over]:
                if one.reads_on():
                    self.seen(one)
                else:
                    self.forget(one).abort()

    async def end(self) -> None:
        """Who waits for nothing is let go at once, others within some seconds."""
        self.responder.draining = True
        until = self._now() + _STOP_SECONDS
        while self._open and self._now() < until:
            for one in [each for each in self._open if each.idle]:
                self.forget(one).abort()
            await asyncio.sleep(0.01)
        for one in list(self._open):
            one.abort()

    def _tell_date(self) -> None:
        self.date = f"date: {formatdate(usegmt=True)}\r\n".encode()


class _Connection(asyncio.Protocol):
    def __init__(self, held: _Held) -> None:
        self._held = held
        self._came = b""
        self._rest = memoryview(b"")
        self._written = 0
        self._full = self._over = False

    @property
    def idle(self) -> bool:
        """Whether nothing is asked for and nothing is on its way."""
        return not (self._came or self._rest or self._transport.get_write_buffer_size())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # Whatever the kernel does not take is waited for, so that each holds one answer at most.
        transport.set_write_buffer_limits(high=0)
        self._held.seen(self)

    def connection_lost(self, _: Exception | None) -> None:
        self._held.forget(self)

    def data_received(self, data: bytes) -> None:
        if not self._over:
            self._came = self._came + data if self._came else data
            self._proceed()

    def pause_writing(self) -> None:
        self._full = True
        # Else a client that asks without end, and reads nothing, would fill the memory.
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._full = False
        self._write_rest()
        if not self._full:
            self._transport.resume_reading()
            self._proceed()

    def abort(self) -> None:
        self._transport.abort()

    def reads_on(self) -> bool:
        """Whether a long answer went on since it was asked last."""
        left = len(self._rest) + self._transport.get_write_buffer_size()
        before, self._written = self._written, left
        return 0 < left != before

    def _proceed(self) -> None:
        came, at = self._came, 0
        while at < len(came) and not (self._full or self._over or self._transport.is_closing()):
            at += 2 if came.startswith(b"\r\n", at) else 0
            end = came.find(_END, at, at + _MOST_HEAD + len(_END))
            asked = came[at : at + _MOST_HEAD + 1 if end < 0 else end]
            if len(asked) > _MOST_HEAD or asked.count(b"\r\n") > _MOST_HEADERS:
                self._answer(*refusal(431), last=True)
            elif end < 0:
                break
            else:
                at = end + len(_END)
                self._request(asked)
        # Once for all that were read: each on its own would copy what a flood sends many times.
        self._came = b"" if self._over else came[at:]

    def _request(self, asked: bytes) -> None:
        found = _HEAD.fullmatch(asked)
        if found is None:
            self._answer(*refusal(400), last=True)
            return
        headers: dict[str, str] = {}
        for line in asked.decode("utf-8", "surrogateescape").split("\r\n")[1:]:
            name, _, value = line.partition(":")
            name, value = name.lower(), value.strip(" \t")
            headers[name] = f"{headers[name]},{value}" if name in headers else value
        last = (
            found["minor"] == b"0"
            or "transfer-encoding" in headers
            or headers.get("content-length", "0") != "0"
            or "close" in headers.get("connection", "").lower()
        )
        responder = self._held.responder
        method, path = found["method"].decode(), _path(found["target"].decode())
        self._answer(*responder.respond(method, path, headers), last=last or responder.draining)

    def _answer(self, first: bytes, body: bytes, *, last: bool) -> None:
        self._held.seen(self)
        self._over = last
        closing = b"connection: close\r\n" if last else b""
        if len(body) <= _PIECE:
            self._transport.write(b"".join((first, self._held.date, closing, b"\r\n", body)))
        else:
            self._transport.write(b"".join((first, self._held.date, closing, b"\r\n")))
            self._rest = memoryview(body)
        self._write_rest()

    def _write_rest(self) -> None:
        """In pieces: what waits for a slow reader is not held once more for each."""
        while self._rest and not self._full:
            piece, self._rest = self._rest[:_PIECE], self._rest[_PIECE:]
            self._transport.write(piece)
        if self._over and not self._rest:
            # The rest of what it sends is read and forgotten: a reset would cost it the answer.
            self._transport.write_eof()


def _path(target: str) -> str:
    path = target.partition("?")[0]
    if path[:7].lower() == "http://":
        path = f"/{path[7:].partition('/')[2]}"
    return unquote(path) if "%" in path else path
