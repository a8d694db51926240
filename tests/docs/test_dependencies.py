"""Every dependency has its line in the decision record, and every line its dependency."""

import re
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs" / "decisions" / "0002-dependencies.md"
# Needed before there is a lock, so it stands in requirements/uv.txt and not in pyproject.toml.
SET_UP = {"uv"}


def test_every_dependency_has_its_line() -> None:
    assert declared() - set(recorded()) == set()


def test_no_line_outlives_its_dependency() -> None:
    assert set(recorded()) - declared() - SET_UP == set()


def test_every_line_says_why_under_which_licence_and_what_else() -> None:
    assert [name for name, cells in recorded().items() if len(cells) != 3 or not all(cells)] == []


def declared() -> set[str]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, Any] = tomllib.loads(text)
    lists = [
        project["build-system"]["requires"],
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    texts = (text for one in lists for text in one if isinstance(text, str))
    return {canonicalize_name(Requirement(text).name) for text in texts}


def recorded() -> dict[str, list[str]]:
    rows = re.findall(r"^\|(.+)\|$", RECORD.read_text(encoding="utf-8"), re.MULTILINE)
    cells = ([cell.strip() for cell in row.split("|")] for row in rows)
    return {first: rest for first, *rest in cells if first != "dependency" and "---" not in first}
