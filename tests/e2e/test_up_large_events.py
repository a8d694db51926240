"""Events of a megabyte: neither viewers that stall nor readers of pages take memory or health."""

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import httpx
import pytest

from fairlead.engine.store import protocol
from tests.e2e import processes
from tests.engines import Home

UP = ["-m", "tests.e2e.entry", "up"]
EVENTS = 40
VIEWERS = 24
LONGEST_SECONDS = 20
"""Without an answer. What would hold it up is a viewer that takes nothing: those never end."""

MOST_GROWTH_MB = 100
"""What 24 viewers with a copy of their own of every event would take is 960 MB and more."""


@pytest.fixture
def filled(home: Home) -> Home:
    """A store with a stream of events of a megabyte, each of many small values."""
    data = json.dumps({"items": [f"item {n}" for n in range(70_000)]})
    session = home.store().open()
    head = protocol.NewStream(1, "depot/large", "depot", EVENTS, "Idle", 1, "{}", None)
    events = [protocol.NewEvent(1, n, "Sent", 1, data, "a test") for n in range(1, EVENTS + 1)]
    with session.transaction() as transaction:
        transaction.load(protocol.Needed([]))
        transaction.write(protocol.Writes(0, streams=[head], events=events))
    session.close()
    return home


@pytest.fixture
def environment(filled: Home, tmp_path: Path) -> Mapping[str, str]:
    place = {"FAIRLEAD_STATE_DIR": str(tmp_path)}
    return place if filled.kind == "sqlite" else place | {"FAIRLEAD_DATABASE_URL": filled.address}


def test_viewers_that_stall_take_little_memory_and_no_health(
    filled: Home, environment: Mapping[str, str]
) -> None:
    with processes.running(UP, environment) as up:
        address = up.until("fairlead is up: ").removeprefix("fairlead is up: ")
        _until_projected(filled)
        base = _memory_mb(up)

        with _health(address) as health, _stalled(address, VIEWERS):
            # A viewer that takes nothing is let go: it comes back with the last id it has seen.
            peak = max(_sampled(up, lambda: _dropped(up) == VIEWERS))

        assert peak - base < MOST_GROWTH_MB
        assert health.failures == []
        assert health.answers > 0
        assert up.stop() == 0


def test_pages_of_large_events_end_by_their_bytes(
    filled: Home, environment: Mapping[str, str]
) -> None:
    with processes.running(UP, environment) as up:
        address = up.until("fairlead is up: ").removeprefix("fairlead is up: ")
        _until_projected(filled)
        base = _memory_mb(up)

        with _health(address) as health, httpx.Client(base_url=address, timeout=30) as client:
            seqs, sizes = _walk(client, "/api/v1/streams/depot/large/events")
            peak = _memory_mb(up)

        assert seqs == list(range(1, EVENTS + 1))
        assert max(sizes) < 6 * 1024 * 1024
        assert peak - base < MOST_GROWTH_MB
        assert health.failures == []
        assert up.stop() == 0


class Health:
    """What /healthz answered all the while."""

    def __init__(self) -> None:
        self.answers = 0
        self.failures: list[str] = []
        self.over = threading.Event()

    def watch(self, address: str) -> None:
        with httpx.Client(base_url=address, timeout=LONGEST_SECONDS) as client:
            while not self.over.is_set():
                try:
                    client.get("/healthz").raise_for_status()
                    self.answers += 1
                except httpx.HTTPError as error:
                    self.failures.append(repr(error))
                self.over.wait(0.1)


@contextlib.contextmanager
def _health(address: str) -> Iterator[Health]:
    health = Health()
    thread = threading.Thread(target=health.watch, args=[address])
    thread.start()
    try:
        yield health
    finally:
        health.over.set()
        thread.join()


@contextlib.contextmanager
def _stalled(address: str, count: int) -> Iterator[None]:
    """Viewers that ask for everything and read nothing of it."""
    url = httpx.URL(address)
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            viewer = stack.enter_context(socket.socket())
            viewer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            viewer.connect((url.host, url.port))
            viewer.sendall(b"GET /api/v1/feed/live?after=0.0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        yield


def _dropped(up: processes.Running) -> int:
    return "".join(up.said).count("live_client_dropped")


def _sampled(up: processes.Running, over: Callable[[], bool]) -> Iterator[float]:
    until = time.monotonic() + processes.PATIENCE
    while not over():
        assert time.monotonic() < until, "".join(up.said)[-2000:]
        yield _memory_mb(up)
        time.sleep(0.1)


def _walk(client: httpx.Client, path: str) -> tuple[list[int], list[int]]:
    seqs: list[int] = []
    sizes: list[int] = []
    after: str | None = "0"
    while after is not None:
        answer = client.get(path, params={"after": after, "limit": 500})
        sizes.append(len(answer.content))
        page = answer.json()
        seqs += [event["seq"] for event in page["items"]]
        after = page["next"]
    return seqs, sizes


def _until_projected(filled: Home) -> None:
    """The projector has read all events: from here on, memory is the viewers'."""
    until = time.monotonic() + processes.PATIENCE
    while not filled.sql(f"SELECT 1 FROM projections WHERE position = {EVENTS}"):  # noqa: S608 - our own number
        assert time.monotonic() < until, "the projection does not end"
        time.sleep(0.1)


def _memory_mb(up: processes.Running) -> float:
    status = Path(f"/proc/{up.process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024
