"""The HTTP server, inside the engine's own process and event loop.

granian's embedded server runs our app on the loop that calls it, so a request reaches the
engine without leaving the process. The listening socket is ours: granian's own would share
its port with anybody (SO_REUSEPORT), and a second control plane on the same port would
silently take half of the requests.
"""

import asyncio
import contextlib
import errno
import os
import resource
import socket
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import structlog
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.net import SocketHolder  # type: ignore[attr-defined]  # meant for its own servers
from granian.server.embed import Server

from fairlead import errors, values

_BACKLOG = 1024
# Whoever connects and says nothing holds a place: there are many, and none is held for long.
_MOST_CONNECTIONS = 16_384
_OTHER_FILES = 512
_SILENCE = timedelta(seconds=10)
_STOP_PATIENCE = timedelta(seconds=5)
_THREADS_PATIENCE = timedelta(seconds=2)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Bind:
    """Where we answer."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        return values.is_loopback(self.host)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def parse_listen(text: str) -> Bind:
    """ADDRESS:PORT, where an IPv6 address stands in brackets."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or port is None or parts.path or parts.username is not None:
        raise errors.Rejected(
            f"not an address to listen on: {text[:80]}",
            hint="use ADDRESS:PORT, such as 127.0.0.1:8600 or [::1]:8600",
        )
    return Bind(host, port)


def check_exposure(bind: Bind, *, guarded: bool) -> None:
    """Nobody's control plane stands open to a network by mistake."""
    if not bind.loopback and not guarded:
        raise errors.Rejected(
            f"refusing to listen beyond this machine without a token: {bind.host}",
            hint="make one first with fairlead token create, or listen on 127.0.0.1",
        )


def claim(bind: Bind) -> socket.socket:
    """The listening socket, for us alone; port 0 takes any free one."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            bind.host, bind.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise _not_bound(bind, error) from error


def bound(bind: Bind, listening: socket.socket) -> Bind:
    """The address with the port that was taken."""
    return Bind(bind.host, listening.getsockname()[1])


@contextlib.asynccontextmanager
async def serving(
    app: Any,
    listening: socket.socket,
    closing: asyncio.Event,
    *,
    silence: timedelta = _SILENCE,
) -> AsyncIterator[asyncio.Task[None]]:
    """Answer requests until the block is left; open ones may finish for some seconds.

    The app speaks ASGI. A connection on which no whole request was begun for this long is closed.
    The task ends before the block only where the server itself has failed.
    """
    embedded = _Embedded(app, listening, silence)
    async with _no_thread_left():
        task = asyncio.create_task(embedded.serve())
        try:
            yield task
        finally:
            # Live streams never end by themselves, and granian waits for every response.
            closing.set()
            embedded.stop()  # type: ignore[no-untyped-call]  # granian leaves it untyped
            await _ended(task)
            listening.close()


def foreign_threads() -> frozenset[int]:
    """Threads of this process that Python did not start."""
    known = {each.native_id for each in threading.enumerate()}
    return frozenset(int(each.name) for each in Path("/proc/self/task").iterdir()) - known


def most_connections() -> int:
    """As many as there are file descriptors for, less what the rest of the process needs."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return max(1, min(_MOST_CONNECTIONS, soft - _OTHER_FILES))


def allow_many_files() -> None:
    """Up to what the system allows: its usual 1,024 are held by as many silent connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_CONNECTIONS + _OTHER_FILES
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _ended(task: asyncio.Task[None]) -> None:
    try:
        async with asyncio.timeout(_STOP_PATIENCE.total_seconds()):
            await task
    except TimeoutError:
        _log.warning("requests_cut_off", after_seconds=_STOP_PATIENCE.total_seconds())
    except Exception:  # noqa: BLE001 - it has ended either way; what it held is released
        _log.exception("web_server_failed")


@dataclass(slots=True)
class _Servers:
    """How many answer in this process, and which threads were there before the first."""

    running: int = 0
    others: frozenset[int] = frozenset()


_servers = _Servers()


@contextlib.asynccontextmanager
async def _no_thread_left() -> AsyncIterator[None]:
    """Wait for granian's threads, which outlive its last word to us by a moment.

    One that then asks for Python while the interpreter ends is made to unwind through Rust, which
    aborts the process: a clean stop would end with SIGABRT.
    """
    if not _servers.running:
        _servers.others = foreign_threads()
    _servers.running += 1
    try:
        yield
    finally:
        _servers.running -= 1
        # Whose thread one is cannot be told, so the last server waits for all.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_THREADS_PATIENCE.total_seconds()):
                while not (_servers.running or foreign_threads() <= _servers.others):  # noqa: ASYNC110 - nobody tells of a thread's end
                    await asyncio.sleep(0.001)


class _Embedded(Server):
    def __init__(self, app: Any, listening: socket.socket, silence: timedelta) -> None:
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            # Not auto: a connection whose version is not told yet, and one of HTTP/2, has no
            # deadline, so whoever says nothing at all would hold its place for ever.
            http=HTTPModes.http1,
            websockets=False,
            log_enabled=False,
            backlog=_BACKLOG,
            backpressure=most_connections(),
            http1_settings=HTTP1Settings(header_read_timeout=round(silence.total_seconds() * 1000)),
        )
        self._listening = listening

    def _init_shared_socket(self) -> None:
        # The holder closes its descriptor in the end; ours is closed by us.
        self._ssp = None
        holder: Any = SocketHolder
        self._shd = holder(os.dup(self._listening.fileno()), False, _BACKLOG)


def _not_bound(bind: Bind, error: OSError) -> errors.FairleadError:
    if error.errno == errno.EADDRINUSE:
        return errors.Conflict(
            f"the port is taken: {bind.port}",
            hint="stop what listens there, or choose another with --listen ADDRESS:PORT",
        )
    return errors.Rejected(
        f"cannot listen on {bind.host}:{bind.port}: {error.strerror or error}",
        hint="choose an address of this machine, such as 127.0.0.1:8600",
    )
