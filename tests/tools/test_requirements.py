"""tools/requirements.py reads marks where they stand, without running a test."""

from pathlib import Path

import pytest

from tools import pages, requirements

CANARY = requirements.Area("canary", "Canary", done=True, requirements={"R1": "One.", "R2": "Two."})


@pytest.mark.parametrize(
    ("text", "tests"),
    [
        ('@pytest.mark.requirement("canary R1")\ndef test_a(): ...', ["test_a"]),
        ('@pytest.mark.requirement("canary R1")\nasync def test_a(): ...', ["test_a"]),
        ('@mark.requirement("canary R1")\nclass TestA:\n    def test_b(self): ...', ["TestA"]),
        (
            'class TestA:\n    @pytest.mark.requirement("canary R1")\n    def test_b(self): ...',
            ["TestA::test_b"],
        ),
        ('pytestmark = [pytest.mark.slow, pytest.mark.requirement("canary R1")]', [""]),
        (
            '@parametrize("a", [param(1, marks=mark.requirement("canary R1"))])\ndef test_a(): ...',
            ["test_a"],
        ),
        ('@pytest.fixture\n@pytest.mark.requirement("canary R1")\ndef server(): ...', []),
        ("def test_a():\n    text = \"@pytest.mark.requirement('canary R1')\"", []),
        ("def test_a(): ...", []),
    ],
)
def test_marks_are_found_where_they_stand(tmp_path: Path, text: str, tests: list[str]) -> None:
    write(tmp_path, text)

    found = requirements.shown(tmp_path)

    assert [one.test for one in found] == tests
    assert {(one.requirement, one.file) for one in found} <= {("canary R1", "tests/test_a.py")}


def test_a_mark_that_cannot_be_read_is_refused_with_its_place(tmp_path: Path) -> None:
    write(tmp_path, "\n@pytest.mark.requirement(name)\ndef test_a(): ...")

    with pytest.raises(ValueError, match=r"tests/test_a\.py:2"):
        requirements.shown(tmp_path)


def test_one_mark_may_name_several(tmp_path: Path) -> None:
    write(tmp_path, '@pytest.mark.requirement("canary R1", "gitops 2")\ndef test_a(): ...')

    assert [one.requirement for one in requirements.shown(tmp_path)] == ["canary R1", "gitops 2"]


def test_a_done_area_misses_what_has_no_test() -> None:
    marks = (requirements.Shown("canary R1", "tests/test_a.py", "test_a"),)

    assert requirements.missing((CANARY,), marks) == ("canary R2",)
    assert requirements.missing((CANARY,), ()) == ("canary R1", "canary R2")


def test_an_area_that_is_not_done_misses_nothing() -> None:
    open_area = requirements.Area("canary", "Canary", done=False, requirements={"R1": "One."})

    assert requirements.missing((open_area,), ()) == ()


def test_the_page_links_each_id_to_its_tests() -> None:
    marks = (
        requirements.Shown("canary R1", "tests/unit/test_a.py", "test_a"),
        requirements.Shown("canary R1", "tests/unit/test_b.py", ""),
        requirements.Shown("gitops 1", "tests/unit/test_c.py", "test_c"),
    )

    table = pages.area_table(CANARY, marks)

    links = "[`test_a`](../../tests/unit/test_a.py)<br>[`test_b.py`](../../tests/unit/test_b.py)"
    assert f"| R1 | One. | {links} |" in table
    assert "| R2 | Two. | none yet |" in table
    assert "done; 1 of 2 have a test" in table
    assert "test_c" not in table


def write(root: Path, text: str) -> None:
    (root / "tests").mkdir()
    (root / "tests" / "test_a.py").write_text(text)
