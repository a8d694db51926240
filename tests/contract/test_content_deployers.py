"""Whoever deploys a content: asked again it does nothing more, and ready means that all have it.

The fake of tests, a Deployment, the same with the controllers of a real cluster, and a Deployment
that somebody else applies from a git repository, by commits to its branch or by pull requests.
Processes of this machine do the same in tests/e2e/content.
"""

import contextlib
import functools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pytest
import yaml

from fairlead import errors
from fairlead.areas.content.domain.release.place import GitFile, KubernetesService, Place, Versions
from fairlead.areas.content.release import kubernetes, ports
from fairlead.areas.content.release.host import Deployments, Elsewhere
from fairlead.areas.content.release.kubernetes import DEPLOYMENTS
from fairlead.areas.content.release.ports import Progress
from fairlead.areas.content.release.repository import Repository
from fairlead.clients.git_push import Remote
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Key, Object
from tests import contents
from tests.cluster import plugin
from tests.contract.conftest import connection_to
from tests.contract.kubernetes import until
from tests.contract.kubernetes_samples import NAMESPACES, namespace
from tests.fakes.content import World
from tests.fakes.kubernetes.server import Server
from tests.fakes.pull_requests import TOKEN, RequestHost

BEFORE, AFTER = Versions("1.0.1"), Versions("1.0.1", "1.0.2")
FILE = "production/content.yaml"


class Stage(Protocol):
    """A deployer, and those who bring about what it asks for."""

    place: Place

    @property
    def deployer(self) -> ports.Deployer: ...

    async def applied(self) -> None:
        """What was asked for reaches the instances, but none is ready yet."""
        ...

    async def ready(self) -> None: ...

    async def changes(self) -> object:
        """What tells one change from none."""
        ...


@dataclass
class Fake:
    deployer: World = field(default_factory=World)
    place: Place = field(default_factory=Place)

    async def applied(self) -> None: ...
    async def ready(self) -> None: ...
    async def changes(self) -> object:
        return self.deployer.versions


@dataclass
class Cluster:
    connection: Connection
    deployer: Deployments
    place: Place
    namespace: str = "default"
    repository: Path | None = None
    host: RequestHost | None = None
    variables: Repository | None = None

    @property
    def key(self) -> Key:
        return Key(self.namespace, "service")

    async def applied(self) -> None:
        """As Argo CD does it: what the file says goes into the Deployment."""
        if self.repository is None:
            return
        if self.host is not None:
            self.merge()
        text = contents.git(self.repository, "show", f"main:{FILE}")
        wanted = {"metadata": {"namespace": "default", "name": "service"}, **yaml.safe_load(text)}
        async with Client(self.connection, manager="argo") as client:
            await client.apply(DEPLOYMENTS, wanted, force=True)

    def merge(self) -> None:
        """As somebody who reviews; nothing where nobody is asked."""
        assert self.host is not None
        assert self.repository is not None
        for each in self.host.pulls:
            if each.state == "open":
                contents.git(self.repository, "branch", "-f", "main", each.head)
                each.state = "merged"

    async def ready(self) -> None:
        async with Client(self.connection, manager="kubelet") as client:
            live = await client.get(DEPLOYMENTS, self.key)
            counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), 2)
            seen = {"observedGeneration": live["metadata"].get("generation", 1), **counts}
            await client.patch(DEPLOYMENTS, self.key, {"status": seen}, subresource="status")

    async def changes(self) -> object:
        if self.repository is not None:
            asked = len(self.host.pulls) if self.host else 0
            return contents.git(self.repository, "rev-parse", "main"), asked
        async with Client(self.connection, manager="eye") as client:
            return (await client.get(DEPLOYMENTS, self.key))["metadata"]["generation"]


class RealCluster(Cluster):
    """Its controllers make the pods; nobody writes their status for them."""

    async def ready(self) -> None:
        async with Client(self.connection, manager="eye") as client:
            await until(client, DEPLOYMENTS, self.key, _is_rolled_out)


def _is_rolled_out(live: Object | None) -> bool:
    return live is not None and kubernetes.rolled_out(live).progress is Progress.READY


@pytest.fixture(
    params=["fake", "deployment", "git", "request", pytest.param("real", marks=pytest.mark.cluster)]
)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    if request.param == "fake":
        yield Fake()
        return
    if request.param == "real":
        rig = request.getfixturevalue("cluster")
        plugin.need(rig.parts, "kube-controller-manager", "kube-scheduler", "kwok", "stages")
        rig.start_nodes()
        async with _in_cluster(connection_to(rig), tmp_path) as real:
            yield real
        return
    async with contextlib.AsyncExitStack() as opened:
        server = await opened.enter_async_context(Server().running())
        connection = Connection(server.url, credentials.Fixed())
        at = KubernetesService("default", "service", "content", "share")
        made = Cluster(connection, Deployments(tmp_path, Elsewhere(), {}), Place(kubernetes=at))
        async with Client(connection, manager="hand") as hand:
            await hand.create(DEPLOYMENTS, {**_names(), **_spec()})
        if request.param != "deployment":
            await _keep_in_git(made, opened, tmp_path, asks=request.param == "request")
        elsewhere = Elsewhere(kubernetes.Cluster(connection), made.variables)
        made.deployer = Deployments(tmp_path / "state", elsewhere, {})
        await opened.enter_async_context(made.deployer.running())
        yield made


async def _keep_in_git(
    made: Cluster, opened: contextlib.AsyncExitStack, folder: Path, *, asks: bool
) -> None:
    """The variables stand in a repository, whose branch takes pushes or pull requests only."""
    made.repository = contents.repository(folder / "ops")
    contents.tag(made.repository, "first", {FILE: yaml.safe_dump(_spec()).encode()})
    contents.accept_pushes(made.repository)
    # Its branch moves, and its folder need not.
    contents.git(made.repository, "checkout", "-q", "--detach")
    where = opened.enter_context(contents.serving_git(made.repository))
    at = made.place.kubernetes
    assert at is not None
    made.place = Place(kubernetes=replace(at, git=GitFile(FILE)))
    made.variables = Repository(Remote(where))
    if asks:
        at_branch = functools.partial(contents.git, made.repository, "rev-parse")
        made.host = RequestHost("gitea", commit_of=at_branch)
        await opened.enter_async_context(made.host.serving())
        (folder / "token").write_text(TOKEN)
        made.variables = Repository(Remote(where), made.host.client(folder / "token"))


@contextlib.asynccontextmanager
async def _in_cluster(connection: Connection, folder: Path) -> AsyncIterator[RealCluster]:
    async with Client(connection, manager="hand") as hand:
        home = (await hand.create(NAMESPACES, namespace()))["metadata"]["name"]
        await hand.create(DEPLOYMENTS, {**_names(home), **_spec()})
        at = KubernetesService(home, "service", "content", "share")
        deployer = Deployments(folder / "state", Elsewhere(kubernetes.Cluster(connection)), {})
        yield RealCluster(connection, deployer, Place(kubernetes=at), home)
        await hand.delete(NAMESPACES, Key("", home))


def _names(namespace: str = "default") -> Object:
    metadata = {"namespace": namespace, "name": "service"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}


def _spec() -> dict[str, Any]:
    labels = {"app": "content"}
    env = [{"name": f"{each}_VERSION", "value": "none"} for each in ("STABLE", "CANARY")]
    container = {"name": "content", "image": "fairlead", "env": env}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {"spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}}


async def brought(stage: Stage, versions: Versions) -> None:
    await stage.deployer.deploy("gathering", stage.place, versions)
    await stage.applied()
    await stage.ready()
    told = await stage.deployer.deploy("gathering", stage.place, versions)
    assert told.progress is Progress.READY


async def test_ready_means_that_every_instance_has_both_versions(stage: Stage) -> None:
    await brought(stage, BEFORE)

    told = await stage.deployer.deploy("gathering", stage.place, AFTER)
    # The fake is ready at once; nobody else is before anything moved.
    assert told.progress is (Progress.READY if isinstance(stage, Fake) else Progress.WAITING)
    assert bool(told.reason) is (told.progress is Progress.WAITING)
    await brought(stage, AFTER)


async def test_asked_again_it_changes_nothing_more(stage: Stage) -> None:
    await brought(stage, AFTER)
    before = await stage.changes()

    for _ in range(3):
        told = await stage.deployer.deploy("gathering", stage.place, AFTER)
        assert told.progress is Progress.READY

    assert await stage.changes() == before


async def test_the_way_back_is_a_change_as_any_other(stage: Stage) -> None:
    await brought(stage, BEFORE)
    await brought(stage, AFTER)

    await brought(stage, BEFORE)


@pytest.mark.parametrize("stage", ["request"], indirect=True)
@pytest.mark.requirement("content 3")
async def test_a_pull_request_is_waited_for_and_one_that_is_closed_is_a_failure(
    stage: Cluster,
) -> None:
    await brought(stage, BEFORE)
    assert stage.host is not None

    for _ in range(2):
        told = await stage.deployer.deploy("gathering", stage.place, AFTER)
        assert told.progress is Progress.WAITING
        assert told.reason == f"not merged yet: {stage.host.url}/acme/ops/2"
    stage.host.pulls[-1].state = "closed"
    told = await stage.deployer.deploy("gathering", stage.place, AFTER)

    assert told.progress is Progress.FAILED
    assert told.reason == f"closed and not merged: {stage.host.url}/acme/ops/2"
    await brought(stage, BEFORE)
    # With its branch gone, the same version may be asked for once more.
    assert _side_branches(stage) == ""


@pytest.mark.parametrize("stage", ["request"], indirect=True)
@pytest.mark.requirement("content 8")
async def test_a_canary_that_is_reverted_before_its_merge_cannot_be_merged_later(
    stage: Cluster,
) -> None:
    await brought(stage, BEFORE)
    await stage.deployer.deploy("gathering", stage.place, AFTER)

    told = await stage.deployer.deploy("gathering", stage.place, BEFORE)

    assert told.progress is Progress.READY
    assert stage.host is not None
    assert [each.state for each in stage.host.pulls] == ["merged", "closed"]
    assert _side_branches(stage) == ""


def _side_branches(stage: Cluster) -> str:
    assert stage.repository is not None
    return contents.git(stage.repository, "branch", "--list", "fairlead/*")


async def test_without_a_repository_it_says_what_is_missing(tmp_path: Path) -> None:
    at = KubernetesService("default", "service", git=GitFile(FILE))
    connection = Connection("http://127.0.0.1:9", credentials.Fixed())
    deployer = Deployments(tmp_path, Elsewhere(kubernetes.Cluster(connection)), {})

    with pytest.raises(errors.Unavailable, match="knows no git repository"):
        await deployer.deploy("gathering", Place(kubernetes=at), BEFORE)
