"""A control plane whose standard error takes no more: it works on, answers, and ends cleanly."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e import processes

UP = [sys.executable, "-m", "tests.e2e.entry", "up"]
ORDERS = 8


@pytest.fixture(params=["full pipe", "full pipe, not blocking", "full disk", "no reader"])
def stderr(request: pytest.FixtureRequest) -> Iterator[int]:
    with contextlib.ExitStack() as stack:
        yield _no_reader() if request.param == "no reader" else _full(request.param, stack)


def test_work_goes_on_and_ends_cleanly_when_nobody_takes_its_log(
    stderr: int, tmp_path: Path
) -> None:
    port = _free_port()
    with _up(stderr, tmp_path, port) as process, _client(port) as client:
        _until_healthy(client)

        for n in range(ORDERS):
            order = {"type": "Order", "data": {"depot": f"{n}", "trips": 1, "legs": 2}}
            client.post(f"/api/v1/streams/depot/{n}/commands", json=order)
        states = [_settled(client, f"depot/{n}") for n in range(ORDERS)]

        assert states == ["Done"] * ORDERS
        assert client.get("/healthz").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(processes.PATIENCE) == 0


def _full(kind: str, stack: contextlib.ExitStack) -> int:
    if kind == "full disk":
        return os.open("/dev/full", os.O_WRONLY)
    reading, writing = os.pipe()
    stack.callback(os.close, reading)
    os.set_blocking(writing, False)
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 512)
    os.set_blocking(writing, kind == "full pipe")
    return writing


def _no_reader() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@contextlib.contextmanager
def _up(stderr: int, folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    inherited = {name: value for name, value in os.environ.items() if "FAIRLEAD" not in name}
    process = subprocess.Popen(
        UP,
        cwd=processes.ROOT,
        env={
            **inherited,
            "FAIRLEAD_STATE_DIR": str(folder),
            "FAIRLEAD_LISTEN": f"127.0.0.1:{port}",
            "FAIRLEAD_LOG_LEVEL": "debug",
        },
        stdout=subprocess.DEVNULL,
        stderr=stderr,
    )
    os.close(stderr)
    try:
        yield process
    finally:
        process.kill()
        process.wait(processes.PATIENCE)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def _client(port: int) -> httpx.Client:
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20)


def _until_healthy(client: httpx.Client) -> None:
    # It cannot say that it is up: nobody would read it.
    until = time.monotonic() + processes.PATIENCE
    while time.monotonic() < until:
        with contextlib.suppress(httpx.TransportError):
            if client.get("/healthz").status_code == 200:
                return
        time.sleep(0.05)
    pytest.fail("it does not answer")


def _settled(client: httpx.Client, stream: str) -> str:
    until = time.monotonic() + processes.PATIENCE
    while time.monotonic() < until:
        found = client.get(f"/api/v1/streams/{stream}").json()
        if found.get("ended_at"):
            return str(found["state"])
        time.sleep(0.05)
    return f"not settled: {stream}"
