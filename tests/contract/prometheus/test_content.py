"""What comes back decides a content's release: archives received against configurations served.

A real Prometheus asks the service for what it served, and whoever takes archives for what came
back; clusters that poll send one for each configuration, but few for a bad version.
"""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.e2e.content.polling import Answer, Clusters
from tests.e2e.content.test_release import PAUL, Plane, plane
from tools.servers.prometheus import PrometheusServer

pytestmark = [pytest.mark.xdist_group("prometheus"), pytest.mark.slow]
BAD = "1.0.3"
SHARE = (
    'sum(increase(archives_total{version="{{ version }}"}[{{ interval }}]))'
    ' / sum(increase(fairlead_content_answers_total{version="{{ version }}"}[{{ interval }}]))'
)
LIMIT = {"name": "archives", "query": SHARE, "low": 0.7, "window": "5s", "interval": "2s"}
JUDGE = {
    "name": "archives",
    "window": "2s",
    "interval": "2s",
    "judge": {
        "metrics": [
            {
                "name": "archives for each configuration",
                "query": SHARE,
                "analysisConfigurations": {
                    "canary": {"direction": "decrease", "effectSize": {"allowedDecrease": 0.5}}
                },
            }
        ]
    },
}


@dataclass
class Archives:
    """Takes what clusters send back, and counts it by version."""

    clusters: Clusters

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    async def _metrics(self, _: web.Request) -> web.Response:
        came = Counter(
            each.version for n, each in enumerate(self.clusters.answers) if _sends(n, each)
        )
        lines = [f'archives_total{{version="{each}"}} {count}\n' for each, count in came.items()]
        return web.Response(text="".join(["# TYPE archives_total counter\n", *lines]))


def _sends(number: int, answer: Answer) -> bool:
    return answer.version != BAD or number % 5 == 0


async def released(here: Plane, version: str, **more: Any) -> tuple[str, str]:
    """How its run ended, and why."""
    await here.propose(version, **more)
    await here.ask(PAUL, "approve")
    told = await here.at_rest()
    return told.outcome, told.why


@pytest.mark.requirement("content 7", "content 8", "content 9")
@pytest.mark.parametrize(
    ("check", "bake"), [(LIMIT, "12s"), (JUDGE, "20s")], ids=["limit", "judge"]
)
async def test_archives_against_configurations_promote_a_good_version_and_revert_a_bad_one(
    tmp_path: Path, server: PrometheusServer, check: dict[str, Any], bake: str
) -> None:
    settings = {
        "FAIRLEAD_PROMETHEUS_URL": server.url,
        "FAIRLEAD_PROMETHEUS_TICK_SECONDS": "0.5",
    }
    more = {"steps": [{"share": 50, "bake": bake}], "checks": [{"initialDelay": "6s", **check}]}
    async with plane(tmp_path, settings, more) as here:
        # One instance, so that its counts are those of all.
        here.file["local"]["replicas"] = 1
        for version in ("1.0.2", BAD):
            here.push(version)
        service = here.clusters.url.removeprefix("http://")
        async with Archives(here.clusters).serving() as back:
            server.scrape({"content": (service, "/metrics"), "archives": (back, "/metrics")})
            await released(here, "1.0.1", emergency=True)
            async with here.clusters.polling():
                good = await released(here, "1.0.2")
                bad = await released(here, BAD)
                await here.gets("1.0.2")

    assert good[0] == "1.0.2: Promoted"
    assert bad[0] == f"{BAD}: Reverted"
    assert "archives" in bad[1]
