"""A whole road for requests, once a run: control plane, node, Envoy Gateway, Envoy.

Needs root (a network of its own, a root folder for the gateway) and `make gateway`; without them
these tests are skipped. They run by `make test-dataplane` and are no part of CI: the gateway takes
7 minutes to build, and each test a minute.
"""

import contextlib
import os
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster import client, crds
from tests.dataplane import apart
from tests.dataplane.gateway import EnvoyGateway
from tests.dataplane.kubelet import Kubelet
from tools.cluster import control_plane, parts

NAMESPACE = "prod"


@dataclass(frozen=True)
class Dataplane:
    """What a test gets: hands on the API server, the node and the gateway."""

    plane: control_plane.ControlPlane
    admin: client.Client
    kubelet: Kubelet
    gateway: EnvoyGateway


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[control_plane.ControlPlane]:
    if "FAIRLEAD_TEST_DATAPLANE" not in os.environ:
        pytest.skip("run by `make test-dataplane`")
    found = parts.find()
    lacking = (*found.missing(), *found.missing_extras())
    if lacking:
        pytest.skip(f"not built: {', '.join(lacking)}; {parts.HOW_GATEWAY}")
    if os.geteuid() != 0:
        pytest.skip("needs root, for a network of its own")
    with apart.network():
        made = control_plane.ControlPlane(found, tmp_path / "cluster")
        try:
            made.start()
            yield made
        finally:
            made.stop()


@pytest.fixture
async def data_plane(plane: control_plane.ControlPlane, tmp_path: Path) -> AsyncIterator[Dataplane]:
    trust = ssl.create_default_context(cafile=plane.certificate_authority)
    async with contextlib.AsyncExitStack() as stack:
        admin = await stack.enter_async_context(client.connect(plane.url, plane.admin_token, trust))
        await crds.install(admin, plane.parts, "gateway")
        own = parts.GATEWAY_CRDS.folder.removeprefix("crds/")
        await crds.install(admin, plane.parts, own)
        kubelet = await stack.enter_async_context(Kubelet(admin).running())
        folder = tmp_path / "gateway"
        folder.mkdir()
        gateway = EnvoyGateway(plane, admin, folder)
        stack.callback(gateway.stop)
        await gateway.start()
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await admin.create(client.path("v1", "namespaces"), space)
        yield Dataplane(plane, admin, kubelet, gateway)


@pytest.fixture
def tell(
    capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> Callable[[str], None]:
    """What was measured, said whether the test passes or not."""

    def say(text: str) -> None:
        with capsys.disabled():
            sys.stderr.write(f"\n{request.node.name}: {text}\n")

    return say
