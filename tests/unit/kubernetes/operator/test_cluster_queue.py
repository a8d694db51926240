"""Several clusters, shards and scopes on one store: each operator does its own work only."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead.engine import messages, visibility
from fairlead.errors import Rejected
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.controller.shards import Shard
from fairlead.kubernetes.objects import Key, uid_of
from fairlead.kubernetes.operator import cluster_queue
from fairlead.kubernetes.schema import CRDS
from tests.fakes.kubernetes.server import Server
from tests.operator.sample_kind import BUNDLES, KIND, bundle
from tests.operator.workers import RunningOperator, working

RESOURCE = BUNDLES


@contextlib.asynccontextmanager
async def cluster(*names: str) -> AsyncIterator[Connection]:
    """An API server with bundles of these names."""
    async with Server().running() as server:
        connection = Connection(server.url, credentials.Fixed())
        async with Client(connection, manager="hand") as hand:
            await hand.create(CRDS, rbac.definition(KIND))
            for name in names:
                await hand.create(RESOURCE, bundle("default", name))
            yield connection


async def queues(operator: RunningOperator) -> dict[str, str]:
    """The queue of each live stream, by the name of its object."""
    engine = operator.operator.engine
    assert engine is not None
    which = visibility.StreamFilter(machine="bundle", ended=False)
    found = await engine.read(lambda s: visibility.streams(s, which))
    return {one.name.split("/")[2]: one.queue for one in found}


async def until_queues(operator: RunningOperator, wanted: dict[str, str]) -> None:
    engine = operator.operator.engine
    assert engine is not None
    with engine.watch() as signal:
        while await queues(operator) != wanted:
            await engine.wait(signal, visibility.GRACE / 300)


async def test_two_clusters_on_one_store_leave_each_other_alone(tmp_path: Path) -> None:
    async with cluster("north") as one, cluster("south") as two:
        async with (
            working(one, "default", tmp_path, cluster="prod") as first,
            working(two, "default", tmp_path, cluster="test") as second,
        ):
            await first.until_done()
            await second.until_done()
            before = await queues(first)
        # At a start, streams without an object are ended; those of the other cluster are not.
        async with working(one, "default", tmp_path, cluster="prod") as first:
            await first.until_done()
            await first.settled()
            after = await queues(first)
            engine = first.operator.engine
            assert engine is not None
            dead = await engine.read(lambda s: visibility.effects(s, dead=True))

    scope = "namespace/default"
    wanted = {"north": f"kubernetes@prod/{scope}", "south": f"kubernetes@test/{scope}"}
    assert before == after == wanted
    assert dead == []


@pytest.mark.parametrize("was", ["", "kubernetes@prod/shard/0-of-2", "kubernetes@old-name"])
async def test_streams_come_along_from_before_queues_other_shards_and_other_names(
    tmp_path: Path, was: str
) -> None:
    async with cluster("north") as there:
        async with working(there, "default", tmp_path, cluster="prod") as operator:
            await operator.until_done()
            engine = operator.operator.engine
            assert engine is not None
            which = visibility.StreamFilter(machine="bundle")
            (stream,) = await engine.read(lambda s: visibility.streams(s, which))
            await engine.move([stream.name], was)

        async with working(there, "default", tmp_path, cluster="prod") as operator:
            await operator.until_done()
            await until_queues(operator, {"north": "kubernetes@prod/namespace/default"})


async def test_a_cluster_without_a_name_is_called_by_its_uid() -> None:
    async with cluster() as there, Client(there) as client:
        system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
        with contextlib.suppress(Exception):
            await client.create(rbac.NAMESPACES, system)
        wanted = uid_of(await client.get(rbac.NAMESPACES, Key("", "kube-system")))

        assert await cluster_queue.found_name(client, there) == wanted


async def test_without_the_right_to_ask_who_signs_for_the_server_tells_clusters_apart() -> None:
    one = Connection("https://10.96.0.1:443", credentials.Fixed(), ca=b"one")
    two = Connection("https://10.96.0.1:443", credentials.Fixed(), ca=b"two")
    async with cluster() as there, Client(there) as client:
        with contextlib.suppress(Exception):
            await client.delete(rbac.NAMESPACES, Key("", "kube-system"))
        names = [await cluster_queue.found_name(client, each) for each in (one, two)]

    assert names[0] != names[1]
    assert all(name.startswith("ca-") for name in names)


def test_the_scope_of_an_operator_is_part_of_its_queue() -> None:
    assert cluster_queue.queue("prod", "", Shard()) == "kubernetes@prod"
    assert cluster_queue.queue("prod", "a", Shard()) == "kubernetes@prod/namespace/a"
    assert cluster_queue.queue("prod", "", Shard(1, 3)) == "kubernetes@prod/shard/1-of-3"
    longest = cluster_queue.queue("c" * 63, "n" * 63, Shard(10, 100))
    assert messages.parse_queue(longest) == longest


@pytest.mark.parametrize("name", ["a/b", "a b", "-a", "x" * 64])
def test_a_name_of_a_cluster_must_be_one(name: str) -> None:
    with pytest.raises(Rejected, match="not a name of a cluster"):
        cluster_queue.check_name(name)
