"""The same releases judged by a real Prometheus that scrapes Envoy."""

from pathlib import Path
from typing import Any

import pytest

from fairlead import settings
from tests.contract.prometheus.conftest import prometheus_program, server
from tests.e2e.releases import plane as planes
from tools.servers.prometheus import PrometheusServer

__all__ = ["prometheus_program", "server"]
pytestmark = [pytest.mark.xdist_group("envoy"), pytest.mark.slow]
OFTEN = {"interval": "2s", "initialDelay": "5s", "window": "5s", "consecutiveSuccessLimit": 2}
WAY: dict[str, Any] = {
    "strategy": {"steps": [30], "pause": "1s"},
    "checks": [
        {"name": "success", "metric": "request-success-rate", "low": 98} | OFTEN,
        {"name": "latency", "metric": "request-duration", "high": 2000} | OFTEN,
    ],
}


@pytest.mark.requirement("canary R18", "canary R5")
async def test_a_good_version_arrives_and_one_with_errors_goes_home(
    server: PrometheusServer, tmp_path: Path
) -> None:
    measures = settings.MeasureSettings(prometheus_url=server.url, prometheus_tick_seconds=1.0)
    async with planes.plane(tmp_path, measures) as plane:
        server.scrape({"envoy": (f"127.0.0.1:{plane.metrics_port}", "/stats/prometheus")})
        await plane.live("v1", **WAY)
        async with plane.load(per_second=200).running() as load:
            await plane.deploy("v2", **WAY)
            good = await plane.ended()
            await plane.deploy("v3", ["--errors", "0.1"], **WAY)
            bad = await plane.ended()
        shares = await plane.shares()

    assert good[0] == "Promoted", good
    assert bad[0] == "TakenBack", bad
    assert bad[1].startswith("Failed at 30 %: success: ")
    assert shares == [30, 100, 30]
    assert load.tally.lost == 0
    assert {whose for whose, status in load.tally.answers if status >= 500} == {"v3"}
