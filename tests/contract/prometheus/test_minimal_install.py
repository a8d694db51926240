"""The documented small Prometheus is enough: its own configuration, read by the real program."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.areas.rollouts.kubernetes import provider_registry
from fairlead.clients.prometheus import Access, NoData, Prometheus, render
from tests.contract.prometheus.test_built_in import Page, first_value, istio, istio_time
from tools.servers import prometheus
from tools.servers.prometheus import PrometheusServer

pytestmark = pytest.mark.xdist_group("prometheus")
ROOT = Path(__file__).resolve().parents[3]
MANIFESTS = ROOT / "deploy" / "prometheus"
GUIDE = ROOT / "docs" / "how-to" / "install-prometheus.md"
META = "__meta_kubernetes_"
GATEWAY = 'envoy_cluster_upstream_rq_xx{envoy_cluster_name="service/shop/web/80/http",'


def objects(name: str) -> dict[str, Any]:
    """The last of each kind is enough here."""
    return {each["kind"]: each for each in yaml.safe_load_all((MANIFESTS / name).read_text())}


def config() -> str:
    text: str = objects("minimal.yaml")["ConfigMap"]["data"]["prometheus.yml"]
    return text


def target(page: Page, port_name: str, **annotations: str) -> dict[str, Any]:
    """One port of a pod, as the discovery of Kubernetes describes it."""
    host, port = page.address.split(":")
    described = {
        "namespace": "shop",
        "pod_name": f"web-{port}",
        "pod_ip": host,
        "pod_container_port_name": port_name,
        **{f"pod_annotation_{name}": value for name, value in annotations.items()},
    }
    if "sidecar_istio_io_status" in annotations:
        described["pod_annotationpresent_sidecar_istio_io_status"] = "true"
    labels = {f"{META}{name}": value for name, value in described.items()}
    return {"targets": [page.address], "labels": labels}


def jobs(folder: Path, targets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The documented jobs, with targets from a file where Kubernetes would tell them."""
    found = folder / "pods.json"
    found.write_text(json.dumps(targets))
    documented: list[dict[str, Any]] = yaml.safe_load(config())["scrape_configs"]
    for job in documented:
        assert job.pop("kubernetes_sd_configs") == [{"role": "pod"}]
        job["file_sd_configs"] = [{"files": [str(found)]}]
        job["scrape_interval"], job["scrape_timeout"] = "1s", "1s"
    return documented


@pytest.mark.requirement("canary R4")
def test_prometheus_itself_finds_no_fault_with_the_configuration(
    prometheus_program: Path, tmp_path: Path
) -> None:
    tool = prometheus.find_tool()
    if tool is None:
        pytest.skip("promtool did not come with this prometheus")
    # Debian builds it without the discovery of Kubernetes, so that part is told from a file.
    documented = {**yaml.safe_load(config()), "scrape_configs": jobs(tmp_path, [])}
    file = tmp_path / "prometheus.yml"
    file.write_text(yaml.safe_dump(documented))

    command = [str(tool), "check", "config", str(file)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr


@pytest.mark.requirement("canary R4", "canary R5")
@pytest.mark.slow
async def test_the_small_prometheus_answers_the_built_in_metrics(
    prometheus_program: Path, tmp_path: Path
) -> None:
    sidecar = Page({istio("web", "200"): 90, istio("web", "503"): 10, "noise_total": 1})
    gateway = Page(
        {
            f'{GATEWAY}envoy_response_code_class="2"}}': 99,
            f'{GATEWAY}envoy_response_code_class="5"}}': 1,
        }
    )
    merged = Page({istio("web", "200"): 900, istio_time("web", "10"): 1, "orders_total": 5})
    silent = Page({})
    pages = (sidecar, gateway, merged, silent)
    envoy = {"prometheus_io_scrape": "true", "prometheus_io_path": "/stats/prometheus"}
    own = {**envoy, "prometheus_io_port": merged.address.split(":")[1]}
    targets = [
        target(sidecar, "http-envoy-prom"),
        target(gateway, "metrics", **envoy, prometheus_io_port=gateway.address.split(":")[1]),
        # An injected pod shows the numbers of its proxy a second time, beside its own.
        target(merged, "http", **own, sidecar_istio_io_status="{}"),
        target(merged, "grpc", **own, sidecar_istio_io_status="{}"),
        target(silent, "http"),
    ]
    given = {"namespace": "shop", "target": "web", "service": "web", "port": "80"}
    given["interval"] = "30s"
    found = provider_registry.found()

    with PrometheusServer(tmp_path / "server", jobs=jobs(tmp_path, targets)) as server:
        async with Prometheus(Access(server.url)) as client:
            queries = {
                name: render(found[name].metrics["request-success-rate"], given)
                for name in ("istio", "gatewayApi")
            }
            rates = {name: await first_value(client, each) for name, each in queries.items()}
            orders = await first_value(client, 'orders_total{namespace="shop",pod!=""}')
            counted = await first_value(client, "count(up)")
            noise = await client.instant("noise_total")
            twice = await client.instant('istio_requests_total{job="annotated-pods"}')
    for page in pages:
        page.close()

    assert rates["istio"] == pytest.approx(90.0)
    assert rates["gatewayApi"] == pytest.approx(99.0)
    assert orders > 0
    assert counted == 3.0
    assert isinstance(noise, NoData)
    assert isinstance(twice, NoData)


@pytest.mark.requirement("canary R4")
def test_the_documented_install_has_no_dashboards_and_may_only_look_at_pods() -> None:
    for name in ("minimal.yaml", "with-operator.yaml"):
        found = objects(name)
        assert found["ClusterRole"]["rules"] == [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
        ]
        account = found["ServiceAccount"]["metadata"]
        (bound,) = found["ClusterRoleBinding"]["subjects"]
        assert (bound["name"], bound["namespace"]) == (account["name"], account["namespace"])
        assert not {"Alertmanager", "PrometheusRule"} & set(found)
        assert "grafana" not in (MANIFESTS / name).read_text().lower()


@pytest.mark.requirement("canary R4")
def test_the_documented_addresses_are_those_of_the_manifests() -> None:
    guide = GUIDE.read_text()
    service = objects("minimal.yaml")["Service"]
    place, port = service["metadata"], service["spec"]["ports"][0]["port"]
    deployment = objects("minimal.yaml")["Deployment"]["spec"]
    operated = objects("with-operator.yaml")["Prometheus"]["metadata"]

    assert f"URL=http://{place['name']}.{place['namespace']}:{port}" in guide
    assert f"URL=http://prometheus-operated.{operated['namespace']}:9090" in guide
    assert service["spec"]["selector"] == deployment["template"]["metadata"]["labels"]
    for file in re.findall(r"apply -f (\S+)", guide):
        assert (ROOT / file).exists()


def test_the_operators_monitors_read_what_the_plain_one_reads() -> None:
    kept = yaml.safe_load(config())["scrape_configs"][0]["metric_relabel_configs"][0]["regex"]
    monitors = [
        each
        for each in yaml.safe_load_all((MANIFESTS / "with-operator.yaml").read_text())
        if each["kind"] == "PodMonitor"
    ]
    chosen = objects("with-operator.yaml")["Prometheus"]["spec"]["podMonitorSelector"]

    assert monitors[0]["spec"]["podMetricsEndpoints"][0]["metricRelabelings"][0]["regex"] == kept
    for monitor in monitors:
        assert chosen["matchLabels"].items() <= monitor["metadata"]["labels"].items()
    for metric in ("istio_requests_total", "envoy_cluster_upstream_rq_xx"):
        assert re.fullmatch(kept, metric)
