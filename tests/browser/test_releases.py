"""The page of a release in a real browser: it follows by itself, and its buttons steer."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from fairlead.access.intake import Caller, Intake
from fairlead.access.tokens import Role
from fairlead.areas.content import requests
from fairlead.areas.content.release import rules
from fairlead.web import server
from tests import contents
from tests.browser.conftest import PATIENCE_MS, Window
from tests.browser.seen import Seen
from tests.fakes import content as fakes
from tests.unit.web import rig

pytestmark = pytest.mark.slow
expect.set_options(timeout=PATIENCE_MS)
RITA = Caller("rita", Role.DEPLOYER)


@dataclass
class Plane:
    """A control plane with a proposal of rita's."""

    url: str
    world: fakes.World


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Plane]:
    for version in ("1.0.1", "1.0.2"):
        contents.write(tmp_path / "versions" / version, contents.version_files(version))
    source = {"directory": str(tmp_path / "versions")}
    file = {
        "content": {"name": "gathering", "kind": "gathering", "source": source},
        "local": {"port": 8000},
        "pollInterval": "1s",
        "steps": [{"share": share, "bake": "1s", "approve": True} for share in (10, 50)],
    }
    world, wanted = fakes.World(), server.Bind("127.0.0.1", 0)
    with server.claim(wanted) as listening:
        bind = server.bound(wanted, listening)
        async with (
            rig.site(tmp_path / "state", world.cast(), bind) as site,
            server.serving(site.app, listening, site.context.closing),
        ):
            asked = rules.Proposed(file, "1.0.2", "new log rules", "1.0.1")
            await requests.propose(Intake(site.engine), RITA, asked, fakes.WORK)
            yield Plane(bind.url, world)


async def accessible(page: Page, name: str) -> None:
    """Wide and narrow, in light and in dark."""
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for width in (360, 1280):
            await page.set_viewport_size({"width": width, "height": 900})
            seen = Seen(width, scheme)
            await seen.check(page, name)
            assert seen.found == []


async def test_a_release_is_reviewed_raised_looked_up_and_promoted(
    plane: Plane, window: Window
) -> None:
    async with window.tab() as page:
        await page.goto(f"{plane.url}/releases")
        await accessible(page, "releases")
        await page.get_by_role("link", name="gathering").click()
        await expect(page.locator(".head")).to_contain_text("Awaiting review")
        await page.get_by_role("link", name="Show their difference").click()
        await expect(page.locator("pre")).to_contain_text('+ "version": "1.0.2"')
        await accessible(page, "release in review")

        await page.get_by_role("button", name="Approve").click()
        await page.get_by_role("dialog").get_by_role("button", name="Approve").click()
        await expect(page.locator(".head")).to_contain_text("Awaiting a decision")
        await page.get_by_role("button", name="Raise the share").click()
        await expect(page.get_by_role("button", name="Raise the share")).to_have_count(0)
        await expect(page.locator(".lead")).to_contain_text("50 % has baked")
        await page.get_by_label("Id").fill("cluster-1")
        await page.get_by_role("button", name="Look up").click()
        channel = plane.world.share.channel("cluster-1").value
        await expect(page.get_by_text(f"({channel})")).to_be_visible()
        await accessible(page, "release at 50")
        await page.get_by_role("button", name="Promote").click()
        await page.get_by_role("dialog").get_by_role("button", name="Promote").click()

        await expect(page.locator(".lead")).to_contain_text("everybody gets 1.0.2")
        await expect(page.get_by_text("Promoted", exact=True).first).to_be_visible()
        await accessible(page, "release promoted")
    assert plane.world.share.share == 0
    assert window.complaints == []


async def test_abort_asks_for_the_reason_and_keeps_it(plane: Plane, window: Window) -> None:
    async with window.tab() as page:
        await page.goto(f"{plane.url}/releases/gathering")
        await page.get_by_role("button", name="Approve").click()
        await page.get_by_role("dialog").get_by_role("button", name="Approve").click()
        await expect(page.locator(".head")).to_contain_text("Awaiting a decision")

        await page.get_by_role("button", name="Abort").click()
        await page.get_by_label("Why").fill("archives are empty")
        await page.get_by_role("dialog").get_by_role("button", name="Abort").click()

        await expect(page.locator(".lead")).to_contain_text("everybody gets 1.0.1")
        await expect(page.locator(".news")).to_contain_text("archives are empty")
    assert window.complaints == []
