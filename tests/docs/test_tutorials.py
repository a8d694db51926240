"""What the tutorials tell a reader to type is typed here, page by page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# A page of commands has a test of its own: tests/e2e/test_first_rollout.py.
PAGES = sorted(
    page
    for page in (ROOT / "docs/tutorial").glob("*.md")
    if page.name not in ("README.md", "first-rollout.md")
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_tutorial_runs_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8")
    blocks = list(BLOCK.finditer(text))
    namespace: dict[str, object] = {"__name__": page.stem}

    for block in blocks:
        line = text[: block.start()].count("\n") + 1
        code = "\n" * line + block[1]
        exec(compile(code, str(page), "exec"), namespace)  # noqa: S102 - our own page, on purpose

    assert blocks
