"""Requests over many connections of one core, as cheap as Python can send them.

Every answer of a contestant is as long as the first, so its end is known without reading it; what
is not `HTTP/1.1 200` (or another status that was asked for) fails the contestant.
"""

import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

from bench.contestants.job import percentile
from bench.harness import Failed

CONNECTIONS = 64
_PIECE = 65536
_LONGEST_SECONDS = 60.0


@dataclass(slots=True, eq=False)
class Connection:
    """One of them, with what is missing of its answer."""

    socket: socket.socket
    missing: int = 0
    due: float = 0.0


@dataclass
class Load:
    """Open connections to one server, and the requests that are sent in turn."""

    port: int
    requests: Sequence[bytes]
    expected: bytes = b"HTTP/1.1 200"
    length: int = 0
    sent: int = 0
    _idle: list[Connection] = field(default_factory=list)
    _ready: selectors.BaseSelector = field(default_factory=selectors.EpollSelector)

    def __enter__(self) -> Self:
        self.length = self._measured()
        for _ in range(CONNECTIONS):
            one = Connection(socket.create_connection(("127.0.0.1", self.port), timeout=10))
            one.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.socket.setblocking(False)
            self._ready.register(one.socket, selectors.EVENT_READ, one)
            self._idle.append(one)
        return self

    def __exit__(self, *_: object) -> None:
        for key in list(self._ready.get_map().values()):
            key.data.socket.close()
        self._ready.close()

    def saturate(self, count: int) -> float:
        """So many requests, each connection asking again at once; requests a second."""
        began, done, end = time.perf_counter(), 0, self.sent + count
        while self._idle:
            self._ask(self._idle.pop(), 0.0)
        while done < count:
            for one in self._answered(_LONGEST_SECONDS):
                done += 1
                if self.sent < end:
                    self._ask(one, 0.0)
                else:
                    self._idle.append(one)
        return count / (time.perf_counter() - began)

    def paced(self, rate: float, seconds: float) -> dict[str, float]:
        """At a steady rate, whether or not answers come: milliseconds since each was due."""
        took: list[float] = []
        count, began = int(rate * seconds), time.perf_counter()
        asked = 0
        while len(took) < count:
            now = time.perf_counter()
            while asked < count and self._idle and began + asked / rate <= now:
                self._ask(self._idle.pop(), began + asked / rate)
                asked += 1
            wait = max(began + asked / rate - now, 0.0) if self._idle else _LONGEST_SECONDS
            for one in self._answered(wait if asked < count else _LONGEST_SECONDS):
                took.append(1000 * (time.perf_counter() - one.due))
                self._idle.append(one)
        return {"p50_ms": percentile(took, 0.5), "p99_ms": percentile(took, 0.99)}

    def _ask(self, one: Connection, due: float) -> None:
        one.missing, one.due = self.length, due
        one.socket.send(self.requests[self.sent % len(self.requests)])
        self.sent += 1

    def _answered(self, wait: float) -> Iterator[Connection]:
        found = self._ready.select(wait)
        if not found and wait >= _LONGEST_SECONDS:
            raise Failed(f"no answer within {wait:g} s")
        for key, _ in found:
            one: Connection = key.data
            data = one.socket.recv(_PIECE)
            if one.missing == self.length and not data.startswith(self.expected):
                raise Failed(f"answered {data[:60]!r}")
            one.missing -= len(data)
            if one.missing < 0 or not data:
                raise Failed("an answer has another length than the first, or was cut off")
            if not one.missing:
                yield one

    def _measured(self) -> int:
        """How long an answer is, head and body."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as one:
            one.sendall(self.requests[0])
            data = b""
            while b"\r\n\r\n" not in data:
                if not (piece := one.recv(_PIECE)):
                    raise Failed("the connection was closed in the middle of an answer")
                data += piece
        head, _, _ = data.partition(b"\r\n\r\n")
        named = [line.partition(b":") for line in head.lower().split(b"\r\n")]
        sizes = [int(value) for name, _, value in named if name == b"content-length"]
        if not head.startswith(self.expected) or (not sizes and b" 304 " not in head[:20]):
            raise Failed(f"answered {head[:60]!r} without a length")
        return len(head) + 4 + sum(sizes)
