"""The JSON API on a running engine: what it tells, and how it takes commands."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.web import rig

COMMANDS = "/api/v1/streams/depot/a/commands"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    async with rig.site(tmp_path) as running:
        yield running


async def test_a_command_is_taken_once_under_its_id(site: rig.Site) -> None:
    first = await site.client.post(COMMANDS, json=rig.ORDER)
    again = await site.client.post(COMMANDS, json=rig.ORDER)

    assert first.status_code == again.status_code == 200
    assert first.json() == {
        "stream": "depot/a",
        "events": 2,
        "first": 1,
        "last": 2,
        "duplicate": False,
    }
    assert again.json() == {**first.json(), "duplicate": True}


async def test_the_same_id_with_other_words_is_a_conflict(site: rig.Site) -> None:
    await site.client.post(COMMANDS, json=rig.ORDER)

    data = {"depot": "a", "trips": 7, "legs": 2}
    answer = await site.client.post(COMMANDS, json={**rig.ORDER, "data": data})

    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "conflict"
    assert "new id" in answer.json()["error"]["hint"]


async def test_without_an_id_each_request_counts(site: rig.Site) -> None:
    unnamed = {"type": "Order", "data": {"depot": "a", "trips": 500, "legs": 9, "at_once": 1}}

    answers = [await site.client.post(COMMANDS, json=unnamed) for _ in range(2)]

    assert [answer.json()["duplicate"] for answer in answers] == [False, False]
    assert answers[1].json()["first"] > answers[0].json()["last"]


async def test_a_stream_its_events_and_the_feed_tell_the_same(site: rig.Site) -> None:
    await site.client.post(COMMANDS, json=rig.ORDER)
    ended = await site.settled("depot/a")

    events = (await site.client.get("/api/v1/streams/depot/a/events")).json()
    feed = (await site.client.get("/api/v1/feed")).json()

    assert ended["state"] == "Done"
    assert ended["data"] == {"trips": 1}
    assert [event["type"] for event in events["items"]] == ["Ordered", "Sent", "Returned", "Closed"]
    assert ended["version"] == len(events["items"]) == 4
    assert [event for event in feed["items"] if event["stream"] == "depot/a"] == events["items"]
    assert feed["next"] == feed["items"][-1]["place"]


async def test_lists_go_on_where_they_ended(site: rig.Site) -> None:
    for key in "abcde":
        path = f"/api/v1/streams/trip/{key}/commands"
        depart = {"depot": "depot/none", "trip": 1, "legs": 1}
        await site.client.post(path, json={"type": "Depart", "data": depart})

    seen = [each["name"] async for each in pages(site, "/api/v1/streams", "before", machine="trip")]

    assert seen == [f"trip/{key}" for key in "edcba"]


async def test_events_go_on_where_they_ended(site: rig.Site) -> None:
    await site.client.post(COMMANDS, json=rig.ORDER)
    await site.settled("depot/a")

    seen = [each["seq"] async for each in pages(site, "/api/v1/streams/depot/a/events", "after")]

    assert seen == [1, 2, 3, 4]


async def test_projections_and_workers_are_shown(site: rig.Site) -> None:
    await site.client.post(COMMANDS, json=rig.ORDER)
    await site.settled("depot/a")

    rows = await folded(site, last="Closed")
    workers = (await site.client.get("/api/v1/workers")).json()

    assert {row["key"]: row["data"]["last"] for row in rows} == {
        "depot/a": "Closed",
        "trip/a-1": "Arrived",
    }
    assert len(workers) == 1


async def test_machines_tell_their_words(site: rig.Site) -> None:
    told = {each["name"]: each for each in (await site.client.get("/api/v1/machines")).json()}

    assert set(told) == {"depot", "trip"}
    order = next(word for word in told["depot"]["commands"] if word["name"] == "Order")
    assert order["about"] == "Command to a depot: queue so many trips."
    assert set(order["json_schema"]["$defs"]["Order"]["required"]) == {"depot", "trips"}


async def test_a_dead_letter_is_seen_retried_and_discarded(tmp_path: Path) -> None:
    async with rig.site(tmp_path, rig.BLOCKED) as site:
        await site.client.post(COMMANDS, json=rig.ORDER)
        dead = await one_dead(site)

        assert dead["stream"] == "trip/a-1"
        assert dead["error"] == "Rejected: the road is closed"
        assert (await site.client.post(f"/api/v1/effects/{dead['id']}/retry")).status_code == 204

        dead = await one_dead(site)
        assert (await site.client.post(f"/api/v1/effects/{dead['id']}/discard")).status_code == 204
        assert (await site.client.get("/api/v1/effects")).json() == {"items": [], "next": None}
        gone = await site.client.post(f"/api/v1/effects/{dead['id']}/retry")
        assert gone.status_code == 404


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/api/v1/streams/depot/none", 404, "not_found"),
        ("/api/v1/streams/depot/none/events", 404, "not_found"),
        ("/api/v1/streams/DEPOT/a", 400, "rejected"),
        ("/api/v1/streams/depot/a b", 400, "rejected"),
        ("/api/v1/streams/depot/" + "x" * 300, 400, "rejected"),
        ("/api/v1/streams/depot/%00", 400, "rejected"),
        ("/api/v1/streams?limit=0", 400, "rejected"),
        ("/api/v1/streams?limit=100000", 400, "rejected"),
        ("/api/v1/streams?before=99999999999999999999", 400, "rejected"),
        ("/api/v1/streams?ended=perhaps", 400, "rejected"),
        ("/api/v1/feed?after=here", 400, "rejected"),
        ("/api/v1/feed?after=1.99999999999999999999", 400, "rejected"),
        ("/api/v1/feed?after=1.%D9%A1", 400, "rejected"),
        ("/api/v1/effects?stream=nonsense", 400, "rejected"),
        ("/api/v1/projections/none", 404, "not_found"),
        ("/api/v1/nothing", 404, "not_found"),
    ],
)
async def test_a_wrong_question_is_refused_with_a_hint(
    site: rig.Site, path: str, status: int, code: str
) -> None:
    answer = await site.client.get(path)

    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    assert answer.json()["error"]["hint"]


@pytest.mark.parametrize("effect", ["1", "1.2", "a.b.c", "1.2.99999999999999999999", "1.2.3"])
async def test_a_wrong_effect_is_refused(site: rig.Site, effect: str) -> None:
    answer = await site.client.post(f"/api/v1/effects/{effect}/retry")

    assert answer.status_code == (404 if effect == "1.2.3" else 400)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"Order"',
        b'{"data": {}}',
        b'{"type": 1}',
        b'{"type": "Order", "data": {}}',
        b'{"type": "Order", "data": []}',
        b'{"type": "Order", "data": {"depot": "a", "trips": "many"}}',
        b'{"type": "Order", "data": {"depot": "a", "trips": NaN}}',
        b'{"type": "Order", "data": {"depot": "\\ud800", "trips": 1}}',
        b'{"type": "Order", "data": {"depot": "a", "trips": 0}}',
        b'{"type": "Nonsense", "data": {}}',
        b'{"type": "Order", "data": {"depot": "a", "trips": 1}, "id": ""}',
        b'{"type": "Order", "data": {"depot": "a", "trips": 1}, "id": "a\\nb"}',
        b'{"type": "Order", "data": {"depot": "a", "trips": 1}, "surprise": 1}',
        b'{"type": "Order", "data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"\xff\xfe",
        b'{"type": "Order", "data": {"depot": "\xff", "trips": 1}}',
        b'{"type": "Order", "data": {"\xed\xa0\x80": "a", "trips": 1}}',
    ],
)
async def test_a_malformed_command_changes_nothing(site: rig.Site, body: bytes) -> None:
    answer = await site.client.post(
        COMMANDS, content=body, headers={"Content-Type": "application/json"}
    )

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["hint"]
    assert (await site.client.get("/api/v1/streams")).json()["items"] == []


async def test_a_form_cannot_pass_for_a_command(site: rig.Site) -> None:
    answer = await site.client.post(
        COMMANDS, content=b'{"type": "Order"}', headers={"Content-Type": "text/plain"}
    )

    assert answer.status_code == 400
    assert "application/json" in answer.json()["error"]["hint"]


async def test_an_unknown_machine_names_the_known_ones(site: rig.Site) -> None:
    answer = await site.client.post("/api/v1/streams/gadget/a/commands", json=rig.ORDER)

    assert answer.status_code == 404
    assert answer.json()["error"]["hint"] == "known machines: depot, trip"


async def pages(site: rig.Site, path: str, cursor: str, **query: str) -> AsyncIterator[Any]:
    further: str | None = ""
    while further is not None:
        step = {**query, "limit": "2", **({cursor: further} if further else {})}
        page = (await site.client.get(path, params=step)).json()
        assert len(page["items"]) <= 2
        for item in page["items"]:
            yield item
        further = page["next"]


async def test_effects_are_told_page_by_page(tmp_path: Path) -> None:
    async with rig.site(tmp_path, rig.BLOCKED) as site:
        await site.client.post(COMMANDS, json=rig.ORDER)
        dead = await one_dead(site)

        first = (await site.client.get("/api/v1/effects?limit=1")).json()
        after = await site.client.get(f"/api/v1/effects?after={dead['id']}")
        wrong = await site.client.get("/api/v1/effects?after=soon")

    assert [one["id"] for one in first["items"]] == [dead["id"]]
    assert after.json() == {"items": [], "next": None}
    assert wrong.status_code == 400


async def folded(site: rig.Site, last: str) -> list[dict[str, Any]]:
    """The projection's rows once the depot's shows this event."""
    for _ in range(2000):
        page = (await site.client.get("/api/v1/projections/events_by_stream")).json()
        if last in (row["data"]["last"] for row in page["items"]):
            return list(page["items"])
    raise AssertionError("the projection did not follow")


async def one_dead(site: rig.Site) -> dict[str, Any]:
    for _ in range(2000):
        found = (await site.client.get("/api/v1/effects?dead=true")).json()["items"]
        if found:
            assert len(found) == 1
            return dict(found[0])
    raise AssertionError("no dead effect")


async def test_streams_are_found_by_what_their_machine_declares(site: rig.Site) -> None:
    await site.client.post(COMMANDS, json=rig.ORDER)
    await site.settled("depot/a")

    async def found(where: str, **more: str) -> list[str]:
        answer = await site.client.get("/api/v1/streams", params={"where": where, **more})
        return [each["name"] for each in answer.json()["items"]]

    assert await found("open=false and trips<=1") == ["depot/a"]
    assert await found("open=true", machine="depot") == []
    assert await found("machine=depot", ended="true") == ["depot/a"]


@pytest.mark.parametrize(
    ("where", "message", "hint"),
    [
        ("opne=true", "unknown attribute: opne", "did you mean open?"),
        ("open=", "filter not understood at character 6, expected a value: open=", "NAME=VALUE"),
        ("open=true' OR '1'='1", "filter not understood at character 10", "NAME=VALUE"),
    ],
)
async def test_a_filter_that_cannot_be_read_is_refused(
    site: rig.Site, where: str, message: str, hint: str
) -> None:
    answer = await site.client.get("/api/v1/streams", params={"where": where})

    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(message)
    assert hint in answer.json()["error"]["hint"]


async def test_machines_tell_what_their_streams_are_found_by(site: rig.Site) -> None:
    told = (await site.client.get("/api/v1/machines")).json()

    attributes = {each["name"]: each["attributes"] for each in told}
    assert attributes == {"depot": {"open": "bool", "trips": "int"}, "trip": {}}
