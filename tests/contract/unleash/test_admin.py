"""The share of a flag by Unleash's admin API: the fake and the real server alike."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.areas.content.domain.release.place import Flag
from fairlead.clients.unleash_admin import Admin
from tests.contract.unleash import server
from tests.fakes import unleash as fakes

FLAG = Flag("gathering", environment="development")
KINDS = ["fake", pytest.param("real", marks=[server.NEEDED, pytest.mark.slow])]


@contextlib.asynccontextmanager
async def running(kind: str, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    if kind == "fake":
        async with fakes.FakeUnleash().running() as made:
            yield made.url
        return
    folder: Path = request.getfixturevalue("tmp_path")
    with server.running(request.getfixturevalue("postgres_url"), folder) as real:
        server.make_flag(real, FLAG.name)
        yield real.url


@pytest.mark.parametrize("kind", KINDS)
async def test_a_share_is_set_and_read_back(kind: str, request: pytest.FixtureRequest) -> None:
    async with running(kind, request) as url:
        admin = Admin(url, server.ADMIN)

        for percent in (0, 30, 30, 0, 60):
            await admin.set_rollout(FLAG, percent)

        with pytest.raises(errors.Rejected, match=r"Unleash answers 40[13]"):
            await Admin(url, "*:*.wrong").set_rollout(FLAG, 10)
        with pytest.raises(errors.Rejected, match=r"Unleash answers 40[34]"):
            await admin.set_rollout(Flag("unknown", environment="development"), 10)
