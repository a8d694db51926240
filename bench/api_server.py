"""Where contestants of benchmark `kubernetes` work: a real API server and a namespace of bundles.

No controllers run beside it: garbage collection would take a share of two cores, and a
different one for each contestant. etcd does not wait for the disk, for nobody.
"""

import asyncio
import contextlib
import functools
import re
import ssl
import subprocess
import tempfile
import urllib.request
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from bench import harness
from bench.contestants import fleet
from fairlead import errors
from fairlead.kubernetes import objects, rbac
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.client.credentials import Fixed, Identity
from fairlead.kubernetes.client.limits import Limits
from fairlead.kubernetes.client.transport import ClientOptions
from fairlead.kubernetes.objects import Selection
from tests.contract.kubernetes_samples import CONFIG_MAPS, CRDS, NAMESPACES
from tests.operator.sample_kind import KIND, bundle
from tools.cluster import control_plane, parts

BUNDLES = KIND.api
NAMESPACE = "bench"
_ESTABLISH_SECONDS = 30.0
_AT_ONCE = 16
_COUNT = re.compile(r"^apiserver_request_total\{(.*)\} ([0-9.e+]+)$", re.MULTILINE)
_HERE = Selection(NAMESPACE)
_TEMPO = ClientOptions(Limits(rate=1e6, burst=1_000_000))


class ApiServer:
    """The API server, seen by whoever prepares and checks."""

    def __init__(self, plane: control_plane.ControlPlane) -> None:
        self._plane = plane
        self._trust = ssl.create_default_context(cafile=plane.certificate_authority)

    def task(self, count: int, **more: float) -> fleet.Task:
        authority = str(self._plane.certificate_authority)
        task = fleet.Task(self._plane.url, self._plane.admin_token, authority, NAMESPACE, count)
        return msgspec.structs.replace(task, **more)

    def prepare(self, count: int, children: int) -> None:
        """An empty namespace with so many new objects."""
        self._with_client(lambda client: _prepare(client, count, children))

    def check(self, task: fleet.Task) -> None:
        """Whether the work is really done, by what the API server holds."""
        self._with_client(lambda client: _check(client, task))

    def requests(self) -> float:
        """Requests for bundles and config maps so far, watches aside, by the server's count."""
        asked = urllib.request.Request(  # noqa: S310 - our own API server
            f"{self._plane.url}/metrics",
            headers={"Authorization": f"Bearer {self._plane.admin_token}"},
        )
        with urllib.request.urlopen(asked, context=self._trust, timeout=30) as answer:  # noqa: S310 - the same
            text = answer.read().decode()
        return sum(float(n) for labels, n in _COUNT.findall(text) if _counts(labels))

    def contest(self, module: str, task: fleet.Task) -> Mapping[str, float]:
        """One contestant on fresh objects, its requests counted and its work checked."""
        self.prepare(task.objects, task.children)
        before = self.requests()
        measurements = run(module, task)
        measurements["requests_per_object"] = (self.requests() - before) / task.objects
        self.check(task)
        return measurements

    def _with_client(self, do: Callable[[Client], Awaitable[None]]) -> None:
        identity = Fixed(Identity(token=self._plane.admin_token))
        ca = self._plane.certificate_authority.read_bytes()

        async def open_and_do() -> None:
            connection = Connection(self._plane.url, identity, ca=ca)
            async with Client(connection, manager="bench", options=_TEMPO) as client:
                await do(client)

        asyncio.run(open_and_do())

    def install(self) -> None:
        self._with_client(_install)


@contextlib.contextmanager
def open_api_server() -> Iterator[ApiServer | None]:
    """None where no Kubernetes is built here."""
    found = parts.find()
    lacking = [name for name in ("etcd", "kube-apiserver") if name not in found.programs]
    if lacking:
        harness.say(f"not built, so nothing is measured: {', '.join(lacking)}; {parts.HOW}")
        yield None
        return
    programs = {
        name: path for name, path in found.programs.items() if name != "kube-controller-manager"
    }
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder:
        plane = control_plane.ControlPlane(parts.Parts(programs, found.files), Path(folder))
        try:
            plane.start()
            server = ApiServer(plane)
            server.install()
            yield server
        finally:
            plane.stop()


def run(module: str, task: fleet.Task) -> harness.Rates:
    """Start a contestant, let it load its code, then let it begin."""
    worker = harness.start_contest(module, task)
    begin(worker, module)
    return harness.measurements_of(worker, module)


def begin(worker: "subprocess.Popen[str]", module: str) -> None:
    assert worker.stdout is not None
    assert worker.stdin is not None
    if not worker.stdout.readline():
        harness.measurements_of(worker, module)
    worker.stdin.write("go\n")
    worker.stdin.flush()


def _counts(labels: str) -> bool:
    ours = 'resource="bundles"' in labels or 'resource="configmaps"' in labels
    return ours and 'verb="WATCH"' not in labels


async def _install(client: Client) -> None:
    await client.create(CRDS, rbac.definition(KIND))
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    async with asyncio.timeout(_ESTABLISH_SECONDS):
        while True:
            try:
                await client.page(BUNDLES, _HERE)
            except errors.NotFound:
                # The API server serves a new kind a moment after it took its definition.
                await asyncio.sleep(0.1)
            else:
                return


async def _prepare(client: Client, count: int, children: int) -> None:
    for resource in (BUNDLES, CONFIG_MAPS):
        left = [objects.key_of(each) async for each in client.each(resource, _HERE)]
        await _side_by_side(functools.partial(client.delete, resource), left)
    names = (f"bundle-{number:05}" for number in range(count))
    wanted = [bundle(NAMESPACE, name, gadgets=children) for name in names]
    await _side_by_side(functools.partial(client.create, BUNDLES), wanted)


async def _check(client: Client, task: fleet.Task) -> None:
    phases = [each.get("status", {}).get("phase") async for each in client.each(BUNDLES, _HERE)]
    owners = [objects.owner_of(each) async for each in client.each(CONFIG_MAPS, _HERE)]
    if phases != [fleet.READY] * task.objects:
        raise harness.Failed(f"not all ready: {phases.count(fleet.READY)} of {task.objects}")
    if len(owners) != task.objects * task.children or not all(owners):
        raise harness.Failed(f"not {task.children} owned children each: {len(owners)} in all")


async def _side_by_side(do: Callable[[Any], Awaitable[object]], these: Iterable[Any]) -> None:
    waiting = iter(these)

    async def work() -> None:
        for each in waiting:
            await do(each)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(work())
