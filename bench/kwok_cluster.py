"""Where contestants of benchmark `rollouts` work: a cluster whose pods are ready at once.

A real API server and the controllers of Deployments and ReplicaSets; KWOK says of every pod
that it runs. The API server's audit log counts what the contestant asks, by its user name, so
nobody counts himself.
"""

import collections
import contextlib
import ssl
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

from bench import harness
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.client.credentials import Fixed, Identity
from tools.cluster import control_plane, parts

USER = "contestant"
_NEEDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kwok")
# No garbage collector, no scheduler: they would take a share of two cores, and nothing here
# needs them. Pods name their node.
_CONTROLLERS = ",".join(
    f"{name}-controller" for name in ("deployment", "replicaset", "serviceaccount", "endpointslice")
)
_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata", "users": [USER]}, {"level": "None"}],
}
_ESTABLISH_SECONDS = 60.0


class _Object(msgspec.Struct):
    resource: str = ""
    subresource: str = ""


class _Line(msgspec.Struct):
    """One request as the audit log tells it."""

    verb: str
    object: _Object | None = msgspec.field(default=None, name="objectRef")


class RequestCount:
    """What the contestant asked so far, as the API server wrote it down; watches aside."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = 0
        self._rest = b""
        self.asked: collections.Counter[str] = collections.Counter()

    def total(self) -> int:
        self._catch_up()
        return sum(self.asked.values())

    def _catch_up(self) -> None:
        if not self._log.exists():
            return
        with self._log.open("rb") as log:
            log.seek(self._read)
            fresh = log.read()
        self._read += len(fresh)
        *lines, self._rest = (self._rest + fresh).split(b"\n")
        for line in lines:
            entry = msgspec.json.decode(line, type=_Line)
            if entry.verb == "watch":
                continue
            about = entry.object or _Object("none")
            part = f"/{about.subresource}" if about.subresource else ""
            self.asked[f"{entry.verb} {about.resource}{part}"] += 1


class KwokCluster:
    """One cluster for one contest."""

    def __init__(self, plane: control_plane.ControlPlane, request_count: RequestCount) -> None:
        self._plane = plane
        self._trust = ssl.create_default_context(cafile=plane.certificate_authority)
        self.request_count = request_count
        self.folder = plane.folder
        self.kubeconfig = plane.write_kubeconfig(plane.folder / "contestant", _user(plane))

    @property
    def pids(self) -> dict[str, int]:
        """The servers of the cluster, which work for every contestant."""
        return self._plane.pids

    def calm(self) -> None:
        """From here on nobody but the API server and its store does anything by itself."""
        self._plane.stop_controllers()

    def connection(self) -> Connection:
        """For whoever prepares and watches; not counted."""
        identity = Fixed(Identity(token=self._plane.admin_token))
        ca = self._plane.certificate_authority.read_bytes()
        return Connection(self._plane.url, identity, ca=ca)

    def define(self, definitions: Iterable[bytes]) -> None:
        """Install kinds as their makers wrote them, and wait until they are served."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        made = [self._ask("POST", path, each) for each in definitions]
        deadline = time.monotonic() + _ESTABLISH_SECONDS
        for name in (each["metadata"]["name"] for each in made):
            while not _established(self._ask("GET", f"{path}/{name}", None)):
                if time.monotonic() > deadline:
                    raise harness.Failed(f"a kind is not served: {name}")
                time.sleep(0.1)

    def _ask(self, verb: str, path: str, body: bytes | None) -> dict[str, Any]:
        headers = {
            "Authorization": f"Bearer {self._plane.admin_token}",
            "Content-Type": "application/yaml",
            "Accept": "application/json",
        }
        asked = urllib.request.Request(  # noqa: S310 - our own API server
            f"{self._plane.url}{path}", body, headers, method=verb
        )
        with urllib.request.urlopen(asked, context=self._trust, timeout=60) as answer:  # noqa: S310 - the same
            return cast("dict[str, Any]", msgspec.json.decode(answer.read()))


@contextlib.contextmanager
def open_kwok_cluster() -> Iterator[KwokCluster]:
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as name:
        folder = Path(name)
        policy, log = folder / "audit-policy.json", folder / "audit.log"
        policy.write_bytes(msgspec.json.encode(_POLICY))
        flags = (f"--audit-policy-file={policy}", f"--audit-log-path={log}")
        manner = control_plane.Manner(flags, _CONTROLLERS, scheduler=False)
        plane = control_plane.ControlPlane(parts.find(), folder, manner)
        try:
            plane.start()
            plane.start_nodes()
            yield KwokCluster(plane, RequestCount(log))
        finally:
            plane.stop()


def can_open() -> bool:
    """Whether a Kubernetes is built here; says so if not."""
    lacking = [name for name in _NEEDED if name not in parts.find().programs]
    if lacking:
        harness.say(f"not built, so nothing is measured: {', '.join(lacking)}; {parts.HOW}")
    return not lacking


def _user(plane: control_plane.ControlPlane) -> dict[str, str]:
    shown = plane.certificate_for(USER, ["system:masters"])
    return {"client-certificate": str(shown.certificate), "client-key": str(shown.key)}


def _established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
