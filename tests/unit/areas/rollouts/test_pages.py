"""The pages of rollouts as the server writes them; tests/browser shows them at work."""

import datetime as dt
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead.access import tokens
from fairlead.analysis.conditions import Phase as CheckPhase
from fairlead.areas.rollouts import pages
from fairlead.areas.rollouts.domain import events, view
from fairlead.areas.rollouts.domain.slots import Slot, SlotTraffic
from fairlead.engine import visibility
from tests.fakes import fleet
from tests.unit.web import rig

HTML = {"Accept": "text/html"}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    async with rig.site(tmp_path, fleet.Fleet().cast()) as running:
        yield running


async def page(site: rig.Site, path: str) -> str:
    answer = await site.client.get(path, headers=HTML)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_an_empty_list_says_how_to_fill_it(site: rig.Site) -> None:
    text = await page(site, "/")

    assert "No rollout yet." in text
    assert "fairlead demo" in text
    assert 'href="/streams"' in text


async def test_an_address_without_a_name_leads_to_the_list(site: rig.Site) -> None:
    answer = await site.client.get("/rollouts", headers={"Accept": "text/html"})

    assert (answer.status_code, answer.headers["location"]) == (303, "/")


async def test_the_list_puts_what_waits_for_a_person_first(site: rig.Site) -> None:
    await fleet.live(site.engine, "alpha")
    await fleet.halfway(site.engine, "zulu")

    text = await page(site, "/")

    assert text.index("/rollouts/zulu") < text.index("/rollouts/alpha")
    assert "1 waiting for a person" in text
    assert "Awaiting approval" in text
    assert 'aria-label="v1 has 90 %, v2 has 10 %"' in text


async def test_a_rollout_that_no_worker_performs_says_so(
    site: rig.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visibility, "GRACE", dt.timedelta(0))
    await fleet.live(site.engine, "served")
    await fleet.want(site.engine, "shop", "v1", queue="kubernetes@prod")

    assert "no worker serves kubernetes@prod since" in await page(site, "/rollouts/shop")
    assert "no worker serves" not in await page(site, "/rollouts/served")


async def test_the_page_of_a_rollout_offers_only_what_fits(site: rig.Site) -> None:
    await fleet.halfway(site.engine, "shop")

    text = await page(site, "/rollouts/shop")

    shown = re.findall(r'id="verb-([a-z]+)"', text)
    assert shown == ["approve", "promote", "pause", "abort", "delete"]
    assert "verb-resume" not in text
    assert "verb-rollback" not in text
    assert "current" in text
    assert "error rate" in text
    # On a phone the line ends before the number, never between it and its sign.
    assert "canary weight is 10\N{NO-BREAK SPACE}%" in text


async def test_one_who_may_only_look_gets_no_buttons(site: rig.Site) -> None:
    await fleet.halfway(site.engine, "shop")
    viewer = rig.bearer(await site.token(tokens.Role.VIEWER))

    text = (await site.client.get("/rollouts/shop", headers=HTML | viewer)).text

    assert "data-verb" not in text
    assert "actions need the role operator" in text


COUNTED = (SlotTraffic(Slot.PRIMARY, 260, 0, 11.0), SlotTraffic(Slot.CANARY, 29, 4, 14.0))


async def rolled_back(site: rig.Site, made: fleet.Fleet) -> None:
    """Version 2 is rolled back by its check, with 4 of its 29 requests failed."""
    made.errors["shop-v2"], made.counted["shop"] = 7.0, COUNTED
    await fleet.live(site.engine, "shop")
    await fleet.want(site.engine, "shop", "v2")
    await fleet.until(site.engine, "shop", lambda seen: seen.rollout.phase == "RolledBack")


async def test_the_numbers_of_an_ended_run_are_there_after_a_restart(tmp_path: Path) -> None:
    made = fleet.Fleet()
    async with rig.site(tmp_path, made.cast(fleet.Counted())) as site:
        await rolled_back(site, made)
        before = await page(site, "/rollouts/shop")
    async with rig.site(tmp_path, fleet.Fleet().cast(fleet.Counted())) as site:
        after = await page(site, "/rollouts/shop")

    for text in (before, after):
        assert "86.2 %, 4 of 29 failed" in text
        assert "100 %, 0 of 260 failed" in text
        assert "limit 1" in text
        assert "error rate failed at step 1, 7" in text
        assert "rolled back here" in text


async def test_an_earlier_run_has_a_page_of_its_own(site: rig.Site) -> None:
    await fleet.halfway(site.engine, "shop")
    await site.client.post("/api/v1/rollouts/shop/abort", json={})
    await fleet.until(site.engine, "shop", lambda seen: seen.rollout.phase == "RolledBack")
    await site.client.post("/api/v1/rollouts/shop/retry", json={})
    await fleet.until(site.engine, "shop", lambda seen: seen.rollout.phase == "AwaitingApproval")

    newest, first = await page(site, "/rollouts/shop"), await page(site, "/rollouts/shop?run=1")
    unknown = await site.client.get("/rollouts/shop?run=9", headers=HTML)

    assert "Steps of the current run, v2" in newest
    assert "?run=1" in newest
    assert "Steps of run 1, v2" in first
    assert "rolled back here" in first
    assert unknown.status_code == 404
    assert "no such run is kept: 9" in unknown.text


async def test_where_nobody_counts_requests_the_page_says_so(site: rig.Site) -> None:
    await fleet.halfway(site.engine, "shop")

    text = await page(site, "/rollouts/shop")

    assert "Requests by version are not recorded here" in text


async def test_a_rollout_of_a_cluster_is_reached_by_its_short_name(site: rig.Site) -> None:
    name = "shops/web/7f3c1a60-0000-4000-8000-000000000001"
    await fleet.live(site.engine, name)

    text = await page(site, "/rollouts/shops/web")

    assert "<h1>shops/web</h1>" in text
    assert f'href="/streams/rollout/{name}"' in text


async def test_what_people_write_stays_text(site: rig.Site) -> None:
    await fleet.halfway(site.engine, "shop")
    why = '<img src=x onerror="alert(1)">'
    await site.client.post("/api/v1/rollouts/shop/pause", json={"why": why})

    for path in ("/", "/rollouts/shop"):
        text = await page(site, path)

        assert "&lt;img src=x" in text
        assert "<img" not in text


async def test_a_rollout_that_is_not_there_is_told_on_a_page(site: rig.Site) -> None:
    answer = await site.client.get("/rollouts/none", headers=HTML)

    assert answer.status_code == 404
    assert "error: no such rollout: none" in answer.text
    assert "hint: list them with fairlead get rollouts" in answer.text


async def test_the_script_comes_from_here_and_leads_nowhere_else(site: rig.Site) -> None:
    answer = await site.client.get("/assets/rollout.js")

    assert answer.status_code == 200
    assert "://" not in answer.text
    assert "innerHTML" not in answer.text


async def test_a_cookie_alone_commands_nothing(site: rig.Site) -> None:
    await fleet.halfway(site.engine, "shop")
    token = await site.token(tokens.Role.OPERATOR)
    await site.client.post("/login", content=f"token={token.text}")
    path, ours = "/api/v1/rollouts/shop/pause", {"Origin": rig.LOOPBACK.url}

    bare = await site.client.post(path, json={})
    foreign = await site.client.post(path, json={}, headers={"Origin": "https://evil.example"})
    from_page = await site.client.post(path, json={}, headers=ours)

    assert (bare.status_code, foreign.status_code, from_page.status_code) == (403, 403, 200)
    assert "the cookie alone" in bare.json()["error"]["message"]


def test_every_phase_step_verdict_and_ending_has_a_sign_and_words() -> None:
    phases = {each.value for each in view.Phase}
    endings = {"", *(each.value for each in events.Ending)}
    ours = {"Waiting", "GoodSoFar", "NoVerdict"}
    checks = {each.value for each in CheckPhase} - {"Pending"} | ours

    assert set(pages.PHASES) == phases
    assert set(pages.ENDINGS) == endings
    assert set(pages.CHECKS) == checks
