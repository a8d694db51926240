"""Rollouts on this machine through the whole program: deployed, killed, gone on, rolled back."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.cli.demo.load import Load
from tests.contract.local import shop_platform
from tests.contract.local.shop_versions import free_port
from tests.e2e import local, processes

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
            await site.until("Analysing", weight=10)
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
    assert done["data"]["rollout"]["stable"]["label"] == "v2"
    assert done["data"]["rollout"]["outcome"]["ending"] == "Promoted"


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

    assert seen["data"]["rollout"]["stable"]["label"] == "v1"
    assert json.loads(again.stdout)["receipt"]["events"] == 0
    assert json.loads(changed.stdout)["receipt"]["events"] > 0


async def test_two_projects_share_a_machine_and_know_nothing_of_each_other(
    site: local.Site,
) -> None:
    with site.up():
        pay, bill = await scoped(site, "pay"), await scoped(site, "bill")
        file = write(site, "pay", site.shop)
        other = write(site, "bill", free_port())
        taken = await site.type("deploy", file, "--wait", remote=True, token=pay)
        beside = await site.type("deploy", other, "--wait", remote=True, token=bill)
        foreign = await site.type("deploy", other, remote=True, token=pay)
        same = await site.type("diff", file, remote=True, token=pay)
        listed = await site.type("get", "rollouts", "-o", "json", remote=True, token=pay)
        logs = await site.type("logs", "shop", remote=True, token=pay)
        hidden = await site.type("logs", "bill/shop", remote=True, token=pay)
        kept = await site.type("delete", "bill/shop", "--yes", remote=True, token=pay)
        gone = await site.type("delete", "shop", "--yes", remote=True, token=pay)
        left = await site.type("get", "rollouts", "-o", "json", remote=True, token=bill)

    assert (taken.returncode, beside.returncode) == (0, 0), taken.stderr + beside.stderr
    assert foreign.returncode == 5
    assert "hint: write project: pay into the file" in foreign.stderr
    assert (same.returncode, same.stdout) == (0, "")
    assert [each["name"] for each in json.loads(listed.stdout)] == ["pay/shop"]
    assert logs.returncode == 0
    assert (hidden.returncode, kept.returncode, gone.returncode) == (4, 4, 0)
    assert [each["name"] for each in json.loads(left.stdout)] == ["bill/shop"]


async def test_who_waits_for_a_deploy_hears_of_a_pause_and_a_rollback_by_its_exit_code(
    site: local.Site,
) -> None:
    def file(version: str, **strategy: object) -> str:
        path = site.folder / f"{version}.json"
        words = shop_platform.document(version, site.shop, strategy={"steps": [10], **strategy})
        path.write_text(json.dumps(words))
        return str(path)

    with site.up():
        first = await site.type("deploy", file("v1"), "--wait", remote=True)
        held = await site.type("deploy", file("v2", approve=True), "--wait", remote=True)
        await site.type("promote", "shop", remote=True)
        await site.until("Idle")
        waiting = asyncio.create_task(
            site.type("deploy", file("v3", pause="5m"), "--wait", remote=True)
        )
        await site.until("Analysing", weight=10)
        await site.type("abort", "shop", "--why", "too slow", remote=True)
        rolled_back = await waiting

    assert (first.returncode, held.returncode, rolled_back.returncode) == (0, 21, 20)
    assert "hint: go on with one of: fairlead approve shop, " in held.stderr
    assert "shop: rolled back to v2: " in rolled_back.stderr
    assert "too slow" in rolled_back.stderr


async def scoped(site: local.Site, project: str) -> str:
    words = ("--name", project, "--role", "deployer", "--scope", project)
    return (await site.type("token", "create", *words)).stdout.strip()


def write(site: local.Site, project: str, listen: int) -> str:
    file = site.folder / f"{project}.json"
    file.write_text(json.dumps(shop_platform.document("v1", listen, project=project, **WAY)))
    return str(file)


async def test_a_deleted_rollout_leaves_no_process(site: local.Site) -> None:
    with site.up() as up:
        await site.deploy("v1")
        await site.until("Idle")
        ran = await site.type("delete", "shop", "--yes", remote=True)
        assert (ran.returncode, ran.stdout) == (0, "deleted: rollout shop\n"), ran.stderr
        await site.until("Gone")
        async with asyncio.timeout(processes.PATIENCE):
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
    words = shop_platform.document("v1", site.shop, strategy={"steps": [50, 10]})

    ran = await site.type("deploy", "-", given=json.dumps(words))

    assert ran.returncode == errors.Rejected.exit_code
    assert ran.stderr.startswith("error: <stdin>:1:")
    assert ": strategy: weights of steps go down: [50, 10]\n" in ran.stderr
