"""Resources of a cloud as objects of a real API server, with the simulated cloud behind them."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead import bootstrap
from fairlead.areas.resources.area import RESOURCES
from fairlead.areas.resources.kubernetes.kinds import CLOUD_RESOURCES
from fairlead.bootstrap import operator as wiring
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from tests.cluster import client
from tests.cluster.conftest import CRD, is_established
from tests.cluster.space import Space
from tests.simulated_cloud import Behaviour, SimulatedCloud
from tests.unit.areas.resources.kubernetes.operating import ID, Site, resource
from tools.cluster import control_plane

pytestmark = pytest.mark.cluster


@contextlib.asynccontextmanager
async def site(
    cluster: control_plane.ControlPlane, admin: client.Client, space: Space, folder: Path
) -> AsyncIterator[Site]:
    kinds = wiring.with_kinds(bootstrap.installation((RESOURCES,))).kinds
    for kind in kinds:
        await admin.apply(f"{CRD}/{kind.api}", rbac.definition(kind))
        await admin.wait_for(f"{CRD}/{kind.api}", is_established)
    rules = [
        *rbac.rules(kinds),
        *rbac.lease_rules(),
        *rbac.status_key_rules("fairlead-operator-status"),
    ]
    account = await space.account("resources", rules)
    hand_account = await space.account(
        "hand", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    )
    authority = cluster.certificate_authority.read_bytes()

    def connection(token: str) -> Connection:
        identity = credentials.Fixed(credentials.Identity(token=token))
        return Connection(cluster.url, identity, ca=authority, namespace=space.name)

    cloud = SimulatedCloud(Behaviour())
    async with cloud.serving(), Client(connection(hand_account.token), manager="hand") as hand:
        yield Site(cloud, connection(account.token), hand, folder, namespace=space.name)


async def test_an_object_makes_a_resource_and_shows_it(
    cluster: control_plane.ControlPlane, admin: client.Client, space: Space, tmp_path: Path
) -> None:
    async with site(cluster, admin, space, tmp_path) as there, there.operating():
        await there.hand.create(CLOUD_RESOURCES, resource(space.name))

        found = await there.seen()

    assert there.cloud.made == {ID.lower(): 1}
    assert found["status"]["resourceId"] == ID
    assert found["status"]["observed"]["sku"] == {"name": "Standard_D2_v3", "capacity": 3}
