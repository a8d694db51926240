"""What an owner writes about a content, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.content import description

LIMITS: dict[str, Any] = {"name": "limits", "file": "l.json", "source": {"directory": "versions"}}


def test_paths_begin_at_the_folder_of_the_file() -> None:
    made = description.read(LIMITS, Path("/srv/content"))

    assert made.source.directory == "/srv/content/versions"
    assert made.layouts[0].file == "l.json"


def test_the_content_of_the_original_brings_its_files() -> None:
    source = {"git": "https://example.test/conditions.git", "path": "build"}
    made = description.read({"name": "g", "kind": "gathering", "source": source}, Path())

    assert [each.name for each in made.layouts] == ["v1", "v2"]
    assert made.source.git == source["git"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": "../up"}, "name"),
        ({"source": {}}, "source"),
        ({"source": {"git": "a", "directory": "b"}}, "source"),
        ({"source": {"archive": "https://example.test/x.tar"}}, "source.archive"),
        ({"source": {"git": "a", "tag": "latest"}}, "source.tag"),
        ({"kind": "gathering"}, "kind"),
        ({"map": "m.json"}, "file"),
        ({"file": ""}, "file"),
        ({"public_key": "x"}, "public_key"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_field(change: dict[str, Any], path: str) -> None:
    with pytest.raises(errors.Invalid) as refused:
        description.read({**LIMITS, **change}, Path())

    assert refused.value.problems[0].path == path


@pytest.mark.parametrize("version", ["", "..", "../x", "a/b", "-x", "none", "x" * 65, "a b", "a\n"])
def test_a_version_is_never_a_path(version: str) -> None:
    with pytest.raises(errors.Rejected, match="not a version"):
        description.check_version(version)
