"""Rollouts on the cluster: the shipped kinds, the shipped rights, and nodes on which pods run."""

from pathlib import Path

import pytest

from fairlead import bootstrap
from fairlead.bootstrap import operator as wiring
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.operator.operator import OperatorOptions
from tests.cluster import client
from tests.cluster.canaries.rollout_cluster import RolloutCluster
from tests.cluster.conftest import CRD, InstallCrds
from tests.cluster.space import LEASE_RULES, Space
from tools.cluster import control_plane

# Once for each cluster: tests share it, and a definition takes its time.
_INSTALLED: set[str] = set()


@pytest.fixture
async def rollouts(  # noqa: PLR0917 - fixtures are asked for by argument
    cluster: control_plane.ControlPlane,
    admin: client.Client,
    space: Space,
    nodes: None,
    install_crds: InstallCrds,
    tmp_path: Path,
) -> RolloutCluster:
    kinds = wiring.with_kinds(bootstrap.installation()).kinds
    if cluster.url not in _INSTALLED:
        await install_crds("istio")
        for kind in kinds:
            where = f"{CRD}/{kind.api}"
            await admin.apply(where, rbac.definition(kind))
            await admin.wait_for(where, _is_established)
        _INSTALLED.add(cluster.url)
    own = [*LEASE_RULES, *rbac.status_key_rules(OperatorOptions(kinds).status_key)]
    account = await space.account("operator", [*rbac.rules(kinds), *own])
    identity = credentials.Fixed(credentials.Identity(token=account.token))
    ca = cluster.certificate_authority.read_bytes()
    connection = Connection(cluster.url, identity, ca=ca, namespace=space.name)
    return RolloutCluster(admin, space, connection, tmp_path)


def _is_established(definition: client.Json) -> bool:
    found = (definition.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in found)
