"""A control plane that is killed again and again, at any moment, costs no request."""

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.cli.demo.load import Load
from tests.contract.local.shop_versions import free_port, release_harness

pytestmark = [pytest.mark.xdist_group("envoy"), pytest.mark.slow]

# Starts, moves and removes versions without end, until it is killed.
RESTLESS = """
import asyncio, itertools, pathlib, sys
from tests.contract.local.shop_versions import release_harness
async def main(place, port):
    async with release_harness(pathlib.Path(place), int(port)) as harness:
        print("ready", flush=True)
        v1 = await harness.run("v1")
        for number in itertools.count():
            name = f"v2-{number % 2}"
            newcomer = await harness.run(name)
            for percent in (10, 50, 100, 0):
                await harness.share((v1, newcomer), **{name: percent, "v1": 100 - percent})
                print("moved", flush=True)
            await harness.share((v1,), v1=100)
            await harness.supervisor.stop(name)
asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_control_plane_killed_at_any_moment_drops_nothing(
    place: Path,
) -> None:
    port, chance = free_port(), random.Random(5)
    async with release_harness(place, port) as first:
        v1 = await first.run("v1")
        await first.share((v1,), v1=100)
        before = {each.name: each.pid for each in first.supervisor.instances()}

    load = Load(f"http://127.0.0.1:{port}/", per_second=200)
    moved = 0
    async with load.running():
        for _ in range(6):
            moved += await killed_after(place, port, chance.uniform(0.0, 0.4))
        await load.at_least(50)
        async with release_harness(place, port) as last:
            await last.share((v1,), v1=100)
            for name in ("v2-0", "v2-1"):
                await last.supervisor.stop(name)
            after = {each.name: each.pid for each in last.supervisor.instances()}
            strays = last.supervisor.orphans()
        await load.at_least(50)

    assert load.tally.failed == 0, load.tally
    assert moved > 6
    assert after == before
    assert strays == ()


async def killed_after(place: Path, port: int, seconds: float) -> int:
    """How often the control plane moved traffic before it was killed."""
    plane = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RESTLESS, str(place), str(port)), stdout=subprocess.PIPE
    )
    assert plane.stdout is not None
    await plane.stdout.readuntil(b"ready\n")
    await asyncio.sleep(seconds)  # not a wait for anything: the moment of the crash
    plane.kill()
    said, _ = await plane.communicate()
    return said.count(b"moved")
