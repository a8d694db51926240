"""`fairlead up` with a real Envoy and a real Prometheus between the requests and the verdict."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli.demo.load import Load
from tests.contract.local.shop_versions import free_port
from tests.e2e import local
from tools.servers.prometheus import PrometheusServer

pytestmark = [pytest.mark.xdist_group("prometheus"), pytest.mark.slow]
SUCCESS = {"name": "success", "metric": "request-success-rate", "low": 98}
SPEED = {"name": "speed", "metric": "request-duration", "high": 700}
# A busy machine is slower now and then; the slow version is so in every measurement.
PATIENT = {"failureLimit": 4, "count": 12, "consecutiveSuccessLimit": 2}
# The numbers of a second are read each second: a window needs two of them and some more.
EVERY = {"window": "5s", "interval": "1s", "initialDelay": "5s"}
FAILED = r"\d+ of \d+ requests failed: 9\d.* %, at least 98 % required"
FIRST = ["--delay-ms", "20"]
JUDGE = {
    "name": "like-before",
    "window": "2s",
    "interval": "2s",
    "judge": {
        "metrics": [
            {
                "name": "request-duration",
                # A busy machine is slower now and then; the slow version is so all the time.
                "analysisConfigurations": {
                    "canary": {"direction": "increase", "effectSize": {"allowedIncrease": 2.0}}
                },
            }
        ]
    },
}


def way(*checks: dict[str, Any], metrics_port: int, **more: Any) -> dict[str, Any]:
    strategy = {"steps": [30], "pause": "6s"}
    return {
        "strategy": strategy,
        "checks": list(checks),
        "metricsPort": metrics_port,
        "patience": "60s",
        **more,
    }


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[local.Site]:
    async with local.site(tmp_path) as made:
        yield made


async def run(
    site: local.Site,
    server: PrometheusServer,
    arguments: list[str],
    *checks: dict[str, Any],
    per_second: float = 200,
) -> tuple[dict[str, Any], Load]:
    """Version 1, then version 2 with these arguments, under load until it stands still."""
    metrics = free_port()
    server.scrape({"envoy": (f"127.0.0.1:{metrics}", "/stats/prometheus")})
    rules = way(*checks, metrics_port=metrics)
    load = Load(site.url, per_second=per_second)
    settings = {
        "FAIRLEAD_PROMETHEUS_URL": server.url,
        "FAIRLEAD_PROMETHEUS_TICK_SECONDS": "0.5",
    }
    with site.up(settings) as up:
        assert (await site.deploy("v1", FIRST, **rules)).returncode == 0
        await site.until("Idle")
        async with load.running():
            await load.at_least(400)
            await site.deploy("v2", arguments, **rules)
            state = await standing(site)
        assert up.stop() == 0
    return state, load


async def standing(site: local.Site) -> dict[str, Any]:
    """Once a run is over, or a person has to look."""
    async with asyncio.timeout(120):
        while True:
            seen = await site.stream()
            rollout = seen["data"]["rollout"]
            if (seen["state"] == "Idle" and rollout["outcome"]) or rollout["paused"]:
                return seen
            await asyncio.sleep(1)


@pytest.mark.requirement("canary R18")
async def test_a_good_version_is_promoted_by_its_numbers(
    site: local.Site, server: PrometheusServer
) -> None:
    checks = (SUCCESS | EVERY, SPEED | EVERY | PATIENT, JUDGE)

    state, load = await run(site, server, FIRST, *checks)

    outcome = state["data"]["rollout"]["outcome"]
    assert outcome["ending"] == "Promoted", outcome
    assert load.tally.failed == 0


@pytest.mark.requirement("canary R18")
@pytest.mark.parametrize(
    ("arguments", "check", "why"),
    [
        (
            [*FIRST, "--errors", "0.05"],
            SUCCESS | EVERY,
            r"\d+ of \d+ requests failed: 9\d.* %, at least 98 % required",
        ),
        (["--delay-ms", "1000"], SPEED | EVERY | PATIENT, " ms, limit 700 ms"),
        (["--delay-ms", "400"], JUDGE, "request-duration is High"),
    ],
    ids=["errors", "slow", "slower than before"],
)
async def test_a_bad_version_rolls_back_at_its_first_step(
    site: local.Site, server: PrometheusServer, arguments: list[str], check: Any, why: str
) -> None:
    state, load = await run(site, server, arguments, check)

    rollout = state["data"]["rollout"]
    assert rollout["outcome"]["ending"] == "RolledBack", rollout["outcome"]
    assert re.search(why, rollout["outcome"]["why"])
    assert "at 30 %" in rollout["outcome"]["why"]
    assert rollout["stable"]["label"] == "v1"
    # Nothing failed but what the bad version itself failed.
    assert load.tally.lost == 0
    assert all(load.tally.answers["v1", status] == 0 for status in range(500, 600))


@pytest.mark.parametrize(("policy", "ending"), [("fail", "RolledBack"), ("wait", None)])
async def test_a_version_without_requests_follows_its_policy(
    site: local.Site, server: PrometheusServer, policy: str, ending: str | None
) -> None:
    metrics = free_port()
    server.scrape({"envoy": (f"127.0.0.1:{metrics}", "/stats/prometheus")})
    rules = way(SUCCESS | EVERY | {"noData": policy}, metrics_port=metrics, patience="10s")

    with site.up({"FAIRLEAD_PROMETHEUS_URL": server.url}):
        await site.deploy("v1", FIRST, **rules)
        await site.until("Idle")
        await site.deploy("v2", FIRST, **rules)
        rollout = (await standing(site))["data"]["rollout"]

    if ending is None:
        assert rollout["paused"]["why"].startswith("no verdict after ")
        assert "no data yet" in rollout["paused"]["why"]
    else:
        assert rollout["outcome"]["ending"] == ending
