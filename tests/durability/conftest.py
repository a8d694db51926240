"""Fixtures: fresh stores, as many as a test asks for."""

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.durability import story

NewScene = Callable[..., story.Scene]


@pytest.fixture(params=["sqlite", "postgres"])
def new_scene(request: pytest.FixtureRequest, tmp_path: Path) -> NewScene:
    """Makes a migrated store with an outside of its own, by name."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""

    def make(name: str, size: story.Size = story.Size()) -> story.Scene:  # noqa: B008 - frozen value
        database = schema(url, name) if url else str(tmp_path / f"{name}.db")
        scene = story.Scene(database, tmp_path / f"{name}.book", size)
        scene.store().migrate()
        return scene

    return make


def schema(url: str, name: str) -> str:
    """A schema is as good as a database here, and a tenth of the time to make."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    return f"{url}?options=-csearch_path%3D{name}"
