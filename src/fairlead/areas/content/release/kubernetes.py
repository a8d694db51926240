"""A Deployment as the place of a content: its variables, and the share in its ConfigMap.

Only these fields are applied, so that whoever applies the rest of the Deployment keeps it.
"""

from collections.abc import Mapping

from fairlead.areas.content.domain.release.place import KubernetesService, Versions
from fairlead.areas.content.release.ports import Observed, Progress
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Key, Object, Resource

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
COMMITS = "FAIRLEAD_CONTENT_COMMITS"
SHARE_KEY = "share.json"
_MANAGER = "fairlead-content"


class Cluster:
    """One API server; a connection is made for each call, as they are few."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def deploy(
        self, at: KubernetesService, versions: Versions, commits: Mapping[str, str]
    ) -> Observed:
        env = [
            {"name": "STABLE_VERSION", "value": versions.stable},
            {"name": "CANARY_VERSION", "value": versions.canary},
        ]
        if pinned := versions.pinned(commits):
            env.append({"name": COMMITS, "value": pinned})
        containers = [{"name": at.container, "env": env}]
        wanted = _object(at.namespace, at.deployment)
        wanted["spec"] = {"template": {"spec": {"containers": containers}}}
        async with Client(self._connection, manager=_MANAGER) as client:
            # First: an apply would make a Deployment that is not there, without an image.
            await client.get(DEPLOYMENTS, Key(at.namespace, at.deployment))
            live = await client.apply(DEPLOYMENTS, wanted, force=True)
        return rolled_out(live)

    async def applied(self, at: KubernetesService, versions: Versions) -> Observed:
        """How far others have brought these versions; nothing is written."""
        async with Client(self._connection, manager=_MANAGER) as client:
            live = await client.get(DEPLOYMENTS, Key(at.namespace, at.deployment))
        wanted = {"STABLE_VERSION": versions.stable, "CANARY_VERSION": versions.canary}
        for each in live["spec"]["template"]["spec"]["containers"]:
            env = {one["name"]: one.get("value", "") for one in each.get("env") or ()}
            if each["name"] == at.container and wanted.items() <= env.items():
                return rolled_out(live)
        return Observed(Progress.WAITING, "the commit is not applied to the Deployment yet")

    async def set_share(self, at: KubernetesService, text: str) -> None:
        wanted = _object(at.namespace, at.config_map)
        wanted["data"] = {SHARE_KEY: text}
        async with Client(self._connection, manager=_MANAGER) as client:
            await client.apply(CONFIG_MAPS, wanted, force=True)


def rolled_out(live: Object) -> Observed:
    """As `kubectl rollout status` reads it: no pod of another template is left, and all serve."""
    meta, spec, status = live["metadata"], live.get("spec") or {}, live.get("status") or {}
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        return Observed(Progress.WAITING, "the Deployment is not observed yet")
    for each in status.get("conditions") or ():
        if (each.get("type"), each.get("reason")) == ("Progressing", "ProgressDeadlineExceeded"):
            return Observed(Progress.FAILED, str(each.get("message", "")))
    replicas = spec.get("replicas", 1)
    updated, ready = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    if updated < replicas or status.get("replicas", 0) > updated or ready < updated:
        return Observed(Progress.WAITING, f"{updated} of {replicas} pods updated, {ready} ready")
    return Observed(Progress.READY)


def _object(namespace: str, name: str) -> Object:
    return {"metadata": {"namespace": namespace, "name": name}}
