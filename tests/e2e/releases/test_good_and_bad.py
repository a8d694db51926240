"""Whole releases through a real Envoy: good ones arrive, bad ones roll back, nobody is lost."""

import asyncio
from typing import Any

import pytest

from fairlead.areas.rollouts.domain import messages
from fairlead.cli.demo.load import Tally
from tests.contract.local.shop_versions import four_deviations
from tests.e2e.releases.plane import Plane

pytestmark = [pytest.mark.xdist_group("envoy"), pytest.mark.slow]
SUCCESS = {"name": "success", "metric": "request-success-rate", "low": 98}
OFTEN = {"interval": "1s", "initialDelay": "2s", "consecutiveSuccessLimit": 2}
# A machine that stands still for a moment makes a good version slow for as long; a slow one is slow
# in every measurement.
PATIENT = {"failureLimit": 4, "count": 12}
STEPPED: dict[str, Any] = {
    "strategy": {"paces": [{"weight": 10, "approve": True}, {"weight": 50, "approve": True}]},
    "checks": [SUCCESS | OFTEN],
}


@pytest.mark.requirement("canary R18")
async def test_over_20000_requests_only_a_bad_version_fails_any(plane: Plane) -> None:
    total = Tally()
    await plane.live("v1", **STEPPED)
    async with plane.load(customers=12).running() as load:
        await plane.deploy("v2", **STEPPED)
        for weight in (10, 50):
            await plane.at(weight)
            sent = await plane.load(customers=4).send(1500)
            assert abs(sent.of("v2") - 15 * weight) <= four_deviations(1500, weight), (weight, sent)
            total.answers += sent.answers
            total.broken += sent.broken
            await plane.say(messages.Approve("test"), f"approve {weight}")
        promoted = await plane.ended()
        await plane.deploy("v3", ["--errors", "0.05"], **STEPPED)
        rolled_back = await plane.ended()
        await load.at_least(max(500, 20_000 - load.tally.sent - total.sent))
    total.answers += load.tally.answers
    total.broken += load.tally.broken

    assert total.sent >= 20_000
    assert promoted[0] == "Promoted"
    assert rolled_back[0] == "RolledBack"
    assert rolled_back[1].startswith("failed at 10 %: success: ")
    assert await plane.weights() == [10, 50, 100, 10]
    assert total.lost == 0, total
    failures = {whose for whose, status in total.answers if status >= 500}
    assert failures == {"v3"}


async def test_a_version_three_times_slower_is_rolled_back_at_its_first_step(plane: Plane) -> None:
    way: dict[str, Any] = {
        "strategy": {"steps": [20], "pause": "4s"},
        "checks": [
            {"name": "latency", "metric": "request-duration", "high": 190} | OFTEN | PATIENT
        ],
    }
    await plane.live("v1", ["--delay-ms", "80"], **way)
    async with plane.load(per_second=80).running() as load:
        await plane.deploy("v2", ["--delay-ms", "80"], **way)
        good = await plane.ended()
        await plane.deploy("v3", ["--delay-ms", "240"], **way)
        slow = await plane.ended()

    assert good[0] == "Promoted", good
    assert slow[0] == "RolledBack"
    assert " ms, limit 190 ms" in slow[1]
    assert await plane.weights() == [20, 100, 20]
    assert load.tally.failed == 0


@pytest.mark.parametrize(
    ("policy", "then"),
    [("pass", "Promoted"), ("fail", "RolledBack"), ("inconclusive", "paused"), ("wait", "paused")],
)
async def test_a_version_without_traffic_follows_its_policy(
    plane: Plane, policy: str, then: str
) -> None:
    check = SUCCESS | {"noData": policy, "interval": "1s", "count": 1}
    way: dict[str, Any] = {"strategy": {"steps": [10]}, "checks": [check], "patience": "3s"}
    await plane.live("v1", **way)

    await plane.deploy("v2", **way)

    if then == "paused":
        rollout = await plane.until(lambda rollout, _: bool(rollout["paused"]))
        assert "no data" in rollout["paused"]["why"]
        assert (await plane.load().send(50)).failed == 0
    else:
        assert (await plane.ended())[0] == then


@pytest.mark.parametrize(
    ("baseline", "ending"), [(False, "RolledBack"), (True, "Promoted")], ids=["primary", "baseline"]
)
async def test_a_good_version_that_is_cold_at_first_is_compared_with_a_cold_baseline(
    plane: Plane, *, baseline: bool, ending: str
) -> None:
    """Beside the warm primary it would look slow; beside the old version made new it does not."""
    # Slow enough that what a busy machine adds to both sides leaves them apart, and cold until
    # the verdict, however long the start takes.
    shop = ["--delay-ms", "100", "--cold-seconds", "24"]
    metric = {
        "name": "request-duration",
        "analysisConfigurations": {
            "canary": {
                "direction": "increase",
                "critical": True,
                "effectSize": {"allowedIncrease": 1.5},
            }
        },
    }
    judge = {"name": "judge", "judge": {"metrics": [metric]}, "initialDelay": "9s"}
    strategy = {"steps": [25], "pause": "1s", "baseline": baseline}
    way: dict[str, Any] = {"strategy": strategy, "checks": [judge]}
    await plane.live("v1", shop, **way)
    await asyncio.sleep(24)
    async with plane.load(per_second=120).running() as load:
        await plane.deploy("v2", shop, **way)
        await plane.at(25)
        split = (await plane.until(lambda *_: True))["route"]["split"]
        found = await plane.ended()

    assert split.get("baseline", 0) == (25 if baseline else 0)
    assert found[0] == ending, found
    assert load.tally.failed == 0


async def test_the_judge_compares_both_versions_by_envoys_numbers(plane: Plane) -> None:
    metric = {
        "name": "request-success-rate",
        "analysisConfigurations": {"canary": {"direction": "decrease", "critical": True}},
    }
    judge = {"name": "judge", "judge": {"metrics": [metric]}, "initialDelay": "9s"}
    way: dict[str, Any] = {"strategy": {"steps": [50], "pause": "1s"}, "checks": [judge]}
    await plane.live("v1", **way)
    async with plane.load(per_second=150).running():
        await plane.deploy("v2", ["--errors", "0.2"], **way)
        ending, why = await plane.ended()

    assert ending == "RolledBack", why
    assert "request-success-rate" in why
