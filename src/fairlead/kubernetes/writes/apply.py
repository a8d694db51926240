"""Make the children of an object be as desired, with no more requests than that takes.

Reads from the cache, writes by server-side apply, and puts the answer into the cache, so that
the next reconcile does not act on what was there before.

A new object is made by a plain create, which costs the API server half of what an apply does
(docs/decisions/0011-kubernetes-client.md). Its fields are then ours by "Update"; before the
first apply in its life they are made ours by "Apply" (`_take_over`), or what we stop naming
would stay for good. An annotation says that this is still to be done.
"""

import dataclasses
from collections import OrderedDict
from collections.abc import Iterable

import structlog

from fairlead.errors import Conflict, NotFound, Rejected
from fairlead.kubernetes import api_errors, objects
from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.client.client import Client, Preconditions, named
from fairlead.kubernetes.objects import Key, Object
from fairlead.kubernetes.writes import compare

log = structlog.get_logger(__name__)

CREATED = "fairlead.dev/created"
_FAILED_TEST = 422
_REMEMBERED = 10_000


@dataclasses.dataclass(frozen=True, slots=True)
class Applied:
    """What `ensure` found or made; `fields` tells what was different, empty for nothing."""

    object: Object
    fields: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.fields)


class Applier:
    """Writes the children of the objects in `owners` through one client."""

    def __init__(self, client: Client, owners: Cache | None = None) -> None:
        self._client = client
        self._owners = owners
        # What the server made of a request in a spelling of its own, by UID: digests of the two.
        self._learned: OrderedDict[str, tuple[str, str]] = OrderedDict()

    async def ensure(
        self,
        cache: Cache,
        child: Object,
        owner: Object | None = None,
        *,
        adopt: bool = False,
        changing: bool = False,
    ) -> Applied:
        """The live object, after an apply where it is not yet as desired.

        What is known to be `changing` soon is made by an apply, which then needs no taking over.
        """
        desired = prepared(named(cache.resource, child), owner)
        live = cache.get(objects.key_of(desired))
        if live is not None:
            _check_owner(live, owner, adopt=adopt)
        fields = ("",) if live is None else self._differences(desired, live)
        if live is not None and (not fields or objects.is_deleting(live)):
            # What is on its way out is left alone; its end brings us back here.
            return Applied(live)
        if live is None and not changing:
            answer = await self._create(cache, desired, owner)
        else:
            if live is None and owner is not None:
                await self._check_living(cache, owner)
            if live and CREATED in (objects.metadata(live).get("annotations") or {}):
                await self._take_over(cache, objects.key_of(live))
            # Forced: these fields are ours, and a hand that changed them is corrected.
            answer = await self._client.apply(cache.resource, desired, force=True)
        cache.wrote(answer)
        self._learn(desired, answer)
        log.info("kubernetes.applied", resource=str(cache.resource), fields=fields[:5])
        return Applied(answer, fields)

    async def prune(self, cache: Cache, owner: Object, keep: Iterable[Key]) -> list[Key]:
        """Delete the owner's children that are no longer desired."""
        gone, uid = [], objects.uid_of(owner)
        for key in sorted(cache.keys_owned_by(uid).difference(keep)):
            child = cache.get(key)
            if child is None or objects.owner_of(child) != uid:
                # It changed hands while we deleted another.
                continue
            if not objects.is_deleting(child):
                await self.delete(cache, child)
                gone.append(key)
        return gone

    async def delete(self, cache: Cache, obj: Object) -> None:
        """End this very object: one of the same name that came after it is not touched."""
        key, uid = objects.key_of(obj), objects.uid_of(obj)
        self._learned.pop(uid, None)
        try:
            answer = await self._client.delete(cache.resource, key, Preconditions(uid=uid))
        except NotFound:
            cache.deleted(key, uid)
        except Conflict:
            log.info("kubernetes.delete.successor", resource=str(cache.resource), key=str(key))
        else:
            if answer.get("kind") == cache.resource.kind:
                cache.wrote(answer)
            else:
                cache.deleted(key, uid)

    async def _create(self, cache: Cache, desired: Object, owner: Object | None) -> Object:
        if owner is not None:
            await self._check_living(cache, owner)
        meta = desired["metadata"]
        marked = {**meta, "annotations": {**meta["annotations"], CREATED: "true"}}
        return await self._client.create(cache.resource, {**desired, "metadata": marked})

    async def _take_over(self, cache: Cache, key: Key) -> None:
        """Make what we own by "Update", from the create, ours by "Apply"."""
        try:
            # Nearly always ours is the first entry, and one request is enough.
            await self._rename(cache, key, 0)
        except Rejected as error:
            said = error.__cause__
            if not isinstance(said, api_errors.StatusError) or said.code != _FAILED_TEST:
                raise
            found = await self._client.get(cache.resource, key)
            for index, entry in enumerate(objects.metadata(found).get("managedFields") or ()):
                ours = entry["manager"] == self._client.manager and "subresource" not in entry
                if ours and entry["operation"] == "Update":
                    await self._rename(cache, key, index)

    async def _rename(self, cache: Cache, key: Key, index: int) -> None:
        entry = f"/metadata/managedFields/{index}"
        change: list[Object] = [
            {"op": "test", "path": f"{entry}/manager", "value": self._client.manager},
            {"op": "test", "path": f"{entry}/operation", "value": "Update"},
            {"op": "replace", "path": f"{entry}/operation", "value": "Apply"},
        ]
        await self._client.patch(cache.resource, key, change, kind="json")

    async def _check_living(self, cache: Cache, owner: Object) -> None:
        """Before a child is made again: did it go because its owner went?

        Owner and children are told by different watches. Where the end of a child arrives
        before the end of its owner, the cache still shows the owner, and we would make a
        child for nobody. Only then the owner is asked for by a request.
        """
        uid, key = objects.uid_of(owner), objects.key_of(owner)
        if self._owners is None or not cache.has_lost_a_child(uid):
            return
        try:
            found = await self._client.get(self._owners.resource, key)
        except NotFound:
            self._owners.deleted(key, uid)
            raise
        self._owners.wrote(found)
        if objects.uid_of(found) != uid or objects.is_deleting(found):
            raise Conflict(f"the owner changed in the meantime: {key}", hint="reconcile it again")

    def _differences(self, desired: Object, live: Object) -> tuple[str, ...]:
        found = compare.differences(desired, live)
        if not found:
            return ()
        seen = (compare.digest(desired), compare.digest(compare.projection(live, desired)))
        return () if self._learned.get(objects.uid_of(live)) == seen else tuple(found)

    def _learn(self, desired: Object, answer: Object) -> None:
        """Where the answer still differs, the server spells the same thing its own way."""
        if compare.differences(desired, answer):
            made = compare.digest(compare.projection(answer, desired))
            self._learned[objects.uid_of(answer)] = (compare.digest(desired), made)
            if len(self._learned) > _REMEMBERED:
                self._learned.popitem(last=False)


def prepared(child: Object, owner: Object | None) -> Object:
    """The request as it is applied: with its owner, and the digest of itself."""
    meta = dict(objects.metadata(child))
    if owner is not None:
        meta["ownerReferences"] = [objects.owner_reference(owner)]
    desired = {**child, "metadata": meta}
    marked = {**(meta.get("annotations") or {}), compare.DIGEST: compare.digest(desired)}
    return {**desired, "metadata": {**meta, "annotations": marked}}


def _check_owner(live: Object, owner: Object | None, *, adopt: bool) -> None:
    if owner is None:
        return
    uid, key = objects.owner_of(live), objects.key_of(live)
    if uid == objects.uid_of(owner) or (adopt and not uid):
        return
    # A predecessor of the owner under the same name: its children go with it, then ours come.
    raise Conflict(
        f"belongs to {'another owner' if uid else 'no owner'}, {live.get('kind')}: {key}",
        hint="delete it, or choose another name; children of a deleted owner are garbage-collected",
    )
