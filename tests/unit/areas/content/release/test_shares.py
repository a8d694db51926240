"""Who is told the share of a release."""

from pathlib import Path

import pytest

from fairlead import errors
from fairlead.areas.content.domain.population import Population, parse_share
from fairlead.areas.content.domain.release.place import (
    Flag,
    KubernetesService,
    LocalService,
    Place,
)
from fairlead.areas.content.release import shares
from fairlead.areas.content.service import own_share
from fairlead.clients.unleash_admin import Admin
from tests.fakes.unleash import TOKEN, FakeUnleash

CHOSEN = Population("1.0.2-1", parse_share("30"))
HERE = Place(local=LocalService(8000))


async def test_our_own_share_is_a_file_of_this_machine(tmp_path: Path) -> None:
    made = shares.Shares(tmp_path, None, None)

    await made.set("stage/gathering", HERE, CHOSEN)

    file = shares.file(tmp_path, "stage/gathering")
    assert file.parent.parent == tmp_path
    assert own_share.parse(file.read_bytes()) == CHOSEN


async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "shares").write_text("in the way")

    with pytest.raises(errors.Unavailable, match="cannot write the share"):
        await shares.Shares(tmp_path, None, None).set("gathering", HERE, CHOSEN)


async def test_a_flag_gets_whole_percents(tmp_path: Path) -> None:
    place = Place(flag=Flag("gathering", environment="development"))
    async with FakeUnleash().running() as there:
        await shares.Shares(tmp_path, None, Admin(there.url, TOKEN)).set("g", place, CHOSEN)

    assert there.rollout == "30"


@pytest.mark.parametrize(
    "place", [Place(flag=Flag("a")), Place(kubernetes=KubernetesService("a", "b"))]
)
async def test_whom_it_cannot_reach_it_says(tmp_path: Path, place: Place) -> None:
    with pytest.raises(errors.Unavailable, match="has no access to"):
        await shares.Shares(tmp_path, None, None).set("gathering", place, CHOSEN)
