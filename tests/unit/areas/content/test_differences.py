"""The difference of two versions: loaded once for all who ask, and one pair at a time."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.areas.content import description
from fairlead.areas.content.description import Description
from fairlead.areas.content.differences import Differences
from tests import contents


@pytest.fixture
def content(tmp_path: Path) -> Description:
    for version in ("1.0.1", "1.0.2"):
        contents.write(tmp_path / version, contents.version_files(version))
    source = {"directory": str(tmp_path)}
    return description.read({"name": "g", "kind": "gathering", "source": source}, tmp_path)


async def test_a_pair_is_loaded_once_however_often_it_is_asked_for(content: Description) -> None:
    known = Differences()
    first = await known.of(content, "1.0.1", "1.0.2")

    shutil.rmtree(content.source.directory)

    assert '+ "version": "1.0.2",' in first
    assert await known.of(content, "1.0.1", "1.0.2") == first
    with pytest.raises(errors.NotFound):
        await known.of(content, "1.0.2", "1.0.1")


async def test_two_pairs_are_not_loaded_at_once_and_one_that_failed_is_in_nobodys_way(
    content: Description,
) -> None:
    known = Differences()

    found = await asyncio.gather(
        known.of(content, "1.0.1", "1.0.9"),
        known.of(content, "1.0.1", "1.0.2"),
        return_exceptions=True,
    )

    assert [type(each) for each in found] == [errors.NotFound, errors.Unavailable]
    assert await known.of(content, "1.0.1", "1.0.2")


async def test_lines_without_end_are_cut(tmp_path: Path) -> None:
    for version in ("1", "2"):
        text = json.dumps({"version": version, "text": version * 5000})
        contents.write(tmp_path / version, {"a.json": text.encode()})
    words = {"name": "a", "file": "a.json", "source": {"directory": str(tmp_path)}}

    lines = await Differences().of(description.read(words, tmp_path), "1", "2")

    assert max(map(len, lines)) == 500
