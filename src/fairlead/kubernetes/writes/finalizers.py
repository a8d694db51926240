"""Holding on to an object until its end is prepared, and letting go of it.

The whole list is written, with the version that was read: another's finalizer that came
meanwhile makes a conflict, and is not lost.
"""

from fairlead.errors import NotFound
from fairlead.kubernetes import objects
from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.objects import Object


def holds(obj: Object, name: str) -> bool:
    return name in (objects.metadata(obj).get("finalizers") or ())


async def hold(client: Client, cache: Cache, obj: Object, name: str) -> bool:
    """Put our finalizer on; False where it is there, or where it is too late for one."""
    if holds(obj, name) or objects.is_deleting(obj):
        return False
    await _write(client, cache, obj, [*(objects.metadata(obj).get("finalizers") or ()), name])
    return True


async def release(client: Client, cache: Cache, obj: Object, name: str) -> bool:
    """Take our finalizer off; False where it is not there."""
    if not holds(obj, name):
        return False
    left = [one for one in objects.metadata(obj)["finalizers"] if one != name]
    try:
        await _write(client, cache, obj, left)
    except NotFound:
        # Gone by another's hand: that is where releasing leads anyway.
        cache.deleted(objects.key_of(obj), objects.uid_of(obj))
        return False
    if not left and objects.is_deleting(obj):
        cache.deleted(objects.key_of(obj), objects.uid_of(obj))
    return True


async def _write(client: Client, cache: Cache, obj: Object, names: list[str]) -> None:
    version = objects.version_of(obj)
    change: Object = {"metadata": {"resourceVersion": version, "finalizers": names}}
    cache.wrote(await client.patch(cache.resource, objects.key_of(obj), change))
