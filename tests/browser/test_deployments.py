"""Deployments in a real browser: a plan lights up by itself, and buttons and forms steer."""

import re

import pytest
from playwright.async_api import expect

from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.classes import Impact
from tests.browser.conftest import PATIENCE_MS, Plane, Window
from tests.engines import state, tell
from tests.fakes import deployments as story

pytestmark = pytest.mark.slow
expect.set_options(timeout=PATIENCE_MS)


async def test_a_plan_lights_up_while_somebody_looks(plane: Plane, window: Window) -> None:
    engine = plane.site.engine
    name = await story.requested(engine, story.spec("shop", "v2"))
    async with window.tab() as page:
        await page.goto(f"{plane.url}/deployments/{name}")
        await expect(page.locator("#live")).to_have_text("live")
        await expect(page.locator(".plan .node")).to_have_count(0)

        await story.settled(engine, name)
        await expect(page.locator('.plan [data-key="PGUpsert"]')).to_have_class("node active busy")
        await story.reported(engine, name, "PGUpsert")
        await expect(page.locator('.plan [data-key="PGUpsert"]')).to_have_class("node done good")
        await story.reported(engine, name, "PGEval", impact=Impact.BEFORE)
        await story.reported(engine, name, "CFPlan", impact=Impact.NOP)
        await expect(page.locator(".plan .node")).to_have_count(8)
        await expect(page.get_by_text("ALTER TABLE orders ADD COLUMN note text")).to_be_visible()
        await tell(engine, f"deployment/{name}", messages.Terminate("ann", "wrong version"))
        await expect(page.locator(".head")).to_contain_text("Terminated")
        await expect(page.get_by_role("button", name="Abort")).to_have_count(0)

    assert not window.complaints


async def test_a_stack_follows_whoever_has_its_turn_and_is_steered(
    plane: Plane, window: Window
) -> None:
    engine = plane.site.engine
    await story.broken(engine)
    waiting = await story.requested(engine, story.spec("till", "v8"))
    async with window.tab() as page:
        await page.goto(f"{plane.url}/stacks/prod/till")
        await page.get_by_role("button", name="Force available").click()
        await page.get_by_role("dialog").get_by_label("Why").fill("disk added")
        await page.get_by_role("dialog").get_by_role("button", name="Go on").click()
        await expect(page.locator(".head")).to_contain_text("Migrating")
        await expect(page.locator("#current ~ p").first).to_contain_text("Waiting for")

        # The turn went over to another one, whose own events move the page from now on.
        await story.settled(engine, waiting)
        await expect(page.locator("#current ~ p").first).to_contain_text("Running")
        await expect(page.locator(".news")).to_contain_text("disk added")

    assert not window.complaints


async def test_who_is_asked_says_no_on_the_page(plane: Plane, window: Window) -> None:
    name = await story.asking(plane.site.engine)
    async with window.tab(360) as page:
        await page.goto(f"{plane.url}/deployments/{name}")
        await page.get_by_role("button", name="Refuse").click()
        await page.get_by_role("dialog").get_by_label("Why").fill("not on Friday")
        await page.get_by_role("dialog").get_by_role("button", name="Refuse it").click()
        await expect(page.locator(".head")).to_contain_text("Terminated")

    found = await state(plane.site.engine, f"deployment/{name}")
    assert found["reason"].endswith("not on Friday")
    assert not window.complaints


async def test_what_is_stored_is_edited_in_a_form(plane: Plane, window: Window) -> None:
    await story.everything(plane.site.engine)
    async with window.tab() as page:
        await page.goto(f"{plane.url}/definitions")
        await page.get_by_role("link", name="prod/shop").click()
        await page.get_by_role("link", name="Edit").click()
        text = await page.get_by_label("Content").input_value()
        await page.get_by_label("Content").fill(text.replace("main", "[main"))
        await page.get_by_role("button", name="Store").click()
        await expect(page.get_by_role("alert")).to_contain_text("not YAML")
        await page.get_by_label("Content").fill(text.replace("release/*", "hotfix/*"))
        await page.get_by_role("button", name="Store").click()
        await expect(page.locator(".lead")).to_contain_text("version 3")
        await page.get_by_role("link", name="Difference of version 3").click()
        await expect(page.get_by_label("Difference", exact=True)).to_contain_text(
            re.compile(r"\+- hotfix/\*")
        )
