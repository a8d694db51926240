"""Content of 5 KB by channel, from one core: ours, two servers in Go, and FastAPI on uvicorn.

Every contestant finds the channel by the id in the User-Agent and the file by the version in the
path. Servers have the first core, the load has the second. Processor time is the kernel's, of all
threads; requests a second are as many as 64 connections get.
"""

import contextlib
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import harness
from bench.load import Load
from fairlead.areas.content.domain.population import Channel, Population, parse_share
from fairlead.clients.postgres.server.running import free_port

_HERE = Path(__file__).resolve().parent / "contestants"
_PATH = "/api/gathering/v2/4.17.3/gathering_rules"
_IDS = 500
_SALT, _SHARE = "1.0.2", "50"
_BODY = 5 * 1024
_LONGEST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """How one contestant is started, and what its clients have already."""

    command: Sequence[str]
    environment: Mapping[str, str]
    etags: Mapping[Channel, str] = field(default_factory=dict)
    """What a client has already, by its channel."""

    expected: bytes = b"HTTP/1.1 200"
    requests: int = 20_000


def run(effort: harness.Effort) -> harness.Result:
    result = harness.Result("content", {"load_average_before": harness.load_average()})
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as name:
        folder = Path(name)
        rounds = harness.Rounds(_contestants(folder, effort), effort.rounds)
    for name in ("fairlead", "fairlead 304", "go prebuilt", "go", "fastapi"):
        for figure in ("per_second", "cpu_us", "p50_ms", "p99_ms", "memory_mb"):
            result.add(f"{name}: {figure}", rounds.of(name, figure))
    ours = rounds.of("fairlead", "cpu_us")
    for name in ("go prebuilt", "go", "fastapi"):
        result.compare(f"{name}: cpu of a request", rounds.of(name, "cpu_us"), ours)
        result.compare(f"{name}: per second", rounds.of("fairlead"), rounds.of(name))
    result.compare("304 against 200, per second", rounds.of("fairlead 304"), rounds.of("fairlead"))
    result.compare("304 against 200, cpu", ours, rounds.of("fairlead 304", "cpu_us"))
    result.measurements["load_average_after"] = harness.load_average()
    return result


def _contestants(folder: Path, effort: harness.Effort) -> Mapping[str, harness.Contestant | None]:
    ours = _ours(folder)
    servers: dict[str, Server | None] = {
        "fairlead": ours,
        "fairlead 304": Server(ours.command, ours.environment, _etags(ours), b"HTTP/1.1 304"),
        "go prebuilt": _go(folder, "-prebuilt"),
        "go": _go(folder),
        "fastapi": _fastapi(folder),
    }
    return {
        name: functools.partial(_measured, each, effort) if each else None
        for name, each in servers.items()
    }


def _measured(server: Server, effort: harness.Effort) -> Mapping[str, float]:
    count = effort.pick(server.requests, 1_000)
    with _running(server) as (port, process):
        requests = [_request(f"{number:08}", server.etags) for number in range(_IDS)]
        with Load(port, requests, server.expected) as load:
            load.saturate(count // 10)
            before = _cpu_seconds(process)
            rate = load.saturate(count)
            spent = _cpu_seconds(process) - before
            paced = load.paced(rate / 2, effort.pick(5, 1))
        return {
            "per_second": rate,
            "cpu_us": 1e6 * spent / count,
            **paced,
            "memory_mb": _most_memory_mb(process),
        }


def _request(identity: str, etags: Mapping[Channel, str]) -> bytes:
    agent = f"User-Agent: insights-operator/4.17 cluster/{identity}\r\n"
    etag = etags.get(_channel(identity), "")
    known = f'If-None-Match: "{etag}"\r\n' if etag else ""
    return f"GET {_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n{agent}{known}\r\n".encode()


def _channel(identity: str) -> Channel:
    return Population(_SALT, parse_share(_SHARE)).channel(identity)


@contextlib.contextmanager
def _running(server: Server) -> Iterator[tuple[int, int]]:
    """On the first core; what asks stays on the second. Its port and its process."""
    port, cores = free_port(), os.sched_getaffinity(0)
    command = [each.replace("{port}", str(port)) for each in server.command]
    given = {**os.environ, **server.environment}
    os.sched_setaffinity(0, {min(cores)})
    try:
        process = subprocess.Popen(
            command, env=given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
    finally:
        os.sched_setaffinity(0, cores - {min(cores)} or cores)
    try:
        _await_port(process, port)
        yield port, process.pid
    finally:
        os.sched_setaffinity(0, cores)
        process.terminate()
        process.communicate(timeout=_LONGEST_SECONDS)


def _await_port(process: "subprocess.Popen[str]", port: int) -> None:
    deadline = time.monotonic() + _LONGEST_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            assert process.stderr is not None
            raise harness.Failed(process.stderr.read().strip()[-300:])
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise harness.Failed(f"was not ready after {_LONGEST_SECONDS:.0f} s")


def _cpu_seconds(process: int) -> float:
    """Of all its threads, to the nanosecond; what a tick says is 10 ms."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in tasks) / 1e9


def _most_memory_mb(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(each.split()[1]) / 1024 for each in lines if each.startswith("VmHWM"))


def _ours(folder: Path) -> Server:
    for version in ("1.0.1", "1.0.2"):
        for path, data in _files(version).items():
            file = folder / "versions" / version / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(json.dumps(data).encode())
    described = folder / "content.json"
    source = {"directory": "versions"}
    described.write_text(json.dumps({"name": "g", "kind": "gathering", "source": source}))
    share = folder / "share.json"
    share.write_text(json.dumps({"salt": _SALT, "share": _SHARE}))
    command = [sys.executable, "-m", "fairlead", "content", "serve", str(described)]
    options = ["--listen", "127.0.0.1:{port}", "--share-file", str(share)]
    versions = {"STABLE_VERSION": "1.0.1", "CANARY_VERSION": "1.0.2"}
    return Server((*command, *options), versions)


def _etags(ours: Server) -> Mapping[Channel, str]:
    found = {}
    with _running(ours) as (port, _):
        for number in range(20):
            identity = f"{number:08}"
            with socket.create_connection(("127.0.0.1", port), timeout=10) as one:
                one.sendall(_request(identity, {}))
                head = one.recv(65536).lower().partition(b"\r\n\r\n")[0]
            etag = head.partition(b'etag: "')[2].partition(b'"')[0].decode()
            found[_channel(identity)] = etag
    return found


def _go(folder: Path, *options: str) -> Server | None:
    program = folder / "content_server"
    if shutil.which("go") is None:
        harness.say("Go is not on PATH, so its ratios are left out")
        return None
    if not program.exists():
        source = str(_HERE / "content_server.go")
        subprocess.run(["go", "build", "-o", str(program), source], check=True, cwd=folder)
    share = ["-salt", _SALT, "-share", f"{_SHARE}00", "-listen", "127.0.0.1:{port}", *options]
    return Server((str(program), *share, *_folders(folder)), {"GOMAXPROCS": "1"})


def _fastapi(folder: Path) -> Server | None:
    if harness.peer("uvicorn", dict) is None:
        return None
    command = (sys.executable, str(_HERE / "content_fastapi.py"), "{port}", _SALT, f"{_SHARE}00")
    return Server((*command, *_folders(folder)), {}, requests=4_000)


def _folders(folder: Path) -> Sequence[str]:
    return [str(folder / "versions" / each / "v2") for each in ("1.0.1", "1.0.2")]


def _files(version: str) -> Mapping[str, object]:
    """A version of the original's kind, whose second file is 5 KB."""
    empty = {"conditional_gathering_rules": [], "container_logs": [], "version": version}
    logs: list[object] = []
    large = {**empty, "container_logs": logs}
    while len(json.dumps(large, separators=(",", ":"))) < _BODY:
        number = len(logs)
        messages = [f"{number}: the remote said: {text}" for text in ("no", "wait", "gone")]
        pods = {"namespace": "openshift-monitoring", "pod_name_regex": f"prometheus-{number}-.*"}
        logs.append({**pods, "messages": messages})
    return {
        "v1/rules.json": {"rules": [], "version": version},
        "v2/cluster_version_mapping.json": [
            ["4.0.0", "empty.json"],
            ["4.17.0-0", "large.json"],
            ["4.18.0", "empty.json"],
        ],
        "v2/empty.json": empty,
        "v2/large.json": large,
    }


BENCHMARK = harness.Benchmark(
    "content", "5 KB of content by channel from one core, beside Go and FastAPI", run
)
