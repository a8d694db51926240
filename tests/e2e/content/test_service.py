"""`fairlead content serve` as a real process: starts, refusals to start, shares, stops."""

import asyncio
import json
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fairlead.areas.content.domain.population import Channel, Population, parse_share
from tests import content_service, contents
from tests.content_service import Instance
from tests.minisign import Signer
from tools.cluster.process import free_port

SCHEMATHESIS = shutil.which("schemathesis") or ""
V1 = "/api/gathering/v1/gathering_rules"
MAP = "v2/cluster_version_mapping.json"
V2 = "/api/gathering/v2/4.17.1/gathering_rules"


def agent(cluster: str) -> dict[str, str]:
    return {"User-Agent": f"insights-operator/4.17 cluster/{cluster}"}


def version(instance: Instance, cluster: str = "", path: str = V1) -> str:
    answer = instance.client.get(f"{instance.url}{path}", headers=agent(cluster))
    found: str = answer.raise_for_status().json()["version"]
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return content_service.gathering(tmp_path, ["1.0.1", "1.0.2"])


@pytest.fixture
def stable(file: Path) -> Iterator[Instance]:
    with Instance(file, "1.0.1") as instance:
        yield instance


@pytest.mark.requirement("content 1", "content 13")
def test_the_two_versions_come_from_the_environment_and_bodies_are_the_original_bytes(
    stable: Instance,
) -> None:
    v1 = httpx.get(f"{stable.url}{V1}")
    empty = httpx.get(f"{stable.url}/api/gathering/v2/4.1.0/gathering_rules")

    assert v1.content == (
        b'{"version":"1.0.1","rules":[{"conditions":[{"alert":{"name":'
        b'"SamplesImagestreamImportFailing"},"type":"alert_is_firing"}],"gathering_functions":'
        b'{"logs_of_namespace":{"namespace":"openshift-cluster-samples-operator","tail_lines":100}}}]}'
    )
    assert empty.content == (
        b'{"conditional_gathering_rules":[],"container_logs":[],"version":"1.0.1"}'
    )
    assert v1.headers["content-type"] == "application/json"


@pytest.mark.requirement("content 2")
def test_a_new_tag_in_the_repository_alone_changes_nothing(tmp_path: Path) -> None:
    repository = contents.repository(tmp_path / "conditions")
    contents.tag(repository, "1.0.1", contents.version_files("1.0.1"))
    with contents.serving_git(repository) as address:
        described = content_service.describe(tmp_path, {"git": address})
        with Instance(described, "1.0.1") as instance:
            contents.tag(repository, "1.0.2", contents.version_files("1.0.2"))

            assert {version(instance, str(each)) for each in range(20)} == {"1.0.1"}


@pytest.mark.requirement("content 5", "content 6", "content 18")
def test_a_raised_share_reaches_every_replica_without_a_restart(file: Path, tmp_path: Path) -> None:
    share = tmp_path / "share.json"
    content_service.set_share(share, "0")
    options = ["--share-file", str(share)]
    ids = [f"cluster-{each}" for each in range(60)]
    with (
        Instance(file, "1.0.1", "1.0.2", options) as first,
        Instance(file, "1.0.1", "1.0.2", options) as second,
    ):
        assert {version(first, each) for each in ids} == {"1.0.1"}

        content_service.set_share(share, "40")
        population = Population("1.0.2", parse_share("40"))
        chosen = {each for each in ids if population.channel(each) is Channel.CANARY}
        assert chosen
        for replica in (first, second):
            until(lambda at=replica: {one for one in ids if version(at, one) == "1.0.2"} == chosen)
        content_service.set_share(share, "100")
        until(lambda: {version(first, each) for each in ids} == {"1.0.2"})
        content_service.set_share(share, "100", canary="1.0.1")
        until(lambda: {version(first, each) for each in ids} == {"1.0.1"})


@pytest.mark.requirement("content 4", "content 14", "content 15", "content 17")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, (4, "version not found: 1.0.3")),
        ({"v1/rules.json": b"{\n"}, (3, "v1/rules.json:2:1: not JSON")),
        ({"v1/rules.json": b"{}"}, (3, "v1/rules.json:1:1: against its schema")),
        (
            {MAP: b'[["4.1.0", "a"],\n["4.0.0", "a"]]'},
            (3, f"{MAP}:2:2: [1][0]: not in"),
        ),
        ({MAP: b'[["4.0.0", "../v1/rules.json"]]'}, (3, "outside of the folder")),
        (contents.version_files("1.0.2"), (3, "says version '1.0.2', not '1.0.3'")),
    ],
)
def test_a_version_that_cannot_be_served_never_listens_and_the_old_instance_serves_on(
    tmp_path: Path, stable: Instance, change: dict[str, bytes], expected: tuple[int, str]
) -> None:
    if change:
        broken = {**contents.version_files("1.0.3"), **change}
        contents.write(tmp_path / "versions" / "1.0.3", broken)

    ended, told = Instance(stable.file, "1.0.1", "1.0.3").fails()

    assert ended == expected[0]
    assert expected[1] in told
    assert "hint:" in told
    assert "is serving" not in told
    assert version(stable) == "1.0.1"


AWAY = "http://127.0.0.1:9"


@pytest.mark.requirement("content 4", "content 14", "content 15")
@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            {"pins": {"1.0.2": {"sha256": "0" * 64}}},
            (6, "version 1.0.2 is not what was approved: its sum is "),
        ),
        (
            {"pins": {"1.0.2": {"commit": "0" * 40}}},
            (6, "the tag of version 1.0.2 was moved: approved was commit 000000000000"),
        ),
        ({"public_key": Signer().public}, (3, "version 1.0.1 is not signed: no SHA256SUMS")),
        ({"source": {"git": f"{AWAY}/conditions.git"}}, (7, "the git repository did not answer")),
        ({"source": {"archive": f"{AWAY}/{{version}}.zip"}}, (7, "the archive did not come")),
    ],
    ids=["other sum", "moved tag", "unsigned", "git away", "archive away"],
)
def test_what_nobody_vouches_for_or_does_not_come_never_listens(
    tmp_path: Path, stable: Instance, more: dict[str, object], expected: tuple[int, str]
) -> None:
    words = {**json.loads(stable.file.read_text()), **more}
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(words))

    ended, told = Instance(changed, "1.0.1", "1.0.2").fails()

    assert ended == expected[0]
    assert expected[1] in told
    assert "hint:" in told
    assert "is serving" not in told
    assert version(stable) == "1.0.1"


@pytest.mark.requirement("content 20")
def test_unleash_away_delays_the_start_only_so_long(file: Path) -> None:
    away = {
        "FAIRLEAD_CONTENT_UNLEASH_URL": "http://192.0.2.1:9/api",
        "FAIRLEAD_CONTENT_UNLEASH_SECONDS": "0.5",
    }
    with Instance(file, "1.0.1", "1.0.2", variables=away) as instance:
        ready = httpx.get(f"{instance.url}/readyz")

        assert version(instance, "a") == "1.0.1"
        assert ready.status_code == 200
        assert "Unleash does not answer" in ready.json()["degraded"]


def test_two_masters_of_the_share_are_refused(file: Path, tmp_path: Path) -> None:
    unleash = {"FAIRLEAD_CONTENT_UNLEASH_URL": "http://127.0.0.1:9/api"}
    share = ["--share-file", str(tmp_path / "share.json")]

    code, told = Instance(file, "1.0.1", "1.0.2", share, unleash).fails()

    assert code == 3
    assert "both Unleash and a file say the share" in told


def test_raw_tricks_get_a_right_status_and_do_no_harm(stable: Instance) -> None:
    host, port = stable.url.removeprefix("http://").split(":")
    tricks = [
        (b"GET /api/gathering/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", b"301"),
        (b"GET /api/gathering/v2/%2e%2e/gathering_rules HTTP/1.1\r\nHost: x\r\n\r\n", b"301"),
        (b"GET /api/gathering/v2/4.17.0%00/gathering_rules HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"GET /api/gathering/v2/\xff/gathering_rules HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"NONSENSE\r\n\r\n", b"400"),
        (
            b"GET " + V1.encode() + b" HTTP/1.1\r\nUser-Agent: " + b"x" * 100_000 + b"\r\n\r\n",
            b"431",
        ),
        (b"GET " + V1.encode() + b" HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n", b"431"),
        (b"GET " + V1.encode() + b" HTTP/1.1\r\nUser-Agent: \xff\xfe\r\n\r\n", b"200"),
    ]
    found = []
    for sent, _ in tricks:
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(sent)
            found.append(connection.recv(64).split(b" ")[1][:3])

    assert found == [status for _, status in tricks]
    assert version(stable) == "1.0.1"


def test_silent_and_half_open_connections_keep_nobody_waiting(stable: Instance) -> None:
    host, port = stable.url.removeprefix("http://").split(":")
    held = [socket.create_connection((host, int(port)), timeout=20) for _ in range(300)]
    for each in held[::2]:
        each.sendall(b"GET / HTTP/1.1\r\nHost:")

    assert version(stable) == "1.0.1"
    for each in held:
        each.close()


def test_half_open_connections_and_slow_readers_leave_nothing_behind(stable: Instance) -> None:
    assert stable.process is not None
    process = Path(f"/proc/{stable.process.pid}")
    descriptors = len(list((process / "fd").iterdir()))

    def gone() -> bool:
        return len(list((process / "fd").iterdir())) <= descriptors

    # The first time, it takes the memory that it works with.
    flood(stable)
    until(gone)
    memory = resident(process)
    for _ in range(3):
        flood(stable)
        until(gone)

    assert resident(process) - memory < 16 * 1024 * 1024
    assert httpx.get(f"{stable.url}{V1}").json()["version"] == "1.0.1"


def flood(instance: Instance) -> None:
    """Requests that never end, and answers that nobody reads; half of them end without a word."""
    host, port = instance.url.removeprefix("http://").split(":")
    asked = f"GET {V1} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 200
    held = []
    for number in range(200):
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.settimeout(20)
        made.connect((host, int(port)))
        made.sendall(asked if number % 2 else b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: yyy")
        held.append(made)
    assert httpx.get(f"{instance.url}{V1}").json()["version"] == "1.0.1"
    for number, each in enumerate(held):
        if number % 4 < 2:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        each.close()


def resident(process: Path) -> int:
    pages = int((process / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def limits(tmp_path: Path) -> Iterator[Instance]:
    """Of any content's kind, by version of who asks."""
    body = json.dumps({"version": "1.0.1", "most": 5}).encode()
    mapped = {"map.json": b'[["1.0.0", "a.json"], ["2.0.0-rc.1", "a.json"]]', "a.json": body}
    contents.write(tmp_path / "any" / "1.0.1", mapped)
    words = {"name": "limits", "map": "map.json", "source": {"directory": "any"}}
    described = tmp_path / "limits.json"
    described.write_text(json.dumps(words))
    with Instance(described, "1.0.1") as instance:
        yield instance


@pytest.mark.skipif(not SCHEMATHESIS, reason="needs schemathesis: uv tool install schemathesis")
@pytest.mark.parametrize(
    ("served", "path"), [("stable", "/api/gathering"), ("limits", "/content/limits")]
)
def test_schemathesis_finds_nothing_wrong_by_the_description_that_is_served(
    served: str, path: str, request: pytest.FixtureRequest
) -> None:
    instance: Instance = request.getfixturevalue(served)
    at = f"{instance.url}{path}/openapi.json"
    command = [SCHEMATHESIS, "run", at, "--checks", "all", "--max-examples", "300", "--no-color"]

    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)

    assert ran.returncode == 0, ran.stdout[-3000:]
    assert httpx.get(at).status_code == 200


def test_a_full_disk_under_its_log_costs_neither_answers_nor_the_share(
    file: Path, tmp_path: Path
) -> None:
    share, port = tmp_path / "share.json", free_port()
    content_service.set_share(share, "0")
    options = ["--share-file", str(share), "--listen", f"127.0.0.1:{port}"]
    instance = Instance(file, "1.0.1", "1.0.2", options, url=f"http://127.0.0.1:{port}")
    full = os.open("/dev/full", os.O_WRONLY)
    instance.start(full)
    try:
        until(lambda: answers(instance))
        assert version(instance, "a") == "1.0.1"

        # Each change is told in the log.
        for told, got in (("100", "1.0.2"), ("0", "1.0.1"), ("100", "1.0.2")):
            content_service.set_share(share, told)
            until(lambda wanted=got: version(instance, "a") == wanted)
    finally:
        code = instance.stop()
        instance.client.close()
        os.close(full)

    assert code == 0


def answers(instance: Instance) -> bool:
    try:
        return instance.client.get(f"{instance.url}/readyz").status_code == 200
    except httpx.TransportError:
        return False


async def test_a_stop_under_load_fails_no_request(file: Path) -> None:
    with Instance(file, "1.0.1") as old, Instance(file, "1.0.2") as new:
        current, stopping, warm = old, asyncio.Event(), asyncio.Event()
        seen: list[tuple[int, str]] = []

        async def poll(number: int) -> None:
            # As behind a Service: a new connection goes to whoever is ready.
            async with httpx.AsyncClient(timeout=20) as client:
                while not stopping.is_set() or len(seen) < 400:
                    url = f"{current.url}{V2}"
                    answer = await client.get(url, headers=agent(str(number)))
                    seen.append((answer.status_code, answer.json()["version"]))
                    if len(seen) == 200:
                        warm.set()

        async with asyncio.TaskGroup() as group:
            for number in range(16):
                group.create_task(poll(number))
            await warm.wait()
            current = new
            code = await asyncio.to_thread(old.stop)
            stopping.set()

    assert code == 0
    assert {status for status, _ in seen} == {200}
    assert {one for _, one in seen} == {"1.0.1", "1.0.2"}


def until(holds: object, seconds: float = 30) -> None:
    """Waits for what the service takes up by itself."""
    assert callable(holds)
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come about in time"


def test_what_was_served_is_counted(stable: Instance) -> None:
    version(stable, "a", V2)

    text = httpx.get(f"{stable.url}/metrics").text

    labels = 'file="stable/v2/experimental.json",version="1.0.1"'
    assert f"io_gathering_remote_configuration{{{labels}}} 1\n" in text
    assert json.loads(httpx.get(f"{stable.url}/api/gathering/openapi.json").text)["openapi"]
