"""Who may read the logs of a workload, and of which version."""

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead.access import tokens
from fairlead.areas.rollouts.workload_logs import WORKLOAD_LOGS, LogLine, LogPage, LogRequest
from fairlead.web.services import Services
from tests.fakes import fleet
from tests.unit.web import rig

IN_CLUSTER = "shops/web/7f3c1a60-0000-4000-8000-000000000001"
LOGS = "/api/v1/rollouts/shop/logs"


class FakeLogs:
    """Logs that say what was asked for."""

    async def read(self, request: LogRequest) -> LogPage:
        said = f"<{request.name} {request.revision or 'running'} {request.tail} {request.after}>"
        return LogPage([LogLine("primary-r1.0", said)], "here")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    async with rig.site(tmp_path, fleet.Fleet().cast()) as made:
        made.app.state.context = dataclasses.replace(
            made.context, services=Services({WORKLOAD_LOGS: FakeLogs()})
        )
        await fleet.halfway(made.engine, "shop")
        yield made


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("", "<shop running 100 >"),
        ("?version=v2&tail=5", "<shop shop-v2 5 >"),
        ("?version=shop-v1&after=x:1", "<shop shop-v1 100 x:1>"),
    ],
)
async def test_a_version_is_known_by_its_name_or_revision(
    site: rig.Site, query: str, asked: str
) -> None:
    answer = await site.client.get(f"{LOGS}{query}")

    assert answer.json() == {"lines": [{"source": "primary-r1.0", "text": asked}], "next": "here"}


async def test_an_unknown_version_is_refused_with_the_known_ones(site: rig.Site) -> None:
    answer = await site.client.get(f"{LOGS}?version=v9")

    assert answer.status_code == 404
    assert answer.json()["error"]["hint"].endswith("use one of: v1, v2")


async def test_a_viewer_reads_no_logs(site: rig.Site) -> None:
    viewer = rig.bearer(await site.token(tokens.Role.VIEWER))
    operator = rig.bearer(await site.token(tokens.Role.OPERATOR))

    assert (await site.client.get(LOGS, headers=viewer)).status_code == 403
    assert (await site.client.get(LOGS, headers=operator)).status_code == 200


async def test_logs_of_a_cluster_are_kubectl_s(site: rig.Site) -> None:
    await fleet.live(site.engine, IN_CLUSTER)

    answer = await site.client.get("/api/v1/rollouts/shops/web/logs")

    assert answer.status_code == 404
    assert "kubectl logs" in answer.json()["error"]["hint"]


async def test_the_page_shows_them_as_text(site: rig.Site) -> None:
    page = {"Accept": "text/html"}

    shown = await site.client.get("/rollouts/shop/logs?version=v1", headers=page)
    rollout = await site.client.get("/rollouts/shop", headers=page)

    assert "primary-r1.0 | &lt;shop shop-v1 300 &gt;" in shown.text
    assert 'href="/rollouts/shop/logs"' in rollout.text
