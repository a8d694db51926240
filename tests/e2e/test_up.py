"""`fairlead up` as users run it: a process, a port, signals, on both stores."""

import contextlib
import json
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, LiteralString

import httpx
import psycopg
import pytest

from fairlead.clients.postgres.server.running import PostgresServer
from tests.e2e import processes
from tests.unit.web import rig

UP = ["-m", "tests.e2e.entry", "up"]
SLOW = ["-m", "tests.e2e.entry", "slow"]
READY = "fairlead is up: "


@pytest.fixture(params=["sqlite", "postgres"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Mapping[str, str]:
    place = {"FAIRLEAD_STATE_DIR": str(tmp_path)}
    if request.param == "postgres":
        place["FAIRLEAD_DATABASE_URL"] = request.getfixturevalue("postgres_url")
    return place


def test_up_answers_works_tells_and_stops(environment: Mapping[str, str]) -> None:
    with processes.running(UP, environment) as up, client_of(up) as client:
        assert client.get("/healthz").status_code == 200
        assert readiness(client.get("/readyz")) == {"ready": True, "reasons": []}

        with following(client) as heard:
            ordered = client.post("/api/v1/streams/depot/a/commands", json=rig.ORDER)
            types = [heard_event(heard) for _ in range(8)]

        assert ordered.json()["events"] == 2
        assert {"Ordered", "LegDriven", "Arrived", "Closed"} <= set(types)
        assert client.get("/api/v1/streams/depot/a").json()["state"] == "Done"
        assert "fairlead_events_total 8.0" in client.get("/metrics").text

        assert up.stop(signal.SIGTERM) == 0
    assert not held(environment)


def test_health_answers_on_a_port_of_its_own(tmp_path: Path) -> None:
    environment = {
        "FAIRLEAD_STATE_DIR": str(tmp_path),
        "FAIRLEAD_HEALTH_LISTEN": "127.0.0.1:0",
        "FAIRLEAD_LOG_FORMAT": "json",
    }
    with processes.running(UP, environment) as up, client_of(up):
        lines = [json.loads(line) for line in up.said if line.startswith("{")]
        (alone,) = [line["url"] for line in lines if line["event"] == "health_listens"]

        assert httpx.get(f"{alone}/healthz").json()["status"] == "ok"
        assert readiness(httpx.get(f"{alone}/readyz")) == {"ready": True, "reasons": []}
        assert httpx.get(f"{alone}/metrics").status_code == 404
        assert httpx.get(f"{alone}/api/v1/me").status_code == 404


def test_a_stop_ends_open_streams_and_idle_connections(tmp_path: Path) -> None:
    environment = {"FAIRLEAD_STATE_DIR": str(tmp_path)}
    with processes.running(UP, environment) as up, client_of(up) as client, following(client):
        assert up.stop(signal.SIGINT) == 0

    # It did not run into the patience for answers that never end.
    assert "requests_cut_off" not in "".join(up.said)


def test_a_stop_lets_a_running_effect_finish(tmp_path: Path) -> None:
    environment = {"FAIRLEAD_STATE_DIR": str(tmp_path), "FAIRLEAD_DRAIN_SECONDS": "60"}
    with processes.running(SLOW, environment) as up, client_of(up) as client:
        client.post("/api/v1/streams/depot/a/commands", json=rig.ORDER)
        up.until("begun")
        up.process.send_signal(signal.SIGTERM)
        up.until("fairlead is stopping")

        assert up.stop(signal.SIGUSR1) == 0

    # The first leg's answer is kept; the second was done in time or waits for the next start.
    assert one(environment, "SELECT count(*) FROM events WHERE type = 'LegDriven'") >= 1
    assert one(environment, "SELECT count(*) FROM outbox WHERE seq = 1") == 0
    assert one(environment, "SELECT count(*) FROM outbox WHERE owner IS NOT NULL") == 0


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    environment = {"FAIRLEAD_STATE_DIR": str(tmp_path), "FAIRLEAD_DRAIN_SECONDS": "600"}
    with processes.running(SLOW, environment) as up, client_of(up) as client:
        client.post("/api/v1/streams/depot/a/commands", json=rig.ORDER)
        up.until("begun")
        up.process.send_signal(signal.SIGINT)
        up.until("fairlead is stopping")

        assert up.stop(signal.SIGINT) == 128 + signal.SIGINT


def test_a_taken_port_is_told_at_once(tmp_path: Path) -> None:
    with processes.running(UP, {"FAIRLEAD_STATE_DIR": str(tmp_path / "a")}) as first:
        address = first.until(READY).removeprefix(f"{READY}http://")
        taken = {"FAIRLEAD_STATE_DIR": str(tmp_path / "b"), "FAIRLEAD_LISTEN": address}

        with processes.running(UP, taken) as second:
            assert second.process.wait(processes.PATIENCE) == 1

        assert f"the port is taken: {address.rpartition(':')[2]}" in "".join(second.said)


def test_an_open_bind_without_a_token_is_refused(tmp_path: Path) -> None:
    environment = {"FAIRLEAD_STATE_DIR": str(tmp_path), "FAIRLEAD_LISTEN": "0.0.0.0:0"}

    with processes.running(UP, environment) as up:
        assert up.process.wait(processes.PATIENCE) == 1

    assert "refusing to listen beyond this machine without a token" in "".join(up.said)


def test_the_command_itself_comes_up(tmp_path: Path) -> None:
    command = ["-c", "from fairlead.cli.serve import up; up()", "--listen", "127.0.0.1:0"]

    with processes.running(command, {"FAIRLEAD_STATE_DIR": str(tmp_path)}) as up:
        with client_of(up) as client:
            assert client.get("/readyz").status_code == 200
        assert up.stop() == 0


def test_a_worker_does_what_another_left(environment: Mapping[str, str]) -> None:
    worker = ["-m", "tests.e2e.entry", "worker"]
    with processes.running(UP, environment) as up, client_of(up) as client:
        with processes.running(worker, environment) as second:
            second.until("fairlead worker is running")
            assert len(client.get("/api/v1/workers").json()) == 2
            assert second.stop(signal.SIGINT) == 0
        assert len(client.get("/api/v1/workers").json()) == 1
        assert up.stop() == 0


def test_a_worker_refuses_a_store_that_is_not_migrated(tmp_path: Path) -> None:
    worker = ["-m", "tests.e2e.entry", "worker"]

    with processes.running(worker, {"FAIRLEAD_STATE_DIR": str(tmp_path)}) as run:
        assert run.process.wait(processes.PATIENCE) == 1

    assert "the database is not migrated" in "".join(run.said)


def test_readiness_follows_the_database(tmp_path: Path) -> None:
    with PostgresServer() as server:
        environment = {
            "FAIRLEAD_STATE_DIR": str(tmp_path),
            "FAIRLEAD_DATABASE_URL": server.create_database("ready"),
        }
        with processes.running(UP, environment) as up, client_of(up) as client:
            assert client.get("/readyz").status_code == 200

            server._end("immediate")
            away = until_status(client, 503)
            assert client.get("/healthz").status_code == 200
            server.restart()
            back = until_status(client, 200)

            assert away == {"ready": False, "reasons": ["the store is not reachable"]}
            assert back == {"ready": True, "reasons": []}
            ordered = client.post("/api/v1/streams/depot/a/commands", json=rig.ORDER)
            assert ordered.status_code == 200
            assert up.stop() == 0


@contextlib.contextmanager
def client_of(up: processes.Running) -> Iterator[httpx.Client]:
    url = up.until(READY).removeprefix(READY)
    with httpx.Client(base_url=url, timeout=30) as client:
        yield client


@contextlib.contextmanager
def following(client: httpx.Client) -> Iterator[Iterator[str]]:
    """Connected to the live feed, with its lines to come."""
    with client.stream("GET", "/api/v1/feed/live") as answer:
        lines = answer.iter_lines()
        assert next(lines) == ": connected"
        with contextlib.suppress(httpx.RemoteProtocolError):
            yield lines


def heard_event(lines: Iterator[str]) -> Any:
    line = next(line for line in lines if line.startswith("data: "))
    return json.loads(line.removeprefix("data: "))["type"]


def readiness(answer: httpx.Response) -> Any:
    """What is known, which is never older than two looks at the store."""
    found = answer.json()
    assert 0 <= found.pop("age_seconds") < processes.PATIENCE
    return found


def until_status(client: httpx.Client, status: int) -> Any:
    pause = threading.Event()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        answer = client.get("/readyz")
        if answer.status_code == status:
            return readiness(answer)
        # Nothing tells us when the server's answer of the last second runs out.
        pause.wait(0.1)
    raise AssertionError(f"not {status}: {answer.text}")


def held(environment: Mapping[str, str]) -> bool:
    """Whether a lease is still running in the store."""
    until = one(environment, "SELECT coalesce(max(lease_until), 0) FROM workers")
    return until > time.time() * 1000


def one(environment: Mapping[str, str], query: LiteralString) -> int:
    if url := environment.get("FAIRLEAD_DATABASE_URL"):
        with psycopg.connect(url) as connection:
            row = connection.execute(query).fetchone()
    else:
        file = Path(environment["FAIRLEAD_STATE_DIR"]) / "fairlead.db"
        with contextlib.closing(sqlite3.connect(file)) as embedded:
            row = embedded.execute(query).fetchone()
    assert row is not None
    return int(row[0])
