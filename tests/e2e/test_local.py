"""Rollouts on this machine through the whole program: deployed, killed, gone on, taken back."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead._demo.load import Load
from tests.contract.local import berth
from tests.e2e import local

pytestmark = [pytest.mark.xdist_group("envoy"), pytest.mark.slow]
WAY: dict[str, Any] = {
    "strategy": {"steps": [10, 50], "pause": "4s"},
    "checks": [
        {"name": "success", "metric": "request-success-rate", "low": 99, "interval": "500ms"}
    ],
}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[local.Site]:
    async with local.site(tmp_path) as made:
        yield made


async def test_a_control_plane_killed_mid_canary_goes_on_and_drops_nothing(
    site: local.Site,
) -> None:
    load = Load(site.url, per_second=150)
    with site.up() as first:
        taken = await site.deploy("v1", **WAY)
        assert json.loads(taken.stdout)["url"] == site.url.rstrip("/")
        await site.until("Idle")
        async with load.running():
            await site.deploy("v2", **WAY)
            await site.until("Watching", share=10)
            first.process.kill()
            first.process.wait(10)
            # Nobody leads, and everybody is served.
            before = load.tally.of("v2")
            await load.at_least(200)
            led = load.tally.of("v2") - before
            with site.up() as second:
                done = await site.until("Idle")
                assert second.stop(signal.SIGTERM) == 0
            await load.at_least(50)

    assert load.tally.failed == 0, load.tally
    assert led > 0
    assert done["data"]["book"]["stable"]["label"] == "v2"
    assert done["data"]["book"]["outcome"]["ending"] == "Promoted"


async def test_a_lost_store_is_rebuilt_from_what_stands_beside_the_processes(
    site: local.Site,
) -> None:
    with site.up() as first:
        await site.deploy("v1", **WAY)
        await site.until("Idle")
        assert first.stop() == 0
    for file in site.folder.glob("fairlead.db*"):
        file.unlink()

    with site.up():
        seen = await site.until("Idle")
        again = await site.deploy("v1", **WAY)
        changed = await site.deploy("v2", **WAY)

    assert seen["data"]["book"]["stable"]["label"] == "v1"
    assert json.loads(again.stdout)["receipt"]["events"] == 0
    assert json.loads(changed.stdout)["receipt"]["events"] > 0


async def test_a_deleted_rollout_leaves_no_process(site: local.Site) -> None:
    with site.up() as up:
        await site.deploy("v1")
        await site.until("Idle")
        await site.type("submit", "rollout/shop", "Delete", remote=True)
        await site.until("Gone")
        async with asyncio.timeout(20):
            while list((site.folder / "local/processes").glob("*.program.json")):  # noqa: ASYNC110 - files of another process
                await asyncio.sleep(0.1)
        assert up.stop() == 0


async def test_deploy_without_a_control_plane_starts_nothing(site: local.Site) -> None:
    ran = await site.deploy("v1")

    assert ran.returncode == errors.Unavailable.exit_code
    assert f"error: no control plane answers: http://127.0.0.1:{site.page}" in ran.stderr
    assert "hint: start one with fairlead up" in ran.stderr
    assert not (site.folder / "local").exists()


async def test_a_wrong_file_is_refused_with_its_path(site: local.Site) -> None:
    words = berth.document("v1", site.shop, strategy={"steps": [50, 10]})

    ran = await site.type("deploy", "-", given=json.dumps(words))

    assert ran.returncode == errors.Rejected.exit_code
    assert "error: strategy: steps that go down: [50, 10]" in ran.stderr
