"""Fixture: a harness that is taken down with everything that was started on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead.clients.processes import clean_up
from tests.contract.local.shop_versions import ReleaseHarness, free_port, release_harness


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Path]:
    """A state folder; whatever was started from it is ended at the end."""
    yield tmp_path
    await clean_up(tmp_path / "processes", drain_seconds=2.0)


@pytest.fixture
async def harness(place: Path) -> AsyncIterator[ReleaseHarness]:
    async with release_harness(place, free_port()) as ready:
        yield ready
