"""A Deployment gets the two variables and nothing else, and is believed when it is rolled out."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.content.domain.population import Population, parse_share
from fairlead.areas.content.domain.release.place import KubernetesService, Place, Versions
from fairlead.areas.content.release.kubernetes import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    SHARE_KEY,
    Cluster,
    rolled_out,
)
from fairlead.areas.content.release.ports import Progress
from fairlead.areas.content.release.shares import Shares
from fairlead.areas.content.service import own_share
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Key, Object
from tests.fakes.kubernetes.server import Server

AT = KubernetesService("default", "service", "content", "share")
COMMITS = {"1.0.1": "a" * 40, "1.0.2": "b" * 40, "1.0.9": "c" * 40}
KEY = Key("default", "service")
ENV = [{"name": "STABLE_VERSION", "value": "1.0.1"}, {"name": "OTHER", "value": "kept"}]


def deployment() -> Object:
    labels = {"app": "content"}
    container = {"name": "content", "image": "fairlead", "env": ENV}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": "default", "name": "service"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


@pytest.fixture
async def connection() -> AsyncIterator[Connection]:
    async with Server().running() as server:
        yield Connection(server.url, credentials.Fixed())


async def test_only_the_versions_and_their_commits_change(connection: Connection) -> None:
    async with Client(connection, manager="hand") as hand:
        await hand.create(DEPLOYMENTS, deployment())

        first = await Cluster(connection).deploy(AT, Versions("1.0.1", "1.0.2"), COMMITS)
        live = await hand.get(DEPLOYMENTS, KEY)
        again = await Cluster(connection).deploy(AT, Versions("1.0.1", "1.0.2"), COMMITS)
        await Cluster(connection).deploy(AT, Versions("1.0.3"), COMMITS)
        after = await hand.get(DEPLOYMENTS, KEY)

    (container,) = live["spec"]["template"]["spec"]["containers"]
    env = {each["name"]: each["value"] for each in container["env"]}
    named = f"1.0.1={'a' * 40} 1.0.2={'b' * 40}"
    assert env == {
        "STABLE_VERSION": "1.0.1",
        "CANARY_VERSION": "1.0.2",
        "FAIRLEAD_CONTENT_COMMITS": named,
        "OTHER": "kept",
    }
    (container,) = after["spec"]["template"]["spec"]["containers"]
    assert named not in {each["value"] for each in container["env"]}
    assert (container["image"], live["spec"]["replicas"]) == ("fairlead", 2)
    assert first.progress is again.progress is Progress.WAITING


async def test_a_deployment_that_is_not_there_is_not_made(connection: Connection) -> None:
    with pytest.raises(errors.NotFound):
        await Cluster(connection).deploy(AT, Versions("1.0.1"), {})


async def test_the_share_is_in_the_config_map(connection: Connection, tmp_path: Any) -> None:
    shares = Shares(tmp_path, Cluster(connection), None)
    chosen = Population("1.0.2-1", parse_share("12.5"))

    await shares.set("gathering", Place(kubernetes=AT), chosen)

    async with Client(connection, manager="hand") as hand:
        found = await hand.get(CONFIG_MAPS, Key("default", "share"))
    assert own_share.parse(found["data"][SHARE_KEY].encode()) == chosen


@pytest.mark.parametrize(
    ("status", "progress"),
    [
        ({}, Progress.WAITING),
        ({"observedGeneration": 1, "updatedReplicas": 2}, Progress.WAITING),
        ({"observedGeneration": 2}, Progress.WAITING),
        ({"observedGeneration": 2, "updatedReplicas": 1, "replicas": 2}, Progress.WAITING),
        (
            {"observedGeneration": 2, "updatedReplicas": 2, "replicas": 3, "availableReplicas": 3},
            Progress.WAITING,
        ),
        (
            {"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2, "availableReplicas": 1},
            Progress.WAITING,
        ),
        (
            {"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2, "availableReplicas": 2},
            Progress.READY,
        ),
        (
            {
                "observedGeneration": 2,
                "conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}],
            },
            Progress.FAILED,
        ),
    ],
)
def test_a_rollout_is_over_when_no_other_pod_is_left(
    status: dict[str, Any], progress: Progress
) -> None:
    live = {"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": status}

    assert rolled_out(live).progress is progress
