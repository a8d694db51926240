"""Processes of this machine while Unleash is away, and while its disk is full."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from fairlead import errors
from fairlead.areas.content.domain.population import EVERYBODY, Population
from fairlead.areas.content.domain.release.place import Flag, LocalService, Place, Versions
from fairlead.areas.content.release import shares
from fairlead.areas.content.release.local import LocalDeployments
from fairlead.areas.content.release.ports import Progress
from fairlead.areas.content.service import own_share
from fairlead.clients.processes import clean_up
from tests import contents
from tests.durability import cramped
from tests.unit.clients.test_unleash import Unleash, flexible
from tools.cluster.process import free_port

CLUSTER = {"User-Agent": "insights-operator/4.17 cluster/cluster-1"}


@pytest.mark.requirement("content 20")
async def test_an_instance_that_starts_without_unleash_goes_by_what_others_heard(
    tmp_path: Path,
) -> None:
    for version in ("1.0.1", "1.0.2", "1.0.3"):
        contents.write(tmp_path / "versions" / version, contents.version_files(version))
    source = {"directory": str(tmp_path / "versions")}
    words, port = {"name": "gathering", "kind": "gathering", "source": source}, free_port()
    place = Place(words, local=LocalService(port, replicas=2), flag=Flag("gathering"))
    try:
        async with Unleash(strategies=[flexible(100)]).running() as unleash:
            known = {
                "FAIRLEAD_CONTENT_UNLEASH_URL": unleash.url,
                "FAIRLEAD_CONTENT_UNLEASH_SECONDS": "1",
            }
            deployments = LocalDeployments(tmp_path / "content", known)
            async with deployments.running():
                await _ready(deployments, place, Versions("1.0.1", "1.0.2"))
                assert await _version(port) == "1.0.2"
                unleash.status = 503

                await _ready(deployments, place, Versions("1.0.1", "1.0.3"))

                assert await _version(port) == "1.0.3"
    finally:
        await clean_up(tmp_path / "content" / "processes", drain_seconds=2.0)


async def test_a_full_disk_leaves_old_instances_and_the_old_share_in_force(tmp_path: Path) -> None:
    for version in ("1.0.1", "1.0.2"):
        contents.write(tmp_path / "versions" / version, contents.version_files(version))
    source = {"directory": str(tmp_path / "versions")}
    words, port = {"name": "gathering", "kind": "gathering", "source": source}, free_port()
    place, folder = Place(words, local=LocalService(port)), tmp_path / "content"
    deployments, share = LocalDeployments(folder, {}), shares.Shares(folder, None, None)
    everybody = Population("1.0.2-1", EVERYBODY)
    empty = tmp_path / "empty"
    empty.touch()
    try:
        async with deployments.running():
            await share.set("gathering", place, Population("1.0.2-1"))
            await _ready(deployments, place, Versions("1.0.1"))

            with cramped.full_disk(empty):
                with pytest.raises(OSError, match="File too large"):
                    await deployments.deploy(
                        "gathering", LocalService(port), place, Versions("1.0.1", "1.0.2")
                    )
                with pytest.raises(errors.Unavailable, match="cannot write the share"):
                    await share.set("gathering", place, everybody)

            assert await _version(port) == "1.0.1"
            kept = shares.file(folder, "gathering").read_bytes()
            assert own_share.parse(kept) == Population("1.0.2-1")
            await _ready(deployments, place, Versions("1.0.1", "1.0.2"))
            await share.set("gathering", place, everybody)
            async with asyncio.timeout(30):
                while await _version(port) != "1.0.2":
                    pass
    finally:
        await clean_up(folder / "processes", drain_seconds=2.0)


async def _ready(deployments: LocalDeployments, place: Place, versions: Versions) -> None:
    assert place.local is not None
    async with asyncio.timeout(120):
        while True:
            found = await deployments.deploy("gathering", place.local, place, versions)
            if found.progress is Progress.READY:
                return
            assert found.progress is Progress.WAITING, found.reason
            await asyncio.sleep(0.1)


async def _version(port: int) -> str:
    where = f"http://127.0.0.1:{port}/api/gathering/gathering_rules"
    async with aiohttp.ClientSession() as session, session.get(where, headers=CLUSTER) as answer:
        return str((await answer.json())["version"])
