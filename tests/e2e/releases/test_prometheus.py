"""Releases through a real Envoy, judged by a real Prometheus that scrapes it.

One after the other: what a good, a failing, a slow and an idle version come to; then what questions
and servers that are out of order come to, and that all is well again once they are in order.
"""

import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead import settings
from fairlead.areas.rollouts.domain import messages
from tests.contract.prometheus.conftest import prometheus_program, server
from tests.contract.prometheus.test_client import stopped
from tests.e2e.releases import plane as planes
from tests.unit.clients.processes.programs import until
from tools.servers.prometheus import PrometheusServer

__all__ = ["prometheus_program", "server"]
pytestmark = [pytest.mark.xdist_group("envoy"), pytest.mark.slow]
OFTEN = {"interval": "2s", "initialDelay": "5s", "window": "5s", "consecutiveSuccessLimit": 2}
PATIENT = {"failureLimit": 4, "count": 12}
"""Of times: a machine that stands still for a moment makes a good version slow for as long."""

SUCCESS = {"name": "success", "metric": "request-success-rate", "low": 98}
WAY: dict[str, Any] = {
    "strategy": {"steps": [30], "pause": "1s"},
    "checks": [
        SUCCESS | OFTEN,
        {"name": "latency", "metric": "request-duration", "high": 2000} | OFTEN | PATIENT,
    ],
}


@contextlib.asynccontextmanager
async def judged_by(server: PrometheusServer, folder: Path) -> AsyncIterator[planes.Plane]:
    """A plane whose Envoy is scraped."""
    measures = settings.MeasureSettings(
        prometheus_url=server.url, prometheus_tick_seconds=0.5, prometheus_seconds=1.0
    )
    async with planes.plane(folder, measures) as plane:
        scrape(server, plane)
        yield plane


def scrape(server: PrometheusServer, plane: planes.Plane) -> None:
    server.scrape({"envoy": (f"127.0.0.1:{plane.metrics_port}", "/stats/prometheus")})


def way(*checks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"strategy": {"steps": [30], "pause": "1s"}, "checks": list(checks), **more}


@pytest.mark.requirement("canary R18", "canary R5")
async def test_a_good_version_arrives_and_one_with_errors_rolls_back(
    server: PrometheusServer, tmp_path: Path
) -> None:
    async with judged_by(server, tmp_path) as plane:
        await plane.live("v1", **WAY)
        async with plane.load(per_second=200).running() as load:
            await plane.deploy("v2", **WAY)
            good = await plane.ended()
            await plane.deploy("v3", ["--errors", "0.05"], **WAY)
            bad = await plane.ended()
        weights = await plane.weights()

    assert good[0] == "Promoted", good
    assert bad[0] == "RolledBack", bad
    assert bad[1].startswith("failed at 30 %: success: ")
    assert weights == [30, 100, 30]
    assert load.tally.lost == 0
    assert {whose for whose, status in load.tally.answers if status >= 500} == {"v3"}


@pytest.mark.requirement("canary R18")
async def test_a_version_three_times_slower_rolls_back_at_its_first_step(
    server: PrometheusServer, tmp_path: Path
) -> None:
    rules = way({"name": "latency", "metric": "request-duration", "high": 400} | OFTEN | PATIENT)
    async with judged_by(server, tmp_path) as plane:
        await plane.live("v1", ["--delay-ms", "160"], **rules)
        async with plane.load(per_second=60).running() as load:
            await plane.deploy("v2", ["--delay-ms", "160"], **rules)
            good = await plane.ended()
            await plane.deploy("v3", ["--delay-ms", "480"], **rules)
            slow = await plane.ended()
        weights = await plane.weights()

    assert good[0] == "Promoted", good
    assert slow[0] == "RolledBack", slow
    assert " ms, limit 400 ms" in slow[1]
    assert weights == [30, 100, 30]
    assert load.tally.failed == 0


async def test_a_version_without_traffic_follows_its_policy(
    server: PrometheusServer, tmp_path: Path
) -> None:
    """All four, one after the other: what was not judged was not promoted either."""
    endings, halts = {}, {}
    async with judged_by(server, tmp_path) as plane:
        await plane.live("v1", **way())
        for policy in ("fail", "inconclusive", "wait", "pass"):
            silent = SUCCESS | {"noData": policy, "interval": "1s", "window": "2s", "count": 1}
            await plane.deploy(policy, **way(silent, patience="4s"))
            if policy in ("inconclusive", "wait"):
                rollout = await plane.until(lambda rollout, _: bool(rollout["paused"]))
                halts[policy] = rollout["paused"]["why"]
                assert rollout["route"]["split"]["canary"] == 30
                await plane.say(messages.Abort("test"), f"abort {policy}")
                await plane.say(messages.Resume("test"), f"resume {policy}")
            endings[policy] = (await plane.ended())[0]

    assert (endings["fail"], endings["pass"]) == ("RolledBack", "Promoted")
    assert "the policy is inconclusive" in halts["inconclusive"]
    assert halts["wait"].startswith("no verdict after ")
    assert ": success: " in halts["wait"]
    assert "no data yet" in halts["wait"]


async def test_questions_that_say_nothing_good_roll_a_version_back_and_a_mended_one_goes_on(
    server: PrometheusServer, tmp_path: Path
) -> None:
    limits = {"interval": "1s", "initialDelay": "2s", "low": 0, "high": 100, "noData": "fail"}
    limits |= {"consecutiveErrorLimit": 1}
    odd = {
        "unparsable": ("sum by envoy_server_live", "parse error"),
        "nan": ("(envoy_server_live - 1) / 0", "only NaN"),
        "infinite": ("envoy_server_live / 0", "result inf, limit 100"),
        "minus": ("-envoy_server_live / 0", "result -inf, limit 0"),
    }
    found = {}
    async with judged_by(server, tmp_path) as plane:
        await plane.live("v1", **way())
        async with plane.load(per_second=50).running() as load:
            for name, (query, _) in odd.items():
                check = {"name": "odd", "query": query, "window": "2s", **limits}
                await plane.deploy(name, **way(check))
                found[name] = await plane.ended()
            sane = {"name": "odd", "query": "envoy_server_live", "count": 2, **limits}
            await plane.deploy("mended", **way(sane))
            mended = await plane.ended()
        weights = await plane.weights()

    for name, (_, why) in odd.items():
        assert found[name][0] == "RolledBack", name
        assert why in found[name][1], name
    assert mended[0] == "Promoted", mended
    assert weights == [30, 30, 30, 30, 30, 100]
    assert load.tally.failed == 0


async def test_a_server_that_is_slow_or_down_takes_no_request_with_it_and_is_asked_again(
    server: PrometheusServer, tmp_path: Path
) -> None:
    async with judged_by(server, tmp_path) as plane:
        await plane.live("v1", **WAY)
        async with plane.load(per_second=100).running() as load:
            await plane.deploy("v2", **WAY)
            await plane.at(30)
            os.kill(server.pid, signal.SIGSTOP)
            try:
                await until(lambda: stopped(server.pid))
                await plane.until_told("success", "no answer within 1 s")
            finally:
                os.kill(server.pid, signal.SIGCONT)
            slow = await plane.ended()

            server.stop()
            await plane.deploy("v3", **way(SUCCESS | OFTEN | {"consecutiveErrorLimit": 1}))
            down = await plane.ended()
            server.start()
            scrape(server, plane)
            await plane.say(messages.Retry("test"), "retry")
            await plane.until(lambda rollout, state: state == "Idle" and rollout["runs"] == 3)
            back = await plane.ended()
        weights = await plane.weights()

    assert slow[0] == "Promoted", slow
    assert down[0] == "RolledBack"
    assert "2 errors in a row, limit 1" in down[1]
    assert "did not answer" in down[1]
    assert back[0] == "Promoted", back
    assert weights == [30, 100, 30, 30, 100]
    assert load.tally.failed == 0
