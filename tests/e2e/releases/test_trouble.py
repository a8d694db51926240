"""What goes wrong on this machine is said, costs no request, and heals by itself."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from fairlead.clients.processes import identity
from tests.e2e.releases.plane import Plane

pytestmark = [pytest.mark.xdist_group("envoy"), pytest.mark.slow]
WAY: dict[str, Any] = {"strategy": {"steps": [20], "pause": "2s"}}
SHORT = {"deadline": "10s"}
"""For versions that never get ready alone: a good one may take longer on a busy machine."""


async def test_an_envoy_that_dies_mid_canary_comes_back_and_the_release_goes_on(
    plane: Plane,
) -> None:
    await plane.live("v1", **WAY)
    await plane.deploy("v2", **WAY)
    await plane.at(20)

    os.kill(envoy_of(plane.folder), signal.SIGKILL)
    ending, _ = await plane.ended()

    assert ending == "Promoted"
    assert (await plane.load().send(50)).of("v2") == 50


async def test_a_program_that_crashes_again_and_again_never_gets_traffic(plane: Plane) -> None:
    crash = {"command": ["python3", "-c", "import sys; sys.exit('no configuration')"]}
    await plane.live("v1", **WAY)
    async with plane.load(per_second=100).running() as load:
        await plane.deploy("v2", **WAY, **SHORT, program=crash)
        ending, why = await plane.ended()
        await plane.deploy("v3", **WAY)
        recovered = await plane.until(
            lambda rollout, state: state == "Idle" and rollout["runs"] == 2
        )

    assert ending == "RolledBack"
    assert "0 of 1 canary pods ready (" in why
    assert "ended with code 1, saying: no configuration" in why
    assert load.tally.failed == 0
    assert recovered["stable"]["label"] == "v3"


async def test_a_program_that_never_gets_ready_is_given_up_with_the_reason(plane: Plane) -> None:
    deaf = {"command": ["sleep", "60"], "health": "/healthz", "drain": "1s"}
    await plane.live("v1", **WAY)

    await plane.deploy("v2", **WAY, **SHORT, program=deaf)
    ending, why = await plane.ended()

    assert ending == "RolledBack"
    assert "0 of 1 canary pods ready (starting: no answer" in why
    assert (await plane.load().send(50)).of("v1") == 50


async def test_a_route_that_envoy_refuses_leaves_the_old_one_and_says_why(plane: Plane) -> None:
    # A valid expression, and a program larger than Envoy lets one be.
    matches = [{"header": "x-beta", "regex": "(?:yes){200}"}]
    refused = WAY | SHORT | {"strategy": {"kind": "ab", "matches": matches}}
    await plane.live("v1", **WAY)
    async with plane.load(per_second=100).running() as load:
        await plane.deploy("v2", **refused)
        ending, why = await plane.ended()
        await plane.deploy("v3", **WAY)
        await plane.until(lambda rollout, state: state == "Idle" and rollout["runs"] == 2)

    assert ending == "RolledBack"
    assert "envoy refused the new routes" in why
    assert load.tally.failed == 0
    assert (await plane.load().send(50)).of("v3") == 50


def envoy_of(folder: Path) -> int:
    marked = identity.marked(str((folder / "local/processes").resolve()))
    return next(found.pid for found, name, _ in marked if name == "shop.envoy")
