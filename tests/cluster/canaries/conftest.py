"""Rollouts on the cluster: the shipped kinds, the shipped rights, and nodes on which pods run."""

from pathlib import Path

import pytest

from fairlead import bootstrap
from fairlead.adapters.kubernetes import credentials, rights
from fairlead.adapters.kubernetes.config import Connection
from tests.cluster import client
from tests.cluster.canaries.scene import Scene
from tests.cluster.conftest import CRD, InstallCrds
from tests.cluster.space import Space
from tools.cluster import control_plane

# Once for each cluster: tests share it, and a definition takes its time.
_INSTALLED: set[str] = set()


@pytest.fixture
async def scene(  # noqa: PLR0917 - fixtures are asked for by argument
    cluster: control_plane.ControlPlane,
    admin: client.Client,
    space: Space,
    nodes: None,
    install_crds: InstallCrds,
    tmp_path: Path,
) -> Scene:
    kinds = bootstrap.cast().kinds
    if cluster.url not in _INSTALLED:
        await install_crds("istio")
        for kind in kinds:
            where = f"{CRD}/{rights.resource(kind.api)}"
            await admin.apply(where, rights.definition(kind))
            await admin.wait_for(where, _is_established)
        _INSTALLED.add(cluster.url)
    account = await space.account("operator", [*rights.rules(kinds), *rights.lease_rules()])
    identity = credentials.Fixed(credentials.Identity(token=account.token))
    ca = cluster.certificate_authority.read_bytes()
    return Scene(admin, space, Connection(cluster.url, identity, ca=ca), tmp_path)


def _is_established(definition: client.Json) -> bool:
    found = (definition.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in found)
