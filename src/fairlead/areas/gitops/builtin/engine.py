"""Objects brought to what a revision holds, by server-side apply; only what is ours is deleted.

A label with the UID of the deployment says what is ours. Objects of other deployments, of Helm, and
those that a controller made are refused; fields that somebody else owns are taken only of ours.
"""

import copy
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from fairlead import errors
from fairlead.areas.gitops.builtin import health, kinds
from fairlead.areas.gitops.builtin.manifests import Manifest
from fairlead.areas.gitops.domain.messages import Health, ObjectRef, Observed, SyncStatus
from fairlead.kubernetes import objects
from fairlead.kubernetes.client.client import Client, Preconditions
from fairlead.kubernetes.objects import Key, Object, Resource
from fairlead.kubernetes.writes import apply, compare

LABEL = "gitops.fairlead.dev/deployment"
MANAGER = "fairlead-gitops"
_HELM = "meta.helm.sh/release-name"
_PRUNE = "argocd.argoproj.io/sync-options"
_MOST_SAID = 3
_REMEMBERED = 20_000
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Owner:
    """The deployment that objects belong to."""

    uid: str
    namespace: str


class Builtin:
    """Applies through one client, under a field manager of each deployment's own."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._learned: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """What the server made of a request in a spelling of its own, by UID: two digests."""

    async def apply(
        self, owner: Owner, desired: Sequence[Manifest], obsolete: Sequence[ObjectRef], *, dry: bool
    ) -> tuple[Observed, ...]:
        """How all of it stands afterwards; nothing is pruned where anything was refused."""
        found: list[Observed] = []
        refused: list[errors.FairleadError] = []
        for manifest in desired:
            try:
                found.append(await self._one(owner, manifest, dry=dry))
            except (errors.Rejected, errors.Conflict) as error:
                refused.append(error)
        if refused:
            raise _together(refused)
        for ref in reversed(kinds.in_order(obsolete)):
            kept = await self._prune(owner, ref, dry=dry)
            found.extend([kept] if kept else [])
        return tuple(found)

    async def remove(self, owner: Owner, inventory: Sequence[ObjectRef]) -> None:
        """Delete what is ours; it is enough that the API server took every deletion."""
        for ref in reversed(kinds.in_order(inventory)):
            live = await self._ours(owner, ref)
            if live is not None:
                await self._delete(ref, live)

    async def _one(self, owner: Owner, manifest: Manifest, *, dry: bool) -> Observed:
        ref, resource = manifest.ref, _resource(manifest.ref)
        live = await self._live(resource, Key(owner.namespace, ref.name))
        is_ours = live is not None and _owner(live) == owner.uid
        if live is not None and not is_ours:
            _check_free(ref, live)
        desired = apply.prepared(_labelled(manifest.body, owner.uid), None)
        changed = live is None or bool(self._differences(desired, live))
        if live is not None and objects.is_deleting(live) and changed:
            raise errors.Conflict(
                f"{ref.kind} {ref.name} is being deleted", hint="it is applied once it is gone"
            )
        if changed and not dry:
            live = await self._as(owner).apply(resource, desired, force=is_ours)
            self._learn(desired, live)
            log.info("gitops.applied", resource=str(resource), namespace=owner.namespace)
        sync = SyncStatus.OUT_OF_SYNC if changed and dry else SyncStatus.SYNCED
        if live is None:
            return Observed(ref, sync, Health.MISSING, "it is not there")
        return Observed(ref, sync, *health.judged(live))

    async def _prune(self, owner: Owner, ref: ObjectRef, *, dry: bool) -> Observed | None:
        live = await self._ours(owner, ref)
        if live is None:
            return None
        options = (objects.metadata(live).get("annotations") or {}).get(_PRUNE, "")
        if dry or "Prune=false" in options.split(","):
            told = "it is no longer in git" if dry else "kept by Prune=false"
            return Observed(ref, SyncStatus.OUT_OF_SYNC, health.judged(live)[0], told)
        await self._delete(ref, live)
        return None

    async def _delete(self, ref: ObjectRef, live: Object) -> None:
        # This very object as it was read: a hand may have taken our label off meanwhile.
        exact = Preconditions(objects.uid_of(live), objects.version_of(live))
        try:
            await self._client.delete(_resource(ref), objects.key_of(live), exact)
        except errors.NotFound:
            return
        log.info("gitops.deleted", kind=ref.kind, key=str(objects.key_of(live)))

    async def _ours(self, owner: Owner, ref: ObjectRef) -> Object | None:
        """The object, where it is there, is ours, and is not on its way out."""
        if kinds.resource(ref) is None:
            return None
        live = await self._live(_resource(ref), Key(owner.namespace, ref.name))
        if live is None or _owner(live) != owner.uid or objects.is_deleting(live):
            return None
        return live

    async def _live(self, resource: Resource, key: Key) -> Object | None:
        try:
            return await self._client.get(resource, key)
        except errors.NotFound:
            return None

    def _as(self, owner: Owner) -> Client:
        """The client under the deployment's own name.

        Two deployments that make one object in the same moment are then told of each other by the
        API server. And what a deployment stops naming takes nothing away that another part of the
        operator set.
        """
        named = copy.copy(self._client)
        named.manager = f"{MANAGER}-{owner.uid}"
        return named

    def _differences(self, desired: Object, live: Object) -> list[str]:
        found = compare.differences(desired, live)
        seen = (compare.digest(desired), compare.digest(compare.projection(live, desired)))
        return [] if self._learned.get(objects.uid_of(live)) == seen else found

    def _learn(self, desired: Object, answer: Object) -> None:
        if compare.differences(desired, answer):
            made = compare.digest(compare.projection(answer, desired))
            self._learned[objects.uid_of(answer)] = (compare.digest(desired), made)
            if len(self._learned) > _REMEMBERED:
                self._learned.popitem(last=False)


def _resource(ref: ObjectRef) -> Resource:
    found = kinds.resource(ref)
    assert found is not None, ref
    return found


def _owner(live: Object) -> str:
    return str((objects.metadata(live).get("labels") or {}).get(LABEL, ""))


def _labelled(body: Object, uid: str) -> Object:
    meta = objects.metadata(body)
    return {**body, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), LABEL: uid}}}


def _check_free(ref: ObjectRef, live: Object) -> None:
    """Conflict where somebody else looks after it."""
    who = ""
    if _owner(live):
        who = f"another GitOpsDeployment, of UID {_owner(live)}"
    elif release := (objects.metadata(live).get("annotations") or {}).get(_HELM):
        who = f"the Helm release {release}"
    elif objects.owner_of(live):
        who = "a controller"
    if who:
        raise errors.Conflict(
            f"{ref.kind} {ref.name} belongs to {who}", hint="take it out of one of them"
        )


def _together(refused: Sequence[errors.FairleadError]) -> errors.FairleadError:
    """One error of the first few; what may pass later is tried again, as all of it is."""
    told = [each.message for each in refused[:_MOST_SAID]]
    if len(refused) > _MOST_SAID:
        told.append(f"and {len(refused) - _MOST_SAID} more")
    return errors.Rejected("; ".join(told), hint=refused[0].hint)
