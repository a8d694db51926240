"""The whole of it: `fairlead operator` as a process, Prometheus, a gateway, and constant load.

Nothing is told by a test but the object: the operator makes workload, Services and route, asks
Prometheus for what Envoy counted, and decides.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead import bootstrap
from fairlead.bootstrap import operator as wiring
from fairlead.cli.demo.load import Load
from fairlead.kubernetes import rbac
from tests.cluster import client
from tests.dataplane import gateway as gateways
from tests.dataplane import kubelet
from tests.dataplane.conftest import NAMESPACE, Dataplane
from tests.dataplane.test_gateway_api import ROUTES, THEIRS, words
from tools.cluster.process import Process
from tools.servers.prometheus import PrometheusServer

pytestmark = pytest.mark.dataplane
URL = f"http://127.0.0.1:{gateways.PORT}/"
LOAD = 200.0
_DEFINITIONS = client.path("apiextensions.k8s.io/v1", "customresourcedefinitions")
CANARIES = client.path("fairlead.dev/v1alpha1", "canarydeployments", NAMESPACE)
SHOP = f"{CANARIES}/shop"


RULES = {
    "strategy": {"steps": [10, 50], "pause": "5s"},
    "checks": [{"name": "success", "metric": "request-success-rate", "low": 95, "window": "5s"}],
}


def workload(version: str) -> client.Json:
    labels, container = {"app": "shop"}, {"name": "shop", "image": f"shop:{version}"}
    return {
        "replicas": 3,
        "selector": {"matchLabels": labels},
        "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }


PORTS = {"ports": [{"port": 80, "targetPort": kubelet.PORT}]}


class Embedded:
    """The object carries workload and Service, and the route is ours."""

    async def create(self, admin: client.Client) -> None:
        route = {"parentRefs": [{"name": "public"}]}
        await admin.create(
            CANARIES,
            _canary(
                deploymentSpec=workload("v1"),
                serviceSpec=PORTS,
                provider={"gatewayApi": {"route": route}},
            ),
        )

    async def change(self, admin: client.Client, version: str) -> None:
        await admin.patch(SHOP, {"spec": {"deploymentSpec": workload(version)}})


class Adopted:
    """Workload, Service and route exist; the object names them."""

    async def create(self, admin: client.Client) -> None:
        apps = client.path("apps/v1", "deployments", NAMESPACE)
        await admin.create(apps, _object("Deployment", "apps/v1", workload("v1")))
        service = {**PORTS, "selector": {"app": "shop"}}
        services = client.path("v1", "services", NAMESPACE)
        await admin.create(services, _object("Service", "v1", service))
        await admin.create(ROUTES, THEIRS)
        await admin.create(
            CANARIES,
            _canary(
                targetRef={"name": "shop"},
                service={"name": "shop", "port": 80},
                provider={"gatewayApi": {"routeName": "web"}},
            ),
        )

    async def change(self, admin: client.Client, version: str) -> None:
        where = client.path("apps/v1", "deployments", NAMESPACE, "shop")
        await admin.patch(where, {"spec": {"template": workload(version)["template"]}})


def _canary(**spec: Any) -> client.Json:
    return _object("CanaryDeployment", "fairlead.dev/v1alpha1", {**spec, **RULES})


def _object(kind: str, api: str, spec: client.Json) -> client.Json:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "shop"}, "spec": spec}


class Operators:
    """The command that users start, each time as a process of its own with an empty store."""

    def __init__(self, data_plane: Dataplane, folder: Path, prometheus: str) -> None:
        self._road = data_plane
        self._folder = folder
        self._prometheus = prometheus
        self._count = 0
        self.process = self._start()

    def kill(self) -> None:
        """It gets no chance to say a word; its successor knows only what the cluster shows."""
        self.process.kill()
        self.process = self._start()

    def _start(self) -> Process:
        self._count += 1
        settings = [
            f"FAIRLEAD_PROMETHEUS_URL={self._prometheus}",
            f"FAIRLEAD_STATE_DIR={self._folder / f'state-{self._count}'}",
        ]
        command = [sys.executable, "-m", "fairlead", "operator", "--namespace", NAMESPACE]
        reach = ["--kubeconfig", str(self._road.plane.kubeconfig), "--no-leader-elect"]
        log = self._folder / f"operator-{self._count}.log"
        return Process(["env", *settings, *command, *reach], log)


@contextlib.contextmanager
def operating(data_plane: Dataplane, folder: Path) -> Iterator[Operators]:
    with PrometheusServer(folder / "prometheus") as prometheus:
        address = f"127.0.0.1:{gateways.ADMIN_PORT}"
        prometheus.scrape({"envoy": (address, "/stats/prometheus")})
        operators = Operators(data_plane, folder, prometheus.url)
        try:
            yield operators
        finally:
            operators.process.stop()


async def until(data_plane: Dataplane, operators: Operators, **status: Any) -> client.Json:
    """Until the object's status says this, or the operator's last words tell why not."""

    def so(obj: client.Json) -> bool:
        found = obj.get("status") or {}
        return all(found.get(key) == value for key, value in status.items())

    try:
        return await data_plane.admin.wait_for(SHOP, so, seconds=120.0)
    except AssertionError:
        found = (await data_plane.admin.get(SHOP)).get("status") or {}
        told = {key: value for key, value in found.items() if key != "memory"}
        raise AssertionError(f"not {status}: {told}\n{operators.process.last_words()}") from None


@pytest.mark.requirement("canary R5", "canary R9", "canary R18", "canary R27")
@pytest.mark.parametrize("form", [Embedded(), Adopted()], ids=["embedded", "adopted"])
async def test_an_operator_promotes_a_good_version_and_takes_a_bad_one_back(
    data_plane: Dataplane, tmp_path: Path, tell: Callable[[str], None], form: Embedded | Adopted
) -> None:
    await data_plane.gateway.open(NAMESPACE, merge=True)
    data_plane.kubelet.errors["v3"] = 0.5
    for kind in wiring.with_kinds(bootstrap.installation()).kinds:
        where = f"{_DEFINITIONS}/{kind.api}"
        await data_plane.admin.apply(where, rbac.definition(kind))
        await data_plane.admin.wait_for(where, _is_established)
    with operating(data_plane, tmp_path) as operators:
        await form.create(data_plane.admin)
        await until(data_plane, operators, phase="Stable", stableVersion="shop:v1")

        async with Load(URL, per_second=LOAD).running() as good:
            await good.at_least(200)
            await form.change(data_plane.admin, "v2")
            await until(data_plane, operators, canaryWeight=10)
            operators.kill()
            await until(data_plane, operators, phase="Stable", stableVersion="shop:v2")
            await good.at_least(200)
        async with Load(URL, per_second=LOAD).running() as bad:
            await form.change(data_plane.admin, "v3")
            found = await until(data_plane, operators, phase="RolledBack")
            await bad.at_least(200)

    tell(f"good: {words(good.tally)}; bad: {words(bad.tally)}; {found['status'].get('message')}")
    assert good.tally.failed == 0
    assert good.tally.of("v1") > 0 < good.tally.of("v2")
    assert bad.tally.lost == 0
    assert {version for (version, code) in bad.tally.answers if code >= 500} == {"v3"}


def _is_established(definition: client.Json) -> bool:
    found = (definition.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in found)
