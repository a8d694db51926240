"""The pages of rollouts in a real browser: they follow by themselves, and their buttons steer."""

import dataclasses
import datetime as dt

import pytest
from playwright.async_api import Page, expect

from fairlead.access import tokens
from fairlead.areas.rollouts.domain.slots import Slot
from tests.browser.conftest import PATIENCE_MS, Plane, Window
from tests.fakes import fleet

pytestmark = pytest.mark.slow
expect.set_options(timeout=PATIENCE_MS)


async def mark(page: Page) -> None:
    """Put something into the page that a reload would take away."""
    await page.evaluate("window.untouched = true")


async def untouched(page: Page) -> bool:
    return bool(await page.evaluate("window.untouched === true"))


async def test_the_list_fills_and_follows_without_a_reload(plane: Plane, window: Window) -> None:
    async with window.tab() as page:
        await page.goto(plane.url)
        await expect(page.get_by_text("No rollout yet.")).to_be_visible()
        await expect(page.locator("#live")).to_have_text("live")
        await mark(page)

        await fleet.halfway(plane.site.engine, "shop")

        row = page.get_by_role("listitem").filter(has_text="shop")
        await expect(row).to_contain_text("Awaiting approval")
        await expect(row.get_by_role("img")).to_have_attribute(
            "aria-label", "v1 has 90 %, v2 has 10 %"
        )
        assert await untouched(page)
        await row.get_by_role("link").click()
        await expect(page.get_by_role("heading", name="shop")).to_be_visible()
    assert window.complaints == []


async def test_approve_moves_the_weights_before_your_eyes_in_every_tab(
    plane: Plane, window: Window
) -> None:
    await fleet.halfway(plane.site.engine, "shop")
    async with window.tab() as page, window.tab() as other:
        for each in (page, other):
            await each.goto(f"{plane.url}/rollouts/shop")
            await expect(each.locator("#live")).to_have_text("live")
            await mark(each)

        await page.get_by_role("button", name="Approve").click()

        for each in (page, other):
            bar = each.locator(".bar")
            await expect(bar).to_have_attribute("aria-label", "v1 has 50 %, v2 has 50 %")
            await expect(each.get_by_text("Approved")).to_be_visible()
            assert await untouched(each)
    assert plane.behind.weight("shop") == 50
    assert window.complaints == []


async def test_abort_asks_first_and_then_returns_all_traffic_to_stable(
    plane: Plane, window: Window
) -> None:
    await fleet.halfway(plane.site.engine, "shop")
    async with window.tab() as page:
        await page.goto(f"{plane.url}/rollouts/shop")
        await mark(page)

        await page.get_by_role("button", name="Abort").click()
        await page.get_by_role("button", name="Cancel").click()
        left = plane.behind.weight("shop")
        await page.get_by_role("button", name="Abort").click()
        await page.get_by_label("Why").fill("empty baskets")
        await page.get_by_role("dialog").get_by_role("button", name="Abort").click()

        await expect(page.locator(".head")).to_contain_text("Rolled back")
        await expect(page.locator(".lead")).to_contain_text("empty baskets")
        await expect(page.get_by_role("button", name="Retry")).to_be_visible()
        await expect(page.get_by_role("button", name="Abort")).to_have_count(0)
        assert await untouched(page)
    assert left == 10
    assert plane.behind.weight("shop") == 0
    assert window.complaints == []


async def test_promote_and_roll_back_to_a_kept_version(plane: Plane, window: Window) -> None:
    await fleet.halfway(plane.site.engine, "shop")
    async with window.tab() as page:
        await page.goto(f"{plane.url}/rollouts/shop")

        await page.get_by_role("button", name="Promote now").click()
        await page.get_by_role("dialog").get_by_role("button", name="Promote").click()
        await expect(page.locator(".lead")).to_contain_text("v2 has had all traffic")
        await page.get_by_role("button", name="Roll back").click()
        await page.get_by_label("Version").select_option(label="v1")
        await page.get_by_role("dialog").get_by_role("button", name="Roll back").click()

        await expect(page.locator(".lead")).to_contain_text("v1 has had all traffic")
    assert plane.behind.weight("shop") == 0


async def test_the_keyboard_is_enough_and_keeps_its_place(plane: Plane, window: Window) -> None:
    await fleet.halfway(plane.site.engine, "shop")
    async with window.tab() as page:
        await page.goto(f"{plane.url}/rollouts/shop")
        await expect(page.locator("#live")).to_have_text("live")

        await page.keyboard.press("Tab")
        first = await page.evaluate("document.activeElement.textContent")
        await page.get_by_role("button", name="Abort").focus()
        await plane.site.client.post("/api/v1/rollouts/shop/pause", json={"why": "lunch"})
        await expect(page.locator(".head")).to_contain_text("Paused")
        kept = await page.evaluate("document.activeElement.id")
        await page.keyboard.press("Enter")
        await page.keyboard.press("Escape")
        after = await page.evaluate("document.activeElement.id")
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("Why")).to_be_focused()
        await page.keyboard.type("by hand")
        await page.keyboard.press("Enter")

        await expect(page.locator(".head")).to_contain_text("Rolled back")
    assert first == "Skip to the content"
    assert kept == after == "verb-abort"
    assert plane.behind.weight("shop") == 0


async def test_a_refusal_is_told_with_its_hint(plane: Plane, window: Window) -> None:
    await fleet.halfway(plane.site.engine, "shop")
    async with window.tab() as page:
        # A page that does not hear what happens, as one on a bad line.
        await page.route("**/api/v1/feed/live*", lambda route: route.abort())
        await page.goto(f"{plane.url}/rollouts/shop")
        await expect(page.locator("#live")).to_have_text("not connected, retrying")
        await plane.site.client.post("/api/v1/rollouts/shop/abort", json={})
        await plane.shows("RolledBack")

        await page.evaluate("document.getElementById('verb-approve').click()")

        await expect(page.get_by_role("alert")).to_contain_text(
            "Not done: no step is waiting for approval"
        )
        await expect(page.get_by_role("alert")).to_contain_text("Hint: `fairlead")


async def test_numbers_are_drawn_and_followed(plane: Plane, window: Window) -> None:
    await fleet.halfway(plane.site.engine, "shop")
    count(plane, failed=0)
    async with window.tab() as page:
        await page.goto(f"{plane.url}/rollouts/shop")
        success = page.get_by_role("img", name="Success rate: v1 100 %, 0 of 200 failed, v2 100 %")
        await expect(success).to_be_visible()
        await expect(page.get_by_role("img", name="Canary weight: v2 10 %")).to_be_visible()
        await mark(page)

        count(plane, failed=20)

        worse = page.get_by_role("img", name="v2 95 %, 20 of 400 failed")
        await expect(worse).to_be_visible()
        await page.get_by_text("The numbers as a table").click()
        await expect(page.locator("#chart .numbers")).to_contain_text("v2: 400 requests, 20 failed")
        await plane.site.client.post("/api/v1/rollouts/shop/abort", json={})
        await expect(page.get_by_text("rolled back here")).to_be_visible()
        await expect(worse).to_be_visible()
        assert await untouched(page)
    assert window.complaints == []


def count(plane: Plane, failed: int) -> None:
    now = dt.datetime.now(dt.UTC)
    plane.counted.add("shop", fleet.point(now, Slot.PRIMARY, 90))
    plane.counted.add("shop", fleet.point(now, Slot.CANARY, 10, failed))


async def test_without_numbers_the_page_says_so(plane: Plane, window: Window) -> None:
    await fleet.halfway(plane.site.engine, "shop")
    async with window.tab() as page:
        await page.goto(f"{plane.url}/rollouts/shop")

        await expect(page.get_by_text("No requests in this time.")).to_be_visible()


@pytest.mark.parametrize("path", ["/", "/rollouts/shop", "/streams"])
async def test_a_phone_shows_all_of_it_without_scrolling_sideways(
    plane: Plane, window: Window, path: str
) -> None:
    await fleet.halfway(plane.site.engine, "shop")
    async with window.tab(width=360) as page:
        await page.goto(f"{plane.url}{path}")

        wide = await page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 360


async def test_a_session_is_needed_and_only_our_page_may_use_it(
    plane: Plane, window: Window
) -> None:
    await fleet.halfway(plane.site.engine, "shop")
    token = await plane.site.token(tokens.Role.OPERATOR)
    pause = f"{plane.url}/api/v1/rollouts/shop/pause"
    async with window.tab() as page:
        nobody = await page.context.request.post(pause, data={})
        await page.goto(f"{plane.url}/rollouts/shop")
        await page.get_by_label("Token").fill(token.text)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("heading", name="Rollouts")).to_be_visible()
        # With the cookie, but from no page of ours.
        stray = await page.context.request.post(pause, data={})
        await steal(page, pause)
        stolen = (await plane.shows("AwaitingApproval")).rollout.phase
        await page.goto(f"{plane.url}/rollouts/shop")
        await page.get_by_role("button", name="Pause").click()

        await expect(page.locator(".lead")).to_contain_text("paused by a operator")
    assert (nobody.status, stray.status) == (401, 403)
    assert stolen == "AwaitingApproval"


async def steal(page: Page, target: str) -> None:
    """What another site can do in this browser: send a form to us."""
    form = f'<form method="post" action="{target}" enctype="text/plain"><input name="x"></form>'
    await page.route(
        "**/evil.example/**",
        lambda route: route.fulfill(body=form, content_type="text/html"),
    )
    await page.goto("http://evil.example/")
    async with page.expect_response(lambda answer: answer.url == target) as sent:
        await page.evaluate("document.forms[0].submit()")
    assert (await sent.value).status in (401, 403)
    await page.wait_for_url(target)


async def test_a_baseline_has_its_part_of_the_bar(plane: Plane, window: Window) -> None:
    strategy = dataclasses.replace(fleet.SPEC.strategy, baseline=True)
    spec = dataclasses.replace(fleet.SPEC, strategy=strategy)
    await fleet.halfway(plane.site.engine, "shop", spec)

    async with window.tab() as page:
        await page.goto(f"{plane.url}/rollouts/shop")
        legend = page.locator(".legend .key.baseline").first
        await expect(legend).to_have_text("baseline 10 %")
        bar = page.locator("svg.bar rect.baseline").first
        assert await bar.get_attribute("width") == "10%"
        assert await bar.get_attribute("x") == "80%"
    assert window.complaints == []
