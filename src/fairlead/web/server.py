"""The HTTP server, inside the engine's own process and event loop.

granian's embedded server runs our app on the loop that calls it, so a request reaches the
engine without leaving the process. The listening socket is ours: granian's own would share
its port with anybody (SO_REUSEPORT), and a second control plane on the same port would
silently take half of the requests.
"""

import asyncio
import contextlib
import errno
import ipaddress
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import structlog
from granian.constants import Interfaces
from granian.net import SocketHolder  # type: ignore[attr-defined]  # meant for its own servers
from granian.server.embed import Server

from fairlead import errors

_BACKLOG = 1024
_STOP_PATIENCE = timedelta(seconds=5)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Bind:
    """Where we answer."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
    app: Any, listening: socket.socket, closing: asyncio.Event
) -> AsyncIterator[asyncio.Task[None]]:
    """Answer requests until the block is left; open ones may finish for some seconds.

    The task ends before that only where the server itself has failed.
    """
    embedded = _Embedded(app, listening)
    task = asyncio.create_task(embedded.serve())
    try:
        yield task
    finally:
        # Live streams never end by themselves, and granian waits for every response.
        closing.set()
        embedded.stop()  # type: ignore[no-untyped-call]  # granian leaves it untyped
        try:
            async with asyncio.timeout(_STOP_PATIENCE.total_seconds()):
                await task
        except TimeoutError:
            _log.warning("requests_cut_off", after_seconds=_STOP_PATIENCE.total_seconds())
        except Exception:  # noqa: BLE001 - it has ended either way; what it held is released
            _log.exception("web_server_failed")
        listening.close()


class _Embedded(Server):
    def __init__(self, app: Any, listening: socket.socket) -> None:
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            websockets=False,
            log_enabled=False,
            backlog=_BACKLOG,
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
