"""What an object tells of itself: conditions, and a patch of only what changed."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from fairlead.errors import Conflict, Rejected
from fairlead.kubernetes import api_errors, objects
from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.client import clock as clocks
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.messages import Condition
from fairlead.kubernetes.objects import Object

_FAILED_TEST = 422
# What the API server takes for a condition.
_LONGEST_MESSAGE = 32768


async def write(
    client: Client,
    cache: Cache,
    live: Object,
    status: Object,
    take: Callable[[Object], None] | None = None,
) -> bool:
    """Bring `.status` to exactly this; False where it was so and nothing was sent.

    The answer goes into the cache, or to whoever takes it there.
    """
    change = operations(live.get("status"), status)
    if not change:
        return False
    key = objects.key_of(live)
    # A successor of the same name shall not get its predecessor's status. A test in a JSON
    # patch is what holds here: on this road the API server takes no notice of a UID in a
    # merge patch, and a resourceVersion would clash with every change of the spec.
    test = {"op": "test", "path": "/metadata/uid", "value": objects.uid_of(live)}
    try:
        answer = await client.patch(
            cache.resource, key, [test, *change], kind="json", subresource="status"
        )
    except Rejected as error:
        said = error.__cause__
        if (
            isinstance(said, api_errors.StatusError)
            and said.code == _FAILED_TEST
            and not said.causes
        ):
            raise Conflict(
                f"object was replaced by another of the same name: {key}",
                hint="read the object again",
            ) from error
        raise
    (take or cache.wrote)(answer)
    return True


def operations(live: Object | None, desired: Object) -> list[Object]:
    """The JSON patch from one status to the other, field by field; empty for none."""
    if not live:
        return [{"op": "add", "path": "/status", "value": desired}] if desired else []
    gone = [{"op": "remove", "path": _pointer(key)} for key in live if key not in desired]
    new = [
        {"op": "add", "path": _pointer(key), "value": value}
        for key, value in desired.items()
        if key not in live or live[key] != value
    ]
    return [*gone, *new]


def with_conditions(
    known: Sequence[Object], news: Sequence[Condition], generation: int, now: datetime
) -> list[Object]:
    """The conditions brought up to date; the time moves only when a status does."""
    merged: dict[str, Object] = {str(one["type"]): dict(one) for one in known}
    for new in news:
        before = merged.get(new.type, {})
        status = "Unknown" if new.status is None else str(new.status)
        same = before.get("status") == status
        since: Any = before.get("lastTransitionTime") if same else None
        merged[new.type] = {
            "type": new.type,
            "status": status,
            "reason": new.reason,
            "message": new.message[:_LONGEST_MESSAGE],
            "observedGeneration": generation,
            "lastTransitionTime": since or clocks.format_time(now),
        }
    return list(merged.values())


def _pointer(key: str) -> str:
    return "/status/" + key.replace("~", "~0").replace("/", "~1")
