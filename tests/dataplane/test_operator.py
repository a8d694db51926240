"""The whole of it: `fairlead operator` as a process, Prometheus, a gateway, and constant load.

Nothing is told by a test but the object: the operator makes workload, Services and route, asks
Prometheus for what Envoy counted, and decides.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlead import bootstrap
from fairlead._demo.load import Load
from fairlead.adapters.kubernetes import rights
from tests.cluster import client
from tests.dataplane import gateway as gateways
from tests.dataplane import kubelet
from tests.dataplane.conftest import NAMESPACE, Road
from tests.dataplane.test_gateway_api import words
from tools.cluster.process import Process
from tools.servers.prometheus import PrometheusServer

pytestmark = pytest.mark.dataplane
URL = f"http://127.0.0.1:{gateways.PORT}/"
LOAD = 200.0
_DEFINITIONS = client.path("apiextensions.k8s.io/v1", "customresourcedefinitions")
CANARIES = client.path("fairlead.dev/v1alpha1", "canarydeployments", NAMESPACE)
SHOP = f"{CANARIES}/shop"


def shop(version: str) -> client.Json:
    container = {"name": "shop", "image": f"shop:{version}"}
    return {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "CanaryDeployment",
        "metadata": {"name": "shop"},
        "spec": {
            "deploymentSpec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "shop"}},
                "template": {
                    "metadata": {"labels": {"app": "shop"}},
                    "spec": {"containers": [container]},
                },
            },
            "serviceSpec": {"ports": [{"port": 80, "targetPort": kubelet.PORT}]},
            "provider": {"gatewayApi": {"route": {"parentRefs": [{"name": "public"}]}}},
            "strategy": {"steps": [10, 50], "pause": "5s"},
            "checks": [
                {"name": "success", "metric": "request-success-rate", "low": 95, "window": "5s"}
            ],
        },
    }


@contextlib.contextmanager
def operating(road: Road, folder: Path) -> Iterator[Process]:
    """The command that users start, in a process of its own."""
    with PrometheusServer(folder / "prometheus") as prometheus:
        address = f"127.0.0.1:{gateways.ADMIN_PORT}"
        prometheus.scrape({"envoy": (address, "/stats/prometheus")})
        settings = {
            "FAIRLEAD_PROMETHEUS_URL": prometheus.url,
            "FAIRLEAD_STATE_DIR": str(folder / "state"),
        }
        command = [sys.executable, "-m", "fairlead", "operator", "--namespace", NAMESPACE]
        reach = ["--kubeconfig", str(road.plane.kubeconfig), "--no-leader-elect"]
        words = [f"{name}={value}" for name, value in settings.items()]
        process = Process(["env", *words, *command, *reach], folder / "operator.log")
        try:
            yield process
        finally:
            process.stop()


async def until(road: Road, process: Process, **status: str) -> client.Json:
    """Until the object's status says this, or the operator's last words tell why not."""

    def so(obj: client.Json) -> bool:
        found = obj.get("status") or {}
        return all(found.get(key) == value for key, value in status.items())

    try:
        return await road.admin.wait_for(SHOP, so, seconds=120.0)
    except AssertionError:
        found = (await road.admin.get(SHOP)).get("status") or {}
        told = {key: value for key, value in found.items() if key != "memory"}
        raise AssertionError(f"not {status}: {told}\n{process.last_words()}") from None


@pytest.mark.requirement("canary R5", "canary R9", "canary R18")
async def test_an_operator_promotes_a_good_version_and_takes_a_bad_one_back(
    road: Road, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    await road.gateway.open(NAMESPACE, merge=True)
    road.kubelet.errors["v3"] = 0.5
    for kind in bootstrap.cast().kinds:
        where = f"{_DEFINITIONS}/{rights.resource(kind.api)}"
        await road.admin.apply(where, rights.definition(kind))
        await road.admin.wait_for(where, _is_established)
    with operating(road, tmp_path) as process:
        await road.admin.create(CANARIES, shop("v1"))
        await until(road, process, phase="Stable", stableVersion="shop:v1")

        async with Load(URL, per_second=LOAD).running() as good:
            await good.at_least(200)
            await road.admin.patch(SHOP, shop("v2"))
            await until(road, process, phase="Stable", stableVersion="shop:v2")
            await good.at_least(200)
        async with Load(URL, per_second=LOAD).running() as bad:
            await road.admin.patch(SHOP, shop("v3"))
            found = await until(road, process, phase="TakenBack")
            await bad.at_least(200)

    tell(f"good: {words(good.tally)}; bad: {words(bad.tally)}; {found['status'].get('message')}")
    assert good.tally.failed == 0
    assert good.tally.of("v1") > 0 < good.tally.of("v2")
    assert bad.tally.lost == 0
    assert {version for (version, code) in bad.tally.answers if code >= 500} == {"v3"}


def _is_established(definition: client.Json) -> bool:
    found = (definition.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in found)
