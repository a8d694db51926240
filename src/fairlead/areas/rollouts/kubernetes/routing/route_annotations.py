"""What we remember of a route on the object that carries it, as annotations.

A control plane that comes up with an empty store finds there which write was the last, when it
was, and what it meant; so it can tell a slow proxy from a hand that changed our weights.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from fairlead import errors
from fairlead.areas.rollouts.domain.observation import ObservedRoute
from fairlead.areas.rollouts.kubernetes.routing.provider import ORDER, DesiredRoute, Object
from fairlead.traffic.routes import Route

ROUTE = "fairlead.dev/route"


@dataclass(frozen=True, slots=True)
class RouteAnnotations:
    """One write of a route."""

    order: int
    at: Annotated[dt.datetime, msgspec.Meta(tz=True)]
    route: Route = field(default_factory=Route)
    before: tuple[int, int] | None = None
    """Order and weight of the write before it: what the proxies show until they know this one."""

    token: str = ""
    """The value of the cookie that keeps a user with the canary; another one for each run."""

    original_weights: Mapping[str, int | None] = field(default_factory=dict)
    """The primary's weight before we came, by its place; None where there was none."""

    digest: str = ""
    """Of the whole request, so that a field which it no longer names is noticed."""


def read(obj: Object | None) -> RouteAnnotations | None:
    """The mark on an object, if there is one that can be read."""
    text = annotations(obj).get(ROUTE)
    if not isinstance(text, str):
        return None
    try:
        return msgspec.json.decode(text, type=RouteAnnotations)
    except (msgspec.MsgspecError, errors.Rejected):
        # Somebody wrote into it: as good as no mark, and our next write puts it right.
        return None


def order(obj: Object | None) -> int:
    """The order of the write that an object shows; 0 for none."""
    text = annotations(obj).get(ORDER)
    return int(text) if isinstance(text, str) and text.isdecimal() else 0


def next_mark(desired: DesiredRoute, last: RouteAnnotations | None) -> RouteAnnotations:
    """The mark of a write that follows the last one."""
    affinity = desired.route.affinity
    keeps = last is not None and affinity is not None and last.route.affinity is not None
    token = last.token if last is not None and keeps else f"r{desired.order}"
    return RouteAnnotations(
        order=desired.order,
        at=desired.at,
        route=desired.route,
        before=_before(desired, last),
        token=token if affinity is not None else "",
        original_weights=last.original_weights if last is not None else {},
    )


def written(mark: RouteAnnotations) -> dict[str, str]:
    """The annotations that carry a mark."""
    return {ORDER: str(mark.order), ROUTE: msgspec.json.encode(mark, order="sorted").decode()}


def without(obj: Object) -> Object:
    """The object's metadata as it was before we came."""
    meta = dict(obj.get("metadata") or {})
    kept = {key: value for key, value in annotations(obj).items() if key not in (ORDER, ROUTE)}
    if kept:
        return {**meta, "annotations": kept}
    return {key: value for key, value in meta.items() if key != "annotations"}


def settled(
    mark: RouteAnnotations, delay: float, now: dt.datetime
) -> tuple[ObservedRoute | None, float]:
    """What the proxies show by the time alone, and in how many seconds to requeue."""
    left = (mark.at + dt.timedelta(seconds=delay) - now).total_seconds()
    # A clock that was set back must not make us wait for longer than the delay.
    if 0 < left <= delay:
        return earlier(mark), left
    return ObservedRoute(mark.order, mark.route.weight), 0.0


def earlier(mark: RouteAnnotations) -> ObservedRoute | None:
    """What the proxies show until they know the write."""
    return ObservedRoute(*mark.before) if mark.before is not None else None


def annotations(obj: Object | None) -> Mapping[str, Any]:
    meta = (obj or {}).get("metadata") or {}
    return meta.get("annotations") or {}


def _before(desired: DesiredRoute, last: RouteAnnotations | None) -> tuple[int, int] | None:
    if last is None:
        return None
    if last.order == desired.order:
        # The same write once more: what was shown before it is still what was.
        return last.before
    return last.order, last.route.weight
