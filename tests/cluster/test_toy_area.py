"""The toy area's kind on a real API server, by what the area brings."""

from pathlib import Path

import pytest

from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.config import Connection
from tests.cluster import client
from tests.cluster.conftest import CRD, is_established
from tests.cluster.space import LEASE_RULES, Space
from tests.toy_area.kubernetes import KIND
from tests.toy_area.test_kind import is_ready, lamp, operating
from tools.cluster import control_plane


@pytest.mark.cluster
async def test_its_kind_works_on_a_real_api_server(
    cluster: control_plane.ControlPlane, admin: client.Client, space: Space, tmp_path: Path
) -> None:
    where = f"{CRD}/{KIND.api}"
    await admin.apply(where, rbac.definition(KIND))
    await admin.wait_for(where, is_established)
    account = await space.account("lamps", [*rbac.rules([KIND]), *LEASE_RULES])
    identity = credentials.Fixed(credentials.Identity(token=account.token))
    connection = Connection(cluster.url, identity, ca=cluster.certificate_authority.read_bytes())
    path = space.path("lamps", "desk", api="toy.fairlead.dev/v1")
    await admin.create(path.rpartition("/")[0], lamp(space.name))

    async with operating(tmp_path, connection, space.name):
        found = await admin.wait_for(path, is_ready, 60)

    assert found["status"]["watts"] == 60
