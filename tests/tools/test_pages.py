"""tools/pages.py writes what is stale, and --check says so without writing."""

from pathlib import Path

import pytest

from tools import pages


def test_absent_pages_are_stale_and_then_written(tmp_path: Path) -> None:
    assert pages.stale(tmp_path) == tuple(pages.PAGES)

    assert pages.write(tmp_path) == tuple(pages.PAGES)

    assert pages.stale(tmp_path) == ()
    assert pages.write(tmp_path) == ()


def test_check_fails_on_an_edited_page_and_leaves_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages.write(tmp_path)
    path = "docs/reference/requirements.md"
    (tmp_path / path).write_text("by hand")

    code = pages.main(["--check"], tmp_path)

    assert code == 1
    assert capsys.readouterr().err == f"error: page is stale: {path}\nhint: run make docs\n"
    assert (tmp_path / path).read_text() == "by hand"


def test_check_passes_on_fresh_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pages.main([], tmp_path) == 0

    assert pages.main(["--check"], tmp_path) == 0
    assert "wrote docs/reference/requirements.md" in capsys.readouterr().err


def test_adding_a_page_takes_one_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGES", {})

    @pages.page("docs/reference/colours.md", "the code of colours")
    def colours() -> str:
        return "# Colours\n\nBlue.\n"

    assert pages.write(tmp_path) == ("docs/reference/colours.md",)
    written = (tmp_path / "docs" / "reference" / "colours.md").read_text()
    assert written == "<!-- Made by `make docs` from the code of colours. -->\n\n" + colours()
