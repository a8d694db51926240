"""A token of one project or namespace: what it opens, and that all else stays closed."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from fairlead.access import tokens
from fairlead.cli import serve_web
from fairlead.web import api, auth, health, live, pages
from tests.unit.web import rig

OURS = "depot/payments/north"
THEIRS = "depot/billing/south"
ORDER = {"type": "Order", "data": {"depot": "a", "trips": 1, "legs": 1}}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    async with rig.site(tmp_path) as running:
        for stream in (OURS, THEIRS, "depot/nobodys"):
            done = await running.client.post(f"/api/v1/streams/{stream}/commands", json=ORDER)
            assert done.status_code == 200
        yield running


async def scoped(site: rig.Site) -> dict[str, str]:
    request = tokens.TokenRequest("pay", tokens.Role.ADMIN, scope="payments")
    minted = await site.engine.write(lambda s: tokens.mint(s, request, datetime.now(UTC)))
    return rig.bearer(minted)


async def test_lists_hold_only_what_is_in_scope(site: rig.Site) -> None:
    headers = await scoped(site)

    listed = (await site.client.get("/api/v1/streams?machine=depot", headers=headers)).json()
    page = (await site.client.get("/streams", headers=headers)).text
    me = (await site.client.get("/api/v1/me", headers=headers)).json()

    assert [each["name"] for each in listed["items"]] == [OURS]
    assert (OURS in page, THEIRS in page, "nobodys" in page) == (True, False, False)
    assert me["scope"] == "payments"


@pytest.mark.parametrize(
    "where", ["trips=1", "trips!=0", "trips in (1, 2)", "machine=depot", "trips>=0 and trips<=9"]
)
async def test_no_filter_reaches_beyond_the_scope(site: rig.Site, where: str) -> None:
    headers, asked = await scoped(site), {"where": where}

    everywhere = (await site.client.get("/api/v1/streams", params=asked)).json()
    listed = (await site.client.get("/api/v1/streams", params=asked, headers=headers)).json()
    page = (await site.client.get("/streams", params=asked, headers=headers)).text

    assert len(everywhere["items"]) == 3
    assert [each["name"] for each in listed["items"]] == [OURS]
    assert (OURS in page, THEIRS in page, "nobodys" in page) == (True, False, False)


@pytest.mark.parametrize("path", ["/api/v1/streams/{}", "/api/v1/streams/{}/events", "/streams/{}"])
async def test_what_is_outside_is_as_if_it_were_not_there(site: rig.Site, path: str) -> None:
    headers = await scoped(site)

    ours = await site.client.get(path.format(OURS), headers=headers)
    theirs = await site.client.get(path.format(THEIRS), headers=headers)
    none = await site.client.get(path.format("depot/billing/nowhere"), headers=headers)

    assert (ours.status_code, theirs.status_code) == (200, 404)
    assert theirs.text.replace("south", "nowhere") == none.text


async def test_commands_reach_no_further_than_the_scope(site: rig.Site) -> None:
    headers = await scoped(site)
    again = {**ORDER, "id": "again"}

    ours = await site.client.post(f"/api/v1/streams/{OURS}/commands", json=again, headers=headers)
    theirs = await site.client.post(
        f"/api/v1/streams/{THEIRS}/commands", json=again, headers=headers
    )

    assert (ours.status_code, theirs.status_code) == (200, 404)


async def test_a_scope_does_not_choose_who_performs(site: rig.Site) -> None:
    headers = await scoped(site)
    body = {**rig.ORDER, "queue": "kubernetes@prod"}

    answer = await site.client.post(
        "/api/v1/streams/depot/payments/commands", json=body, headers=headers
    )

    assert answer.status_code == 403
    assert "may not choose a queue: kubernetes@prod" in answer.json()["error"]["message"]


async def test_the_live_feed_tells_of_no_other_scope(site: rig.Site) -> None:
    headers = {"authorization": (await scoped(site))["Authorization"]}

    async with rig.Wire(site.app, "/api/v1/feed/live", "after=0.0", headers).open() as wire:
        await wire.until(lambda text: '"Ordered"' in text)
        admin = rig.bearer(await site.token(tokens.Role.ADMIN))
        for stream in (THEIRS, OURS):
            again = {**ORDER, "id": f"again {stream}"}
            path = f"/api/v1/streams/{stream}/commands"
            await site.client.post(path, json=again, headers=admin)
        told = await wire.until(lambda text: f"again {OURS}" in text)

    assert set(re.findall(r'"stream":"([^"]+)"', told)) == {OURS}


async def test_every_route_that_heeds_no_scope_is_closed(site: rig.Site) -> None:
    headers = await scoped(site)
    tried = []
    for route in routes(site):
        if hasattr(route.endpoint, "honours_scope"):
            continue
        path = route.path.replace("{name:path}", "x").replace("{key:path}", "x")
        path = path.replace("{machine}", "depot").replace("{effect}", "1.1.1")
        path = path.replace("{name}", "x").replace("{verb}", "x")
        if path in auth.OPEN or path.startswith((auth.ASSETS, auth.HOOKS)):
            continue
        for method in route.methods or ():
            answer = await site.client.request(method, path, headers=headers, json={})
            tried.append((method, path, answer.status_code))

    assert len(tried) > 5
    assert [each for each in tried if each[2] != 403] == []


def routes(site: rig.Site) -> list[APIRoute]:
    """All that were mounted, of the house and of its areas."""
    mounts = serve_web.mounted(rig.CAST)
    brought = [router for mount in mounts for router in (*mount.apis, *mount.pages)]
    ours = [live.router, api.router, health.router, pages.router]
    found = [route for router in (*brought, *ours) for route in router.routes]
    return [route for route in found if isinstance(route, APIRoute)]


def test_a_mark_is_on_the_routes_that_filter_by_themselves() -> None:
    @auth.within_scope
    def route() -> None:
        pass

    assert vars(route)["honours_scope"] is True
