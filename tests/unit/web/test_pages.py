"""The first page: what it shows, that it escapes, and how a person shows a token."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead.intents import tokens
from tests.unit.web import rig

HTML = {"Accept": "text/html"}
COMMANDS = "/api/v1/streams/depot/a/commands"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    async with rig.site(tmp_path) as running:
        yield running


async def test_the_list_links_to_each_stream(site: rig.Site) -> None:
    await site.client.post(COMMANDS, json=rig.ORDER)
    await site.settled("depot/a")

    page = (await site.client.get("/streams", headers=HTML)).text
    one = (await site.client.get("/streams/depot/a", headers=HTML)).text

    assert '<a href="/streams/depot/a">depot/a</a>' in page
    assert "<td>Done</td>" in page
    assert [word for word in ("Ordered", "Sent", "Returned", "Closed") if word not in one] == []


async def test_what_people_write_is_never_markup(site: rig.Site) -> None:
    data = {"depot": "<script>alert(1)</script>", "trip": 1, "legs": 9}
    depart = {"type": "Depart", "data": data, "id": "<img src=x onerror=alert(1)>"}
    sent = await site.client.post("/api/v1/streams/trip/x/commands", json=depart)

    page = (await site.client.get("/streams/trip/x", headers=HTML)).text

    assert sent.status_code == 200
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&lt;img src=x" in page
    assert "<script>alert" not in page
    assert "<img" not in page


async def test_browsers_are_told_to_run_nothing_foreign(site: rig.Site) -> None:
    for path in ("/", "/api/v1/streams", "/none", "/healthz"):
        headers = (await site.client.get(path)).headers

        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    page = (await site.client.get("/")).text
    assert "http://" not in page
    assert "https://" not in page


@pytest.mark.parametrize("name", ["live.js", "style.css"])
async def test_assets_are_our_own(site: rig.Site, name: str) -> None:
    answer = await site.client.get(f"/assets/{name}")

    assert answer.status_code == 200
    assert "://" not in answer.text


@pytest.mark.parametrize("name", ["none.js", "..%2Fserver.py", "../server.py"])
async def test_nothing_else_is_served_as_an_asset(site: rig.Site, name: str) -> None:
    assert (await site.client.get(f"/assets/{name}")).status_code == 404


async def test_a_person_is_told_on_a_page(site: rig.Site) -> None:
    answer = await site.client.get("/streams/depot/none", headers=HTML)

    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "hint: list them with fairlead get" in answer.text


async def test_a_person_shows_a_token_once(site: rig.Site) -> None:
    token = await site.token(tokens.Role.VIEWER)

    first = await site.client.get("/", headers=HTML)
    entered = await site.client.post("/login", content=f"token={token.text}")
    then = await site.client.get("/", headers=HTML)

    assert (first.status_code, first.headers["location"]) == (303, "/login")
    assert entered.status_code == 303
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert then.status_code == 200


async def test_a_wrong_token_leads_back_to_the_form(site: rig.Site) -> None:
    answer = await site.client.post("/login", content="token=<b>wrong</b>")

    assert answer.status_code == 401
    assert "error: the token is malformed" in answer.text
    assert "set-cookie" not in answer.headers


async def test_the_cookie_does_not_command_for_a_foreign_page(site: rig.Site) -> None:
    token = await site.token(tokens.Role.ADMIN)
    await site.client.post("/login", content=f"token={token.text}")

    foreign = {"Origin": "https://evil.example"}
    answer = await site.client.post(COMMANDS, json=rig.ORDER, headers=foreign)

    assert answer.status_code == 403
