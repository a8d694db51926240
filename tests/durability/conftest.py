"""Fixtures: fresh stores, as many as a test asks for."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests import ha
from tests.durability import story
from tools.servers import patroni

NewStorySetup = Callable[..., story.StorySetup]


@pytest.fixture(params=["sqlite", "postgres"])
def new_story_setup(request: pytest.FixtureRequest, tmp_path: Path) -> NewStorySetup:
    """Makes a migrated store with an outside of its own, by name."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""

    def make(name: str, size: story.Size = story.Size()) -> story.StorySetup:  # noqa: B008 - frozen value
        database = schema(url, name) if url else str(tmp_path / f"{name}.db")
        story_setup = story.StorySetup(database, tmp_path / f"{name}.book", size)
        story_setup.store().migrate()
        return story_setup

    return make


def schema(url: str, name: str) -> str:
    """A schema is as good as a database here, and a tenth of the time to make."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    return f"{url}?options=-csearch_path%3D{name}"


@pytest.fixture
def patroni_cluster() -> Iterator[patroni.PatroniCluster]:
    ha.needed(patroni.check)
    with patroni.PatroniCluster() as cluster:
        yield cluster
