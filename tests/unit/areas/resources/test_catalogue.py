"""What was ingested is found again, newest first, from one file that is never half there."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.resources import catalogue
from fairlead.areas.resources.catalogue import Catalogue
from fairlead.areas.resources.domain.reading import ResourceType
from tests.unit.areas.resources.swagger import SCOPE, read, robots

ROBOT = {"Robot": {"properties": {"name": {"type": "string", "enum": ["a", 1, None]}}}}


def robot(version: str = "2026-01-01", url: str = f"{SCOPE}/robots/{{name}}") -> ResourceType:
    document: Any = robots(ROBOT)
    document["info"]["version"] = version
    document["paths"] = {url: next(iter(document["paths"].values()))}
    return read(document)[0]


def test_a_type_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "catalogue"

    assert catalogue.write(path, [robot(), robot("2027-01-01")], []) == 2

    assert Catalogue(path).find("Acme.Toys/robots@2026-01-01") == robot()
    assert [each.version for each in Catalogue(path).entries] == ["2026-01-01", "2027-01-01"]


@pytest.mark.parametrize(
    ("versions", "newest"),
    [
        (["2026-01-01", "2027-01-01"], "2027-01-01"),
        (["2026-01-01", "2027-01-01-preview"], "2026-01-01"),
        (["2026-01-01-preview", "2025-01-01-preview"], "2026-01-01-preview"),
    ],
)
def test_without_a_version_the_newest_stable_one_is_found(
    tmp_path: Path, versions: list[str], newest: str
) -> None:
    catalogue.write(tmp_path / "c", [robot(each) for each in versions], [])

    assert Catalogue(tmp_path / "c").find("acme.toys/ROBOTS").version == newest


def test_of_several_urls_that_in_a_resource_group_is_found(tmp_path: Path) -> None:
    wide = "/subscriptions/{subscription}/providers/Acme.Toys/robots/{name}"
    catalogue.write(tmp_path / "c", [robot(), robot(url=wide)], [])

    assert Catalogue(tmp_path / "c").find("Acme.Toys/robots").url.startswith(SCOPE)


def test_what_is_not_there_is_refused_with_what_is_near(tmp_path: Path) -> None:
    catalogue.write(tmp_path / "c", [robot()], [])
    made = Catalogue(tmp_path / "c")

    with pytest.raises(errors.NotFound) as misspelt:
        made.find("Acme.Toys/robot")
    with pytest.raises(errors.NotFound) as old:
        made.find("Acme.Toys/robots@2001-01-01")
    with pytest.raises(errors.NotFound) as never:
        Catalogue(tmp_path / "none")

    assert misspelt.value.hint == "did you mean Acme.Toys/robots?"
    assert old.value.hint == "there are: 2026-01-01"
    assert "fairlead resources ingest" in never.value.hint


def test_it_knows_whether_its_files_changed(tmp_path: Path) -> None:
    source = tmp_path / "a.json"
    source.write_text("{}")
    catalogue.write(tmp_path / "c", [robot()], [source])

    made = Catalogue(tmp_path / "c")
    same, other = made.is_of([source]), made.is_of([])
    source.write_text("{ }")

    assert (same, other, made.is_of([source])) == (True, False, False)


def test_a_failure_in_the_middle_leaves_what_was_there(tmp_path: Path) -> None:
    def failing() -> Iterator[ResourceType]:
        yield robot("2027-01-01")
        raise errors.Rejected("no", hint="no")

    catalogue.write(tmp_path / "c", [robot()], [])

    with pytest.raises(errors.Rejected):
        catalogue.write(tmp_path / "c", failing(), [])

    assert [each.version for each in Catalogue(tmp_path / "c").entries] == ["2026-01-01"]
    assert [each.name for each in tmp_path.iterdir()] == ["c"]


@pytest.mark.parametrize("content", [b"", b"{}\n", b'{"format":9,"sources":{},"entries":[]}\n'])
def test_what_is_no_catalogue_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c").write_bytes(content)

    with pytest.raises(errors.Corrupt, match="not a catalogue of this version"):
        Catalogue(tmp_path / "c")


def test_models_are_decoded_once_and_again_when_the_file_was_replaced(tmp_path: Path) -> None:
    (first,) = read(robots({"Robot": {"properties": {"size": {"type": "string"}}}}))
    (second,) = read(robots({"Robot": {"properties": {"arms": {"type": "string"}}}}))
    catalogue.write(tmp_path / "types", [first], [])
    models = catalogue.Models(tmp_path / "types")

    one = models.model("acme.toys/robots", "2026-01-01")
    assert models.model("Acme.Toys/robots", "2026-01-01") is one
    catalogue.write(tmp_path / "types", [second], [])
    os.utime(tmp_path / "types", ns=(1, 1))

    (path,) = (each.path for each in models.model("Acme.Toys/robots", "2026-01-01").type.properties)
    assert path == "arms"
