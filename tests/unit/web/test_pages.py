"""The first page: what it shows, that it escapes, and how a person shows a token."""

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead.access import tokens
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


@pytest.mark.parametrize("name", ["live.js", "verbs.js", "style.css"])
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


async def test_an_address_that_leads_nowhere_is_a_page_too(site: rig.Site) -> None:
    answer = await site.client.get("/nope", headers=HTML)
    program = await site.client.get("/nope")

    assert answer.status_code == program.status_code == 404
    assert "no such page: /nope" in answer.text
    assert program.json()["error"]["code"] == "not_found"


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
    assert "Secure" not in cookie
    assert then.status_code == 200


async def test_behind_https_the_cookie_never_goes_over_plain_http(site: rig.Site) -> None:
    token = await site.token(tokens.Role.VIEWER)
    site.app.state.context = dataclasses.replace(site.context, https=True)

    entered = await site.client.post("/login", content=f"token={token.text}")

    assert "Secure" in entered.headers["set-cookie"].split("; ")


async def test_the_cookie_holds_no_token(site: rig.Site) -> None:
    token = await site.token(tokens.Role.ADMIN)

    entered = await site.client.post("/login", content=f"token={token.text}")

    # A workload on another port of this host gets the cookie, too.
    assert token.text.rpartition("_")[2] not in entered.headers["set-cookie"]
    (kept,) = site.client.cookies.values()
    alone = {"Authorization": f"Bearer {kept}", "Cookie": ""}
    assert (await site.client.get("/api/v1/me", headers=alone)).status_code == 401


async def test_a_token_in_the_cookie_opens_nothing(site: rig.Site) -> None:
    token = await site.token(tokens.Role.ADMIN)
    await site.client.post("/login", content=f"token={token.text}")
    (name,) = site.client.cookies

    shown = {"Cookie": f"{name}={token.text}"}
    site.client.cookies.clear()
    answer = await site.client.get("/api/v1/me", headers=shown)

    assert answer.status_code == 401


async def test_who_signs_out_is_out_wherever_the_cookie_is_kept(site: rig.Site) -> None:
    token = await site.token(tokens.Role.ADMIN)
    await site.client.post("/login", content=f"token={token.text}")
    (name,), (kept,) = list(site.client.cookies), site.client.cookies.values()
    page = await site.client.get("/", headers=HTML)

    left = await site.client.post("/logout", headers={"Origin": str(site.client.base_url)})

    assert 'action="/logout"' in page.text
    assert (left.status_code, left.headers["location"]) == (303, "/login")
    assert list(site.client.cookies) == []
    stolen = {"Cookie": f"{name}={kept}"}
    assert (await site.client.get("/api/v1/me", headers=stolen)).status_code == 401


async def test_who_shows_a_token_is_offered_no_way_out(site: rig.Site) -> None:
    token = await site.token(tokens.Role.VIEWER)

    page = await site.client.get("/", headers={**HTML, **rig.bearer(token)})

    assert page.status_code == 200
    assert "/logout" not in page.text


async def test_a_form_that_is_larger_than_any_token_is_refused(site: rig.Site) -> None:
    answer = await site.client.post("/login", content="token=" + "&a=b" * 250_000)

    assert answer.status_code == 413


async def test_a_form_of_many_fields_is_refused(site: rig.Site) -> None:
    answer = await site.client.post("/login", content="&".join(["a=b"] * 100))

    assert answer.status_code == 400


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


async def test_a_stream_says_that_its_first_events_are_in_the_archive(site: rig.Site) -> None:
    await site.client.post("/api/v1/streams/depot/a/commands", json=rig.ORDER)
    await site.settled("depot/a")
    cut = {"stream": 1, "seen": 1, "kept_from": 3}
    await site.engine.write(lambda s: s.rows("trim_stream", **cut, names=[]))

    page = await site.client.get("/streams/depot/a")
    events = (await site.client.get("/api/v1/streams/depot/a/events")).json()

    assert "Events before 3 are in the archive." in page.text
    assert "earlier events" not in page.text
    assert (events["kept_from"], events["items"][0]["seq"]) == (3, 3)


async def test_the_list_of_streams_is_searched_without_a_script(site: rig.Site) -> None:
    await site.client.post(COMMANDS, json=rig.ORDER)
    await site.settled("depot/a")

    fits = await site.client.get("/streams", params={"where": "open=false"}, headers=HTML)
    none = await site.client.get("/streams", params={"where": "open=true"}, headers=HTML)

    assert '<a href="/streams/depot/a">depot/a</a>' in fits.text
    assert '<input name="where" type="search" value="open=false"' in fits.text
    assert "No stream fits this filter." in none.text


async def test_what_was_typed_stays_with_what_is_wrong_about_it(site: rig.Site) -> None:
    typed = {"where": 'opne="<b>"'}

    page = await site.client.get("/streams", params=typed, headers=HTML)

    assert page.status_code == 400
    assert 'value="opne=&#34;&lt;b&gt;&#34;"' in page.text
    assert "error: unknown attribute: opne<br>hint: did you mean open?" in page.text


async def test_older_streams_are_searched_by_the_same_words(site: rig.Site) -> None:
    for number in range(101):
        order = {**rig.ORDER, "id": f"order-{number}"}
        await site.client.post(f"/api/v1/streams/depot/d{number}/commands", json=order)
    typed = {"where": "machine=depot and trips>0"}

    page = (await site.client.get("/streams", params=typed, headers=HTML)).text

    assert "&amp;where=machine%3Ddepot%20and%20trips%3E0" in page
