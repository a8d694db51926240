"""A control plane on a real socket with rollouts behind it, and a real browser in front of it."""

import contextlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright

from fairlead import bootstrap, errors
from fairlead.area import parts
from fairlead.areas.deployments.area import DEPLOYMENTS
from fairlead.areas.rollouts import detail
from fairlead.web import server
from tests.fakes import fleet
from tests.unit.web import rig
from tools.servers import chromium

PATIENCE_MS = 60_000


@pytest.fixture(scope="session")
def program() -> Path:
    """Left out with a reason where there is none, unless FAIRLEAD_TEST_BROWSER requires it."""
    try:
        return chromium.find()
    except errors.Unavailable as missing:
        told = f"{missing.message}; {missing.hint}"
        if os.environ.get("FAIRLEAD_TEST_BROWSER") == "required":
            pytest.fail(told, pytrace=False)
        pytest.skip(told)


@dataclass
class Plane:
    """What is behind the pages, and where they are."""

    site: rig.Site
    url: str
    behind: fleet.Fleet
    counted: fleet.Counted

    async def shows(self, phase: str, name: str = "shop") -> detail.Detail:
        return await fleet.until(self.site.engine, name, lambda seen: seen.rollout.phase == phase)


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Plane]:
    made, counted = fleet.Fleet(), fleet.Counted()
    wanted = server.Bind("127.0.0.1", 0)
    with server.claim(wanted) as listening:
        bind = server.bound(wanted, listening)
        async with (
            rig.site(tmp_path, _with_deployments(made.cast(counted)), bind) as site,
            server.serving(site.app, listening, site.context.closing),
        ):
            yield Plane(site, bind.url, made, counted)


def _with_deployments(cast: bootstrap.Installation) -> bootstrap.Installation:
    """Which nobody performs: tests tell them what became of their steps."""
    return replace(cast, machines=(*cast.machines, *parts.machines([parts.core(DEPLOYMENTS)])))


@dataclass
class Window:
    """A browser whose pages must not complain."""

    browser: Browser
    complaints: list[str] = field(default_factory=list)

    @contextlib.asynccontextmanager
    async def tab(self, width: int = 1100) -> AsyncIterator[Page]:
        """A tab with a cookie jar of its own."""
        context = await self.browser.new_context(viewport={"width": width, "height": 900})
        context.set_default_timeout(PATIENCE_MS)
        try:
            yield await self.watched(await context.new_page())
        finally:
            await context.close()

    async def watched(self, page: Page) -> Page:
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console",
            lambda said: self.complaints.append(said.text) if said.type == "error" else None,
        )
        return page


@pytest.fixture
async def window(program: Path) -> AsyncIterator[Window]:
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=program, args=list(chromium.FLAGS), timeout=60_000
        )
        try:
            yield Window(browser)
        finally:
            await browser.close()
