"""Queues over the API, on the page and in figures: work that nobody serves is seen and moved."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fairlead.access import tokens
from fairlead.engine import visibility
from tests.unit.web import rig
from tests.unit.web.test_health import parsed

PROD = "kubernetes@prod"
MOVE = "/api/v1/streams/trip/a-1/queue"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    """A control plane with one order that no worker serves."""
    async with rig.site(tmp_path) as running:
        body = {**rig.ORDER, "queue": PROD}
        answer = await running.client.post("/api/v1/streams/depot/a/commands", json=body)
        assert answer.status_code == 200
        yield running


async def test_queues_tell_what_waits_and_who_is_there(site: rig.Site) -> None:
    ours, far = (await site.client.get("/api/v1/queues")).json()

    assert (ours["name"], ours["waiting"], len(ours["workers"])) == ("", 0, 1)
    assert (far["name"], far["waiting"], far["workers"]) == (PROD, 1, [])
    assert (far["unserved"], far["problem"]) == (["trip DriveLeg"], None)
    (worker,) = (await site.client.get("/api/v1/workers")).json()
    assert worker["queues"] == [""]


async def test_streams_and_effects_name_their_queue(site: rig.Site) -> None:
    stream = (await site.client.get("/api/v1/streams/trip/a-1")).json()
    effects = (await site.client.get("/api/v1/effects")).json()["items"]

    assert (stream["queue"], [each["queue"] for each in effects]) == (PROD, [PROD])


async def test_the_page_of_streams_says_what_nobody_serves_after_a_grace(
    site: rig.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = (await site.client.get("/streams")).text
    monkeypatch.setattr(visibility, "GRACE", timedelta(0))
    late = (await site.client.get("/streams")).text

    assert "no worker serves" not in early
    assert "no worker serves kubernetes@prod since 20" in late
    assert "no worker serves kubernetes@prod" in (await site.client.get("/streams/trip/a-1")).text
    assert "no worker serves" not in (await site.client.get("/streams/depot/a")).text


async def test_whoever_has_a_scope_hears_of_the_queues_of_their_own_streams(
    site: rig.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visibility, "GRACE", timedelta(0))
    order = {"type": "Order", "data": {"depot": "b", "trips": 1}}
    body = {**order, "queue": "kubernetes@test"}
    await site.client.post("/api/v1/streams/depot/payments/b/commands", json=body)
    request = tokens.TokenRequest("pay", tokens.Role.VIEWER, scope="payments")
    minted = await site.engine.write(lambda s: tokens.mint(s, request, datetime.now(UTC)))

    seen = await site.client.get("/streams", headers=rig.bearer(minted))

    assert "no worker serves kubernetes@test" in seen.text
    assert PROD not in seen.text


async def test_figures_tell_how_long_work_has_waited_for_a_worker(site: rig.Site) -> None:
    figures = parsed((await site.client.get("/metrics")).text)

    assert figures["fairlead_queue_effects", (("queue", PROD),)] == 1
    assert figures["fairlead_queue_workers", (("queue", PROD),)] == 0
    assert figures["fairlead_queue_workers", (("queue", ""),)] == 1
    assert figures["fairlead_queue_unserved_seconds", (("queue", PROD),)] > 0
    assert figures["fairlead_queue_unserved_seconds", (("queue", ""),)] == 0


async def test_a_stream_that_is_moved_to_a_served_queue_goes_on(site: rig.Site) -> None:
    moved = await site.client.post(MOVE, json={"queue": ""})

    assert moved.json() == {"stream": "trip/a-1", "queue": "", "effects": 1}
    await site.settled("trip/a-1")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (MOVE, {"queue": "prod"}, 400),
        (MOVE, {}, 400),
        ("/api/v1/streams/trip/none/queue", {"queue": PROD}, 404),
    ],
)
async def test_a_move_that_makes_no_sense_is_refused(
    site: rig.Site, path: str, body: dict[str, str], status: int
) -> None:
    assert (await site.client.post(path, json=body)).status_code == status
