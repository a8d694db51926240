"""What somebody sees of a page: complaints of axe, what overflows, and a picture to look at."""

import os
from pathlib import Path

from axe_playwright_python.async_playwright import (  # type: ignore[import-untyped]  # has none
    Axe,
)
from playwright.async_api import Page


class Seen:
    """What is wrong with pages; their pictures too, where FAIRLEAD_TEST_PICTURES names a folder."""

    def __init__(self, width: int, scheme: str) -> None:
        self.found: list[str] = []
        self._look = f"{width} {scheme}"
        self._folder = os.environ.get("FAIRLEAD_TEST_PICTURES", "")
        self._width = width

    async def check(self, page: Page, name: str) -> None:
        if self._folder:
            file = Path(self._folder) / f"{name} {self._look}.png".replace(" ", "-")
            await page.screenshot(path=file, full_page=True)
        results = await Axe().run(page)
        self.found += [
            f"{name}: {each['id']}: {_places(each)}" for each in results.response["violations"]
        ]
        wide = await page.evaluate("document.documentElement.scrollWidth")
        if wide > self._width:
            self.found.append(f"{name}: scrolls sideways: {wide} of {self._width} pixels")


def _places(violation: dict[str, list[dict[str, object]]]) -> str:
    return "; ".join(str(node["html"])[:120] for node in violation["nodes"][:3])
