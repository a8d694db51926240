"""Every page, wide and narrow, in light and in dark: axe finds nothing to complain about."""

import dataclasses
import datetime as dt
from typing import Literal

import pytest
from playwright.async_api import Page, expect

from fairlead.access import tokens
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.workload_logs import WORKLOAD_LOGS, LogLine, LogPage, LogRequest
from tests.browser.conftest import Plane, Window
from tests.browser.seen import Seen
from tests.fakes import deployments as story
from tests.fakes import fleet

pytestmark = pytest.mark.slow
Scheme = Literal["light", "dark"]
PATHS = {
    "list": "/",
    "in progress": "/rollouts/shop",
    "rolled back": "/rollouts/cart",
    "stable": "/rollouts/payments/web",
    "logs": "/rollouts/shop/logs",
    "streams": "/streams",
    "filter refused": "/streams?where=phase",
    "stream": "/streams/rollout/shop",
    "error": "/rollouts/none",
    "nowhere": "/nowhere",
    "stacks": "/stacks",
    "stack": "/stacks/prod/shop",
    "stack broken": "/stacks/prod/till",
    "deployment running": "/deployments/prod/shop/v2",
    "deployment asks": "/deployments/prod/desk/v1",
    "deployment failed": "/deployments/prod/till/v7",
    "triggers": "/triggers",
    "trigger": "/triggers/main:1",
    "stored": "/definitions",
    "push target": "/definitions/push-target/prod/shop?compare=2",
    "push target edited": "/definitions/push-target/prod/shop?edit=true",
}


class FakeLogs:
    """Logs of two processes, with a line that is wider than any window."""

    async def read(self, request: LogRequest) -> LogPage:
        lines = [LogLine("canary-r2.0", f"GET /basket 200 {request.name} " + "x" * 300)]
        return LogPage([LogLine("primary-r1.0", "listening on 4100"), *lines], "")


@pytest.fixture
async def filled(plane: Plane) -> Plane:
    """A rollout in progress, one rolled back, one at rest, and numbers to draw."""
    services = plane.site.context.services.provided(WORKLOAD_LOGS, FakeLogs())
    plane.site.app.state.context = dataclasses.replace(plane.site.context, services=services)
    engine = plane.site.engine
    await fleet.live(engine, "payments/web")
    await fleet.halfway(engine, "cart")
    await plane.site.client.post("/api/v1/rollouts/cart/abort", json={"why": "empty baskets"})
    await plane.shows("RolledBack", "cart")
    await fleet.halfway(engine, "shop")
    now = dt.datetime.now(dt.UTC)
    for second in range(30):
        at = now + dt.timedelta(milliseconds=50 * second)
        plane.counted.add("shop", fleet.point(at, Slot.PRIMARY, 90))
        plane.counted.add("shop", fleet.point(at, Slot.CANARY, 10, failed=second % 3))
    await story.everything(engine)
    return plane


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
async def test_axe_finds_nothing_on_any_page(
    filled: Plane, window: Window, width: int, scheme: Scheme
) -> None:
    seen = Seen(width, scheme)
    async with window.tab(width) as page:
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for name, path in PATHS.items():
            await page.goto(f"{filled.url}{path}")
            await seen.check(page, name)
        await page.goto(f"{filled.url}/rollouts/shop")
        for verb in ("Abort", "Delete"):
            await page.get_by_role("button", name=verb).click()
            await expect(page.get_by_role("dialog")).to_be_visible()
            await seen.check(page, f"{verb} asks")
            await page.keyboard.press("Escape")
        await page.goto(f"{filled.url}/stacks/prod/till")
        await page.get_by_role("button", name="Force available").click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        await seen.check(page, "Force available asks")
        await _signing_in(filled, page, seen)

    assert not seen.found, "\n".join(seen.found)


async def _signing_in(plane: Plane, page: Page, seen: Seen) -> None:
    token = await plane.site.token(tokens.Role.OPERATOR)
    await page.goto(f"{plane.url}/login")
    await seen.check(page, "sign-in")
    await page.get_by_label("Token").fill("flt_wrong")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await seen.check(page, "sign-in refused")
    await page.get_by_label("Token").fill(token.text)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    await seen.check(page, "signed in")
