"""Objects reviewed on their way in, by operators that are installed as they gadget.

The objects around the operator are those of `fairlead operator manifests`; the operator is a
process here and not a pod, so the webhook configuration points at its address instead of its
Service. Rights, names, Secret and bundle are as shipped.
"""

import asyncio
import base64
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fairlead.kubernetes.client.clock import utc_now
from fairlead.kubernetes.install import manifests
from fairlead.kubernetes.install.workload import Options
from fairlead.kubernetes.objects import Key, Object
from fairlead.kubernetes.webhook import certificates
from fairlead.kubernetes.webhook.webhook import WebhookPlace
from tests.cluster import client
from tests.cluster.space import Space
from tests.cluster.test_manifests import Kubectl, connection, without_definitions
from tests.e2e import processes
from tests.operator.sample_kind import KIND, bundle
from tests.operator.workers import working
from tools.cluster import control_plane
from tools.cluster.process import free_port

pytestmark = pytest.mark.cluster

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@dataclass(frozen=True)
class Site:
    """One installation, and the hands that look at it from outside."""

    cluster: control_plane.ControlPlane
    admin: client.Client
    kubectl: Kubectl
    space: Space
    folder: Path
    options: Options

    def bundle(self, name: str, **spec: Any) -> Object:
        return bundle(self.space.name, name, **spec)

    @property
    def configuration(self) -> str:
        return f"{HOOKS}/{self.options.name}"

    async def install(self, **chosen: Any) -> None:
        options = replace(self.options, **chosen)
        found = without_definitions(manifests.documents([KIND], options))
        # Nothing runs its pod here.
        await self.kubectl.run(
            [one for one in found if one["kind"] != "Deployment"], "apply", "--server-side"
        )

    async def point(self, port: int) -> None:
        """Let the API server ask here, where a Service would send it to the pods."""
        url = f"https://127.0.0.1:{port}/validate/{KIND.api}"
        change = [
            {"op": "remove", "path": "/webhooks/0/clientConfig/service"},
            {"op": "add", "path": "/webhooks/0/clientConfig/url", "value": url},
        ]
        found = await self.admin.get(self.configuration)
        before = found["webhooks"][0]["clientConfig"]
        body = json.dumps(change if "service" in before else change[1:]).encode()
        await self.admin.send("PATCH", self.configuration, body, "application/json-patch+json")

    @contextlib.contextmanager
    def operator(self, token: str, port: int, name: str = "first") -> Iterator[processes.Running]:
        """The program, with the settings of the shipped pod but for addresses and folders."""
        (pod,) = [one for one in self._documents() if one["kind"] == "Deployment"]
        (container,) = pod["spec"]["template"]["spec"]["containers"]
        shipped = {one["name"]: one["value"] for one in container["env"]}
        own = {
            "FAIRLEAD_STATE_DIR": str(self.folder / name),
            "FAIRLEAD_OPERATOR_LISTEN": "127.0.0.1:0",
            "FAIRLEAD_OPERATOR_WEBHOOKS_LISTEN": f"127.0.0.1:{port}",
            "FAIRLEAD_LOG_FORMAT": "json",
        }
        asked = [*container["args"], "--kubeconfig", self._kubeconfig(token)]
        with processes.running(["-m", "tests.operator.entry", *asked], {**shipped, **own}) as run:
            yield run

    async def until_asked(self) -> None:
        """Until the API server trusts the webhook and hears it."""
        async with asyncio.timeout(120):
            while not await self._refuses():  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.1)

    async def dry(self, obj: Object) -> None:
        """What would come of it; nothing is stored."""
        where = self.space.path("bundles", api="tests.fairlead.dev/v1")
        await self.admin.send("POST", where, obj, query={"dryRun": "All"})

    async def _refuses(self) -> bool:
        try:
            await self.dry(self.bundle("probe", cargo="contraband"))
        except client.ApiError as error:
            return "not carried" in str(error)
        return False

    def _documents(self) -> list[Object]:
        return manifests.documents([KIND], self.options)

    def _kubeconfig(self, token: str) -> str:
        path = self.folder / "kubeconfig"
        ca = str(self.cluster.certificate_authority)
        context = {"cluster": "c", "user": "u", "namespace": self.space.name}
        server = {"server": self.cluster.url, "certificate-authority": ca}
        known = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": context}],
            "clusters": [{"name": "c", "cluster": server}],
            "users": [{"name": "u", "user": {"token": token}}],
        }
        path.write_text(json.dumps(known), encoding="utf-8")
        return str(path)


@pytest.fixture
async def site(
    cluster: control_plane.ControlPlane,
    admin: client.Client,
    space: Space,
    bundles: str,
    tmp_path: Path,
) -> AsyncIterator[Site]:
    del bundles
    options = Options(
        image="registry.test/fairlead:1",
        name=f"op-{space.name}",
        namespace=space.name,
        watched=space.name,
    )
    made = Site(cluster, admin, Kubectl(cluster), space, tmp_path, options)
    yield made
    with contextlib.suppress(client.ApiError):
        await admin.delete(made.configuration)


def shown(port: int) -> str:
    """The certificate that is served there."""
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=10)


async def test_a_bad_object_is_refused_with_field_and_reason(site: Site) -> None:
    port = free_port()
    await site.install(failure_policy="Fail")
    await site.point(port)
    with site.operator(await site.space.token(site.options.name), port):
        await site.until_asked()

        created = await site.kubectl.refused([site.bundle("north", cargo="contraband")], "create")
        held = site.bundle("north", hold=True, gadgets=3)
        await site.kubectl.run([held], "create")
        fewer = site.bundle("north", hold=True, gadgets=1)
        changed = await site.kubectl.refused([fewer], "replace")

    assert created == 'The Bundle "north" is invalid: spec.cargo: not carried: contraband'
    assert changed == (
        'The Bundle "north" is invalid: spec.gadgets: a held bundle keeps its gadgets: 3'
    )


@pytest.mark.parametrize("policy", ["Ignore", "Fail"])
async def test_while_no_operator_answers_the_failure_policy_decides(
    site: Site, policy: str
) -> None:
    port = free_port()
    good, bad = site.bundle("north"), site.bundle("south", cargo="contraband")
    await site.install(failure_policy=policy)
    await site.point(port)
    with site.operator(await site.space.token(site.options.name), port) as process:
        await site.until_asked()
        assert await asyncio.to_thread(process.stop) == 0

    if policy == "Ignore":
        taken = await site.kubectl.run([good, bad], "create")
        assert taken.count("created") == 2
        with site.operator(await site.space.token(site.options.name), port):
            # What came in meanwhile is told by a condition, and can go again.
            where = site.space.path("bundles", "south", api="tests.fairlead.dev/v1")
            told = await site.admin.wait_for(where, lambda one: bool(one.get("status")))
            await site.until_asked()
            await site.kubectl.run([bad], "delete")
        (condition,) = told["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("Accepted", "False")
        assert condition["message"].startswith("not carried: contraband")
    else:
        said = await site.kubectl.refused([good], "create")
        assert 'failed calling webhook "bundles.tests.fairlead.dev"' in said
        assert "connection refused" in said


async def test_without_a_webhook_configuration_the_operator_works_on(site: Site) -> None:
    port = free_port()
    await site.install()
    await site.admin.delete(site.configuration)
    await site.kubectl.run([site.bundle("north")], "create")
    where = site.space.path("bundles", "north", api="tests.fairlead.dev/v1")

    with site.operator(await site.space.token(site.options.name), port) as process:
        ready = await site.admin.wait_for(where, lambda one: bool(one.get("status")), 60)
        code = await asyncio.to_thread(process.stop)

    assert ready["status"]["phase"] == "Ready"
    assert code == 0
    assert len([line for line in process.said if "certificates.no_webhook" in line]) == 1


async def until_shown(port: int) -> str:
    """The certificate of a replica that may still be starting."""
    async with asyncio.timeout(120):
        while True:
            # Between its first listening and its first certificate it hangs up on everybody.
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                return await asyncio.to_thread(shown, port)
            await asyncio.sleep(0.1)


async def test_replicas_serve_one_certificate_whoever_leads(site: Site) -> None:
    first, second = free_port(), free_port()
    await site.install(failure_policy="Fail")
    await site.point(first)
    token = await site.space.token(site.options.name)
    with site.operator(token, first) as one, site.operator(token, second, "second"):
        await site.until_asked()
        served = await asyncio.to_thread(shown, first)
        also = await until_shown(second)
        # The second has no lease to lead by, and answers all the same.
        await site.point(second)
        one.process.kill()
        await site.until_asked()
        await site.dry(site.bundle("north"))

    assert served == also


async def test_the_certificate_is_renewed_and_no_request_is_refused(site: Site) -> None:
    port = free_port()
    await site.install(failure_policy="Fail")
    await site.point(port)
    reached = await connection(site.cluster, site.space, site.options.name)
    key = Key(site.space.name, site.options.certificate)
    # Of an operator that was installed sixty days ago: due in a few seconds.
    old = certificates.make(("127.0.0.1",), utc_now() - timedelta(days=60) + timedelta(seconds=9))
    await site.admin.create(site.space.path("secrets"), secret(key, old))
    admission_server = WebhookPlace("127.0.0.1", port, site.options.name, key, every=1.0)

    async with working(reached, site.space.name, site.folder, admission_server=admission_server):
        await site.until_asked()
        before = await asyncio.to_thread(shown, port)
        asked = 0
        async with asyncio.timeout(60):
            while await asyncio.to_thread(shown, port) == before:
                await asyncio.gather(*(site.dry(site.bundle(f"f-{n}")) for n in range(5)))
                asked += 5
        for number in range(20):
            await site.dry(site.bundle(f"after-{number}"))
        after = await asyncio.to_thread(shown, port)

    hook = (await site.admin.get(site.configuration))["webhooks"][0]
    kept = (await site.admin.get(site.space.path("secrets", key.name)))["data"]
    assert asked > 50
    assert before.encode() == old.certificate.chain
    assert after.encode() == base64.b64decode(kept["tls.crt"])
    assert hook["clientConfig"]["caBundle"] == kept["ca.crt"]
    assert base64.b64decode(kept["ca.crt"]).endswith(old.authority)


def secret(key: Key, pair: certificates.Pair) -> Object:
    data = {
        "ca.crt": pair.authority,
        "tls.crt": pair.certificate.chain,
        "tls.key": pair.certificate.key,
    }
    coded = {name: base64.b64encode(value).decode() for name, value in data.items()}
    return {"metadata": {"name": key.name}, "type": "kubernetes.io/tls", "data": coded}
