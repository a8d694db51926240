"""One Kubernetes on loopback: etcd, API server and controllers, and on demand fake nodes.

Started by the fixtures of tests/cluster, by benchmarks and by `python -m tools.cluster up`.
Everything it writes lies in the folder it is given; every server dies with the process that
started it. Synchronous on purpose: it is set up before any event loop runs.
"""

import http.client
import json
import secrets
import shutil
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fairlead import errors
from tools.cluster import parts, pki, process

_READY_SECONDS = 90.0
_ATTEMPTS = 3
_SERVICES = "10.96.0.0/16"
_PODS = "10.64.0.1/16"
_QPS = ("--kube-api-qps=500", "--kube-api-burst=1000")
NODE = "node-0"


@dataclass(frozen=True, slots=True)
class Manner:
    """What a cluster is started with, where it is not for tests."""

    api_server: tuple[str, ...] = ()
    """More flags of the API server."""

    # The one left out would call a node without heartbeats lost, and all its pods not ready
    # for good.
    controllers: str = "*,-node-lifecycle-controller"
    scheduler: bool = True
    """Without it, a pod must name its node."""


USUAL = Manner()


class ControlPlane:
    """The servers of one cluster, and how to reach them."""

    def __init__(self, found: parts.Parts, folder: Path, manner: Manner = USUAL) -> None:
        self._manner = manner
        folder.mkdir(parents=True, exist_ok=True)
        self.parts = found
        self.folder = folder
        self.authority = pki.Authority(folder)
        self.admin_token = secrets.token_urlsafe(24)
        self.kubeconfig = folder / "kubeconfig"
        self._service_accounts = self.authority.service_account_key()
        self._server = self.authority.server()
        self._trust = ssl.create_default_context(cafile=self.authority.certificate)
        self._running: dict[str, process.Process] = {}
        self._data = folder / "etcd"
        self._etcd_port = 0
        self._port = 0
        # The static file is read once, at start: it holds the administrator only. Other users
        # get a certificate from our authority or are service accounts, both at any time.
        tokens = folder / "tokens.csv"
        tokens.write_text(f'{self.admin_token},admin,admin,"system:masters"\n')
        self._tokens = tokens

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def certificate_authority(self) -> Path:
        return self.authority.certificate

    @property
    def pids(self) -> dict[str, int]:
        return {name: server.pid for name, server in self._running.items() if server.alive}

    @property
    def has_controllers(self) -> bool:
        return "kube-controller-manager" in self.parts.programs

    def start(self) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._start()
            except errors.Unavailable as failure:
                self.stop()
                # Between our asking for a free port and the server's taking it, another
                # process can take it.
                if attempt == _ATTEMPTS or "address already in use" not in failure.message:
                    raise
            else:
                return

    def start_nodes(self) -> None:
        """A scheduler, and one fake node on which every pod becomes ready; once is enough."""
        if "kwok" in self._running:
            return
        if self._manner.scheduler:
            self._run("kube-scheduler", *self._controller_flags(), *_QPS)
        stages = sorted(self.parts.folder("stages").glob("*.yaml"))
        kwok = self._run(
            "kwok",
            f"--kubeconfig={self.kubeconfig}",
            "--manage-all-nodes=true",
            "--node-lease-duration-seconds=0",
            f"--server-address=127.0.0.1:{process.free_port()}",
            f"--cidr={_PODS}",
            *(f"--config={stage}" for stage in stages),
        )
        self._call("POST", "/api/v1/nodes", _node())
        # Admission marks a new node as not ready. The controller that would take this away
        # is off (see _start_controllers), so we do.
        self._call("PATCH", f"/api/v1/nodes/{NODE}", {"spec": {"taints": None}})
        kwok.wait_until(self._node_is_ready, _READY_SECONDS)

    def restart_controllers(self) -> None:
        """The garbage collector then knows kinds that were just installed.

        By itself it looks for new kinds every 30 seconds, and until then leaves what objects
        of a new kind owned.
        """
        self._running.pop("kube-controller-manager").kill()
        self._start_controllers()

    def stop_controllers(self) -> None:
        """And with them the fake nodes: objects stay as they are, whoever made them."""
        for name in ("kwok", "kube-scheduler", "kube-controller-manager"):
            if name in self._running:
                self._running.pop(name).kill()

    def restart_api_server(self) -> None:
        self.stop_api_server()
        self.start_api_server()
        self.wait_for_api_server()

    def stop_api_server(self, *, crash: bool = False) -> None:
        """With `crash` it gets no chance to end its answers."""
        server = self._running.pop("kube-apiserver")
        if crash:
            server.kill()
        else:
            server.stop()

    def start_api_server(self) -> None:
        """At the same address, on the same data; does not wait until it answers."""
        plugins = [] if self.has_controllers else ["--disable-admission-plugins=ServiceAccount"]
        self._run(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--cert-dir={self.folder}",
            f"--tls-cert-file={self._server.certificate}",
            f"--tls-private-key-file={self._server.key}",
            f"--client-ca-file={self.certificate_authority}",
            f"--token-auth-file={self._tokens}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._service_accounts}",
            f"--service-account-signing-key-file={self._service_accounts}",
            f"--service-cluster-ip-range={_SERVICES}",
            "--endpoint-reconciler-type=none",
            *plugins,
            *self._manner.api_server,
        )

    def wait_for_api_server(self) -> None:
        server = self._running["kube-apiserver"]
        server.wait_until(self._api_server_is_ready, _READY_SECONDS)

    def stop(self) -> None:
        """Ends all; the servers' logs stay, the data (120 MB) goes."""
        # Killed, not asked: nothing of this cluster is ever read again.
        for name in reversed(list(self._running)):
            self._running.pop(name).kill()
        shutil.rmtree(self._data, ignore_errors=True)

    def write_kubeconfig(self, path: Path, user: Mapping[str, object]) -> Path:
        """JSON, which every reader of YAML takes; `user` as in the file's own words."""
        cluster = {"server": self.url, "certificate-authority": str(self.certificate_authority)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=2) + "\n")
        return path

    def certificate_for(self, user: str, groups: Sequence[str] = ()) -> pki.Credential:
        """A named person of this cluster, with no rights until a binding gives some."""
        return self.authority.user(user, groups)

    def _start(self) -> None:
        self._etcd_port = process.free_port()
        self._port = process.free_port()
        self._start_etcd()
        self.start_api_server()
        self.wait_for_api_server()
        self.write_kubeconfig(self.kubeconfig, {"token": self.admin_token})
        if self.has_controllers:
            self._start_controllers()

    def _start_etcd(self) -> None:
        client = f"http://127.0.0.1:{self._etcd_port}"
        peer = f"http://127.0.0.1:{process.free_port()}"
        server = self._run(
            "etcd",
            f"--data-dir={self._data}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--log-level=warn",
            # A test cluster does not survive the machine, so it need not wait for the disk.
            "--unsafe-no-fsync=true",
        )
        server.wait_until(self._etcd_is_ready, _READY_SECONDS)

    def _start_controllers(self) -> None:
        self._run(
            "kube-controller-manager",
            *self._controller_flags(),
            *_QPS,
            f"--service-account-private-key-file={self._service_accounts}",
            f"--root-ca-file={self.certificate_authority}",
            f"--controllers={self._manner.controllers}",
        )

    def _controller_flags(self) -> tuple[str, ...]:
        return (
            f"--kubeconfig={self.kubeconfig}",
            f"--authentication-kubeconfig={self.kubeconfig}",
            f"--authorization-kubeconfig={self.kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={process.free_port()}",
            f"--cert-dir={self.folder}",
            "--leader-elect=false",
        )

    def _run(self, name: str, *flags: str) -> process.Process:
        program = str(self.parts.program(name))
        server = process.Process([program, *flags], self.folder / f"{name}.log")
        self._running[name] = server
        return server

    def _etcd_is_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._etcd_port, timeout=2)
        return _answers(connection, "/health")

    def _api_server_is_ready(self) -> bool:
        return _answers(self._connection(seconds=2), "/readyz")

    def _node_is_ready(self) -> bool:
        node = self._call("GET", f"/api/v1/nodes/{NODE}", None)
        conditions = node.get("status", {}).get("conditions", [])
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def _connection(self, seconds: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self._port, timeout=seconds, context=self._trust
        )

    def _call(self, verb: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        kind = "application/merge-patch+json" if verb == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self.admin_token}", "Content-Type": kind}
        connection = self._connection(seconds=10)
        try:
            connection.request(verb, path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise errors.Unavailable(
                f"the API server refused {verb} {path}: {content.decode(errors='replace')}",
                hint=f"its output is in {self.folder}",
            )
        return cast("dict[str, Any]", json.loads(content))


def _answers(connection: http.client.HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _node() -> dict[str, Any]:
    room = {"cpu": "100k", "memory": "100Ti", "pods": "100k"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": NODE,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": NODE, "type": "kwok"},
        },
        "status": {"allocatable": room, "capacity": room},
    }
