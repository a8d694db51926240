"""Every relative link in our texts leads somewhere."""

from pathlib import Path

import pytest

from tests.docs import markdown

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))
FOLDERS = ("tutorial", "how-to", "reference", "explanation", "decisions")


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_relative_links_lead_somewhere(page: Path) -> None:
    assert list(markdown.broken(page)) == []


def test_no_link_leaves_the_repository_by_a_path_of_one_machine() -> None:
    targets = (target for page in PAGES for target in markdown.links(page.read_text("utf-8")))

    assert [target for target in targets if target.startswith(("/", "file:"))] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_page_can_be_reached_from_the_index_of_its_part(folder: str) -> None:
    index = ROOT / "docs" / folder / "README.md"
    reached = {(index.parent / link).resolve() for link in markdown.links(index.read_text("utf-8"))}

    pages = {page for page in PAGES if page.parent == index.parent and page != index}

    assert sorted(page.name for page in pages - reached) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_index_names_every_part(folder: str) -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")

    assert f"{folder}/README.md" in set(markdown.links(index))


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("[there](there.md)", 0),
        ("[there](there.md#second-part-1)", 0),
        ("[here](#a-heading-with-code)\n\n# A heading, with `code`", 0),
        ("[web](https://example.org/none) [mail](mailto:a@example.org)", 0),
        ("`[code](none.md)`\n\n```\n[code](none.md)\n```\n", 0),
        ("[gone](none.md)", 1),
        ("![gone](none.png)", 1),
        ("[gone](there.md#third-part)", 1),
        ("[gone](#nowhere)", 1),
        ("[text][ref]\n\n[ref]: none.md", 1),
    ],
)
def test_links_are_told_apart(tmp_path: Path, text: str, faults: int) -> None:
    (tmp_path / "there.md").write_text("# Second part\n\n## Second part\n")
    page = tmp_path / "page.md"
    page.write_text(text)

    assert len(list(markdown.broken(page))) == faults
