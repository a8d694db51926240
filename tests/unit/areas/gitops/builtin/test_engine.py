"""What is applied, taken, refused and deleted, on the fake API server."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.gitops.builtin import manifests
from fairlead.areas.gitops.builtin.engine import LABEL, Builtin, Owner
from fairlead.areas.gitops.domain.messages import Health, ObjectRef, SyncStatus
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client, named
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Key, Object
from tests.fakes.kubernetes.server import Server
from tests.unit.areas.gitops.rig import CONFIG_MAPS, SPACE, config_map

OURS, THEIRS = Owner("one", SPACE), Owner("two", SPACE)
A = Key(SPACE, "a")
REF = ObjectRef("", "v1", "ConfigMap", "a")


class Cluster:
    """A server, a hand, and the engine."""

    def __init__(self, server: Server, client: Client, hand: Client) -> None:
        self.server, self.hand = server, hand
        self.engine = Builtin(client)

    async def made(self, name: str = "a", **meta: Any) -> None:
        body = {"metadata": {"namespace": SPACE, "name": name, **meta}, "data": {"color": "red"}}
        await self.hand.create(CONFIG_MAPS, named(CONFIG_MAPS, body))

    async def there(self) -> list[str]:
        return [name for name in ("a", "b") if await self.found(name) is not None]

    async def found(self, name: str) -> Object | None:
        try:
            return await self.hand.get(CONFIG_MAPS, Key(SPACE, name))
        except errors.NotFound:
            return None


def files(*names: str, color: str = "red") -> tuple[manifests.Manifest, ...]:
    each = [(f"{name}.yaml", config_map(name, color=color)) for name in names]
    return manifests.parsed(each, SPACE)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with Server().running() as server:
        connection = Connection(server.url, credentials.Fixed())
        async with Client(connection) as client, Client(connection, manager="hand") as hand:
            await hand.create(
                rbac.NAMESPACES, named(rbac.NAMESPACES, {"metadata": {"name": SPACE}})
            )
            yield Cluster(server, client, hand)


async def test_a_second_pass_without_a_change_writes_nothing(cluster: Cluster) -> None:
    await cluster.engine.apply(OURS, files("a", "b"), (), dry=False)
    before = len(cluster.server.writes)

    found = await cluster.engine.apply(OURS, files("a", "b"), (), dry=False)

    assert len(cluster.server.writes) == before
    assert {(each.sync, each.health) for each in found} == {(SyncStatus.SYNCED, Health.HEALTHY)}


async def test_a_field_that_a_hand_changed_is_put_back(cluster: Cluster) -> None:
    await cluster.engine.apply(OURS, files("a"), (), dry=False)
    await cluster.hand.patch(CONFIG_MAPS, A, {"data": {"color": "black", "more": "stays"}})

    await cluster.engine.apply(OURS, files("a"), (), dry=False)

    live = await cluster.found("a")
    assert live is not None
    assert live["data"] == {"color": "red", "more": "stays"}


async def test_a_dry_pass_tells_what_differs_and_writes_nothing(cluster: Cluster) -> None:
    await cluster.engine.apply(OURS, files("a", "b"), (), dry=False)
    before = len(cluster.server.writes)

    gone = ObjectRef("", "v1", "ConfigMap", "b")
    found = await cluster.engine.apply(OURS, files("a", color="blue"), (gone,), dry=True)

    assert len(cluster.server.writes) == before
    assert [(each.ref.name, each.sync) for each in found] == [
        ("a", SyncStatus.OUT_OF_SYNC),
        ("b", SyncStatus.OUT_OF_SYNC),
    ]


@pytest.mark.parametrize(
    ("meta", "why"),
    [
        ({"labels": {LABEL: "two"}}, "another GitOpsDeployment"),
        ({"annotations": {"meta.helm.sh/release-name": "shop"}}, "the Helm release shop"),
        (
            {
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}
                ]
            },
            "a controller",
        ),
    ],
)
async def test_what_somebody_else_looks_after_is_refused(
    cluster: Cluster, meta: dict[str, Any], why: str
) -> None:
    await cluster.made(**meta)

    with pytest.raises(errors.Rejected, match=f"ConfigMap a belongs to {why}"):
        await cluster.engine.apply(OURS, files("a", color="blue"), (), dry=False)

    live = await cluster.found("a")
    assert live is not None
    assert live["data"] == {"color": "red"}


async def test_a_field_of_a_hand_is_not_taken_from_an_object_that_is_not_ours(
    cluster: Cluster,
) -> None:
    await cluster.made()

    with pytest.raises(errors.Rejected, match="hand"):
        await cluster.engine.apply(OURS, files("a", color="blue"), (), dry=False)


async def test_nothing_is_pruned_where_anything_was_refused(cluster: Cluster) -> None:
    await cluster.engine.apply(OURS, files("a"), (), dry=False)
    await cluster.made("b", labels={LABEL: "two"})

    with pytest.raises(errors.Rejected):
        await cluster.engine.apply(OURS, files("b", color="blue"), (REF,), dry=False)

    assert await cluster.there() == ["a", "b"]


async def test_what_left_git_is_deleted_where_it_is_ours(cluster: Cluster) -> None:
    await cluster.engine.apply(OURS, files("a"), (), dry=False)

    await cluster.engine.apply(THEIRS, files("b"), (REF,), dry=False)
    assert await cluster.there() == ["a", "b"]

    await cluster.engine.apply(OURS, (), (REF,), dry=False)
    assert await cluster.there() == ["b"]


async def test_what_says_so_is_kept_and_told(cluster: Cluster) -> None:
    options = {"argocd.argoproj.io/sync-options": "Validate=false,Prune=false"}
    await cluster.made(labels={LABEL: "one"}, annotations=options)

    found = await cluster.engine.apply(OURS, (), (REF,), dry=False)

    assert [(each.ref, each.sync) for each in found] == [(REF, SyncStatus.OUT_OF_SYNC)]
    assert await cluster.there() == ["a"]


async def test_a_removal_deletes_what_is_ours_and_nothing_else(cluster: Cluster) -> None:
    await cluster.engine.apply(OURS, files("a"), (), dry=False)
    await cluster.made("b")
    foreign = ObjectRef("", "v1", "Namespace", SPACE)

    await cluster.engine.remove(OURS, (REF, ObjectRef("", "v1", "ConfigMap", "b"), foreign))

    assert await cluster.there() == ["b"]


@pytest.mark.parametrize(
    "ref",
    [
        ObjectRef("", "v1?watch=1", "ConfigMap", "a"),
        ObjectRef("", "v1", "ConfigMap", "../../kube-system/configmaps/a"),
        ObjectRef("rbac.authorization.k8s.io", "v1", "ClusterRole", "admin"),
    ],
)
async def test_a_forged_status_reaches_nothing_else(cluster: Cluster, ref: ObjectRef) -> None:
    before = len(cluster.server.requests)

    await cluster.engine.remove(OURS, (ref,))

    assert len(cluster.server.requests) == before
