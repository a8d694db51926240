"""Pages made from code say what the code says now."""

from pathlib import Path

import pytest

from tools import pages

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("path", pages.PAGES)
def test_a_generated_page_is_fresh(path: str) -> None:
    written = (ROOT / path).read_text(encoding="utf-8")

    assert written == pages.PAGES[path](), "hint: run make docs"
