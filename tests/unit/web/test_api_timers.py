"""Timers over the API: the dead are seen, retried and discarded."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead.access import tokens
from fairlead.engine.store import protocol
from tests.unit.web import rig

NAME = {"stream": "trip/a-1", "name": "late"}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    """A control plane with one dead timer."""
    async with rig.site(tmp_path) as running:
        await running.client.post("/api/v1/streams/depot/a/commands", json=rig.ORDER)
        await running.settled("depot/a")
        await running.engine.write(_bury)
        yield running


def _bury(session: protocol.Session) -> None:
    number = session.rows("get_stream", name="trip/a-1")[0][0]
    timer = protocol.NewTimer(number, "late", 1, 2**50, "Arrive", 1, '{"leg":1}')
    with session.transaction() as transaction:
        transaction.load(protocol.Needed([]))
        transaction.write(protocol.Writes(1, timers=[timer]))
    values = {"due": 1, "dead": 1, "error": "will not", "attempts": 12}
    session.rows("postpone_timer", stream=number, name="late", seq=1, **values)


async def test_the_dead_are_listed(site: rig.Site) -> None:
    (timer,) = (await site.client.get("/api/v1/timers?dead=true")).json()

    assert (timer["stream"], timer["name"], timer["error"]) == ("trip/a-1", "late", "will not")
    assert (await site.client.get("/api/v1/timers?dead=false")).json() == []


@pytest.mark.parametrize("verb", ["retry", "discard"])
async def test_a_dead_timer_is_changed_once(site: rig.Site, verb: str) -> None:
    first = await site.client.post(f"/api/v1/timers/{verb}", json=NAME)
    again = await site.client.post(f"/api/v1/timers/{verb}", json=NAME)

    assert (first.status_code, again.status_code) == (204, 404)
    assert (await site.client.get("/api/v1/timers?dead=true")).json() == []


async def test_a_viewer_changes_no_timer(site: rig.Site) -> None:
    token = await site.token(tokens.Role.VIEWER)
    headers = {"Authorization": f"Bearer {token.text}"}

    answer = await site.client.post("/api/v1/timers/retry", json=NAME, headers=headers)

    assert answer.status_code == 403


async def test_a_timer_needs_both_of_its_names(site: rig.Site) -> None:
    answer = await site.client.post("/api/v1/timers/retry", json={"stream": "trip/a-1"})

    assert answer.status_code == 400
