"""Queues in a person's hand: what waits, for whom, and moving a stream."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.engine import visibility
from tests.unit.cli.conftest import Run

ORDER = ("submit", "depot/far", "Order", '{"depot": "far", "trips": 1}', "--queue")
PROD = "kubernetes@prod"


def listed(run: Run) -> dict[str, dict[str, object]]:
    return {each["name"]: each for each in json.loads(run("queues", "list", "-o", "json").out)}


def test_a_store_without_work_has_no_queues(run: Run, filled: Path) -> None:
    assert run("queues", "list").err == "no queues: nothing waits, and no worker is here\n"


def test_what_waits_for_a_worker_is_listed(
    run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(*ORDER, PROD).code == 0

    found = listed(run)[PROD]
    monkeypatch.setattr(visibility, "GRACE", timedelta(0))

    assert (found["waiting"], found["workers"], found["problem"]) == (1, [], None)
    assert found["unserved"] == ["trip DriveLeg"]
    assert "no worker serves kubernetes@prod since" in run("queues", "list").out
    assert "waiting  no worker serves kubernetes@prod since" in run("get", "trip/far-1").out
    assert "waiting" not in run("get", "trip/north-1").out
    (effect,) = json.loads(run("outbox", "list", "--stream", "trip/far-1", "-o", "json").out)
    assert effect["queue"] == PROD
    assert PROD in run("outbox", "list", "--stream", "trip/far-1").out


def test_a_stream_is_moved_with_its_effects(run: Run, filled: Path) -> None:
    run(*ORDER, PROD)

    moved = run("queues", "move", "trip/far-1", "kubernetes@test")

    assert moved.err == "moved: trip/far-1 to kubernetes@test, effects that go along: 1\n"
    assert list(listed(run)) == ["kubernetes@test"]
    assert "queue    kubernetes@test\n" in run("get", "trip/far-1").out
    shown = json.loads(run("get", "trip/far-1", "-o", "json").out)
    assert shown["queue"] == "kubernetes@test"
    assert run("queues", "move", "trip/far-1", "none").code == 0
    assert list(listed(run)) == [""]
    assert "queue    none\n" in run("get", "trip/far-1").out


def test_what_is_no_queue_or_no_stream_is_refused(run: Run, filled: Path) -> None:
    assert run(*ORDER, "prod").code == errors.Rejected.exit_code
    assert run("queues", "move", "trip/far-1", "prod").code == errors.Rejected.exit_code
    assert run("queues", "move", "trip/none", PROD).code == errors.NotFound.exit_code
