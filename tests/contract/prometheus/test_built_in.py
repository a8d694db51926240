"""The built-in metrics, over numbers that a real Prometheus took from real pages."""

import asyncio
import datetime as dt
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from fairlead.analysis.samples import Counted
from fairlead.areas.rollouts.kubernetes import provider_registry
from fairlead.checks.sources.prometheus import PrometheusSource
from fairlead.checks.spec import Check, CheckKind
from fairlead.clients.processes import clean_up
from fairlead.clients.prometheus import ENVOY, Access, NoData, Prometheus, render
from tests.contract.local.shop_versions import free_port, release_harness
from tests.contract.prometheus.test_measures import about, asking
from tools.servers.prometheus import PrometheusServer

GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "split-traffic-with-a-mesh.md"

pytestmark = [pytest.mark.xdist_group("prometheus"), pytest.mark.slow]


class Page:
    """A page of counters that grow with each look, as those of a busy service do."""

    def __init__(self, lines: dict[str, int]) -> None:
        self.looks = 0
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page.looks += 1
                grown = (f"{name} {step * page.looks}" for name, step in lines.items())
                body = "\n".join((*grown, "")).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing: the tests' own talk is enough."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def istio(workload: str, code: str, namespace: str = "shop") -> str:
    return (
        f'istio_requests_total{{reporter="destination",'
        f'destination_workload_namespace="{namespace}",'
        f'destination_workload="{workload}",response_code="{code}"}}'
    )


def istio_time(workload: str, bound: str) -> str:
    return (
        f'istio_request_duration_milliseconds_bucket{{reporter="destination",'
        f'destination_workload_namespace="shop",destination_workload="{workload}",le="{bound}"}}'
    )


@pytest.fixture
def page() -> Iterator[Page]:
    served = Page(
        {
            istio("web", "200"): 95,
            istio("web", "503"): 5,
            istio("webs", "500"): 1000,
            istio("broken", "500"): 10,
            istio("idle", "200"): 0,
            istio_time("web", "10"): 50,
            istio_time("web", "100"): 100,
            istio_time("web", "+Inf"): 100,
            'envoy_cluster_upstream_rq_xx{envoy_cluster_name="service/shop/web/80/http",'
            'envoy_response_code_class="2"}': 99,
            'envoy_cluster_upstream_rq_xx{envoy_cluster_name="service/shop/web/80/http",'
            'envoy_response_code_class="5"}': 1,
        }
    )
    yield served
    served.close()


async def first_value(client: Prometheus, query: str) -> float:
    async with asyncio.timeout(60):
        while isinstance(found := await client.instant(query), NoData):  # noqa: ASYNC110 - scraped by another
            await asyncio.sleep(0.1)
    return found.only()


@pytest.mark.requirement("canary R5")
async def test_istio_and_gateway_metrics_give_their_numbers(
    server: PrometheusServer, page: Page
) -> None:
    server.scrape({"page": (page.address, "/metrics")})

    def query(provider: str, metric: str, **arguments: str) -> str:
        given = {"namespace": "shop", "interval": "30s", **arguments}
        return render(provider_registry.found()[provider].metrics[metric], given)

    async with Prometheus(Access(server.url)) as client:
        rate = await first_value(client, query("istio", "request-success-rate", target="web"))
        p99 = await first_value(client, query("istio", "request-duration", target="web"))
        broken = await first_value(client, query("istio", "request-success-rate", target="broken"))
        idle = await client.instant(query("istio", "request-success-rate", target="idle"))
        absent = await client.instant(query("istio", "request-success-rate", target="w.b"))
        count = await first_value(client, query("istio", "request-count", target="web"))
        gateway = await first_value(
            client, query("gatewayApi", "request-success-rate", service="web", port="80")
        )

    assert rate == pytest.approx(95.0)
    assert p99 == pytest.approx(98.2)
    # As many as were seen, not what they would be in a whole window.
    assert count > 0
    assert count % 100 == 0
    # Only failures: zero, not "no data", which a patient policy would let live.
    assert broken == 0.0
    assert idle == NoData("only NaN: division by zero")
    assert absent == NoData("no series matches the query")
    assert gateway == pytest.approx(99.0)


async def test_the_guides_query_counts_a_request_of_an_istio_gateway_once(
    server: PrometheusServer,
) -> None:
    blocks = (each.partition("```")[0] for each in GUIDE.read_text().split("```yaml"))
    (check,) = yaml.safe_load(next(each for each in blocks if "rq{" in each))["checks"]
    # As Istio's proxies export it: each request under its code, and under the class of its code.
    cluster = 'envoy_cluster_upstream_rq{cluster_name="outbound|80||web.shop.svc.cluster.local"'
    labels = {"code": ("200", "503"), "code_class": ("2xx", "5xx")}
    lines = {
        f'{cluster},response_{kind}="{code}"}}': count
        for kind, codes in labels.items()
        for code, count in zip(codes, (9396, 604), strict=True)
    }
    page = Page(lines)
    try:
        server.scrape({"page": (page.address, "/metrics")})
        given = {"namespace": "shop", "service": "web", "port": "80", "interval": "30s"}
        async with Prometheus(Access(server.url)) as client:
            rate = await first_value(client, render(check["query"], given))
    finally:
        page.close()

    assert rate == pytest.approx(93.96)


async def test_the_judge_gets_failures_and_requests_of_both_sides(server: PrometheusServer) -> None:
    lines = {
        istio(workload, code, "team"): step
        for workload, steps in {"shop": (342, 18), "shop-canary": (36, 4)}.items()
        for code, step in zip(("200", "503"), steps, strict=True)
    }
    judge = {"metrics": [{"name": "request-success-rate"}]}
    check = Check("all", kind=CheckKind.JUDGE, judge=judge, window=dt.timedelta(seconds=3))
    page = Page(lines)
    try:
        server.scrape({"page": (page.address, "/metrics")})
        async with asking(server.url) as source:
            control, experiment = await compared(source, check, moments=3)
    finally:
        page.close()

    # The page grows by the same counts with every scrape: 5 % and 10 % of them are failures.
    assert [20 * failed for failed in control.events] == list(control.requests)
    assert [10 * failed for failed in experiment.events] == list(experiment.requests)
    assert [9 * few for few in experiment.requests] == list(control.requests)


async def compared(source: PrometheusSource, check: Check, moments: int) -> tuple[Counted, Counted]:
    """Both sides, once so many moments had requests."""
    asked = about(since=0.0)
    async with asyncio.timeout(120):
        while True:
            sides = await source.compare(check, asked)
            control, experiment = (
                side["request-success-rate"] for side in (sides.control, sides.experiment)
            )
            assert isinstance(control, Counted)
            assert isinstance(experiment, Counted)
            if sum(map(bool, experiment.requests)) >= moments:
                return control, experiment
            await asyncio.sleep(0.2)


@pytest.mark.requirement("canary R5")
async def test_a_failing_version_behind_envoy_is_seen_through_prometheus(
    server: PrometheusServer, tmp_path: Path
) -> None:
    metrics = free_port()
    server.scrape({"envoy": (f"127.0.0.1:{metrics}", "/stats/prometheus")})
    try:
        async with (
            release_harness(tmp_path, free_port(), metrics) as harness,
            Prometheus(Access(server.url)) as client,
        ):
            versions = (
                await harness.run("v1"),
                await harness.run("v2", "--errors", "0.5", "--delay-ms", "60"),
            )
            await harness.share(versions, v2=50, v1=50)

            def query(metric: str, version: str) -> str:
                given = {"cluster": version, "interval": "20s"}
                return render(ENVOY[metric], given)

            async with harness.load(per_second=100).running() as load:
                await load.at_least(300)
                good = await first_value(client, query("request-success-rate", "v1"))
                bad = await first_value(client, query("request-success-rate", "v2"))
                fast = await first_value(client, query("request-duration", "v1"))
                slow = await first_value(client, query("request-duration", "v2"))
    finally:
        await clean_up(tmp_path / "processes", drain_seconds=2.0)

    assert good == 100.0
    assert bad == pytest.approx(50.0, abs=20.0)
    assert slow > 55.0
    assert fast < slow
