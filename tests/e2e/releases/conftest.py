"""Fixture: a control plane of one's own, taken down with everything that it started."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.releases import plane as planes


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[planes.Plane]:
    async with planes.plane(tmp_path) as running:
        yield running
