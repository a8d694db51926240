"""Whatever a test started is ended with it, also when the test failed."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead.clients.processes import clean_up


@pytest.fixture(autouse=True)
async def nothing_left(tmp_path: Path) -> AsyncIterator[None]:
    yield
    for name in ("", "state", "ours", "ours:theirs"):
        folder = tmp_path / name
        await clean_up(folder, drain_seconds=1.0)
