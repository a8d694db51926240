"""What is to be seen of a rollout in the caches: pods of each slot, and what the proxies show.

Pure. The pods of a version are counted from below while a Deployment changes: of the ready ones,
all that could be old are left out.
"""

import datetime as dt
import hmac
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.areas.rollouts.domain.observation import (
    UNMARKED,
    Observation,
    ObservedRoute,
    Pods,
)
from fairlead.areas.rollouts.domain.plan import triggers
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes import children, names
from fairlead.areas.rollouts.kubernetes.parsing import ParsedRollout
from fairlead.areas.rollouts.kubernetes.routing import route_annotations
from fairlead.areas.rollouts.kubernetes.routing.provider import Found, Provider, Ref, Site
from fairlead.kubernetes.kinds import Snapshot
from fairlead.kubernetes.writes import compare

Object = dict[str, Any]
Performed = Callable[[str], int]
"""The highest order that was performed for a part and left no trace in the cluster."""

_TRIGGERED = "endpoints.kubernetes.io/last-change-trigger-time"
_SERVICE = "kubernetes.io/service-name"


@dataclass(frozen=True, slots=True)
class ClusterView:
    """An observation, and in how many seconds a change of it can be expected; 0: none."""

    observed: Observation
    again: float = 0.0


def see(
    parsed: ParsedRollout, provider: Provider, snapshot: Snapshot, performed: Performed
) -> ClusterView:
    site = children.site(parsed)
    delay = provider.delay(site)
    slots = [Slot.PRIMARY, Slot.CANARY]
    if parsed.spec.strategy.baseline or performed(Slot.BASELINE.value):
        # Only where it may be there: each question is remembered, for every rollout.
        slots.append(Slot.BASELINE)
    seen = {slot: _pods(parsed, slot, snapshot, delay, performed) for slot in slots}
    carried = found(provider, site, snapshot)
    shown, wait = provider.shown(site, carried, snapshot.at)
    carrier = carried.get(provider.refs(site)[0])
    if shown is None and carrier is not None and not route_annotations.order(carrier):
        shown = UNMARKED
    pods = {slot.value: one for slot, (one, _) in seen.items()}
    waits = [each for each in (wait, *(again for _, again in seen.values())) if each > 0]
    return ClusterView(Observation(snapshot.at, route=shown, **pods), min(waits, default=0.0))


def standing_by(shown: ObservedRoute | None, order: int) -> ObservedRoute | None:
    """A route at weight 0, after a standby of this order that needed no write."""
    if shown in (None, UNMARKED) or shown.weight or shown.drift or shown.order >= order:
        return shown
    return ObservedRoute(order, 0)


def found(provider: Provider, site: Site, snapshot: Snapshot) -> Found:
    """The objects that carry the route, as far as they are there."""
    held: dict[Ref, Object] = {}
    for ref in provider.refs(site):
        for obj in snapshot.found(ref.api, ref.name):
            held[ref] = obj
    return held


def slot_of(parsed: ParsedRollout, slot: Slot, snapshot: Snapshot) -> Object | None:
    """The Deployment of a slot."""
    return next(iter(snapshot.found(names.DEPLOYMENTS, parsed.names.deployments[slot])), None)


def ready_pods(deployment: Object, since: int = 0) -> int:
    """Ready pods of the version that the Deployment was asked to hold, counted from below.

    A status of an earlier generation counts as long as that one held the same version: a change
    of scale must not look as if all pods were gone.
    """
    status = deployment.get("status") or {}
    ready = int(status.get("readyReplicas") or 0)
    if (deployment.get("spec") or {}).get("paused"):
        # A held target was whole when it was held, and changes no pod since.
        return ready
    if int(status.get("observedGeneration") or 0) < max(since, children.since_in(deployment)):
        return 0
    old = int(status.get("replicas") or 0) - int(status.get("updatedReplicas") or 0)
    return max(0, ready - old)


def is_at_rest(deployment: Object) -> bool:
    """Whether a target is held by whoever changes it, and nobody has changed it."""
    told = children.annotations(deployment).get(names.HELD, "")
    paused = (deployment.get("spec") or {}).get("paused")
    return told.startswith(f"{names.AT_REST}/") and not paused


def is_rolled(deployment: Object) -> bool:
    """Whether every pod is of the template that stands in the Deployment, and available."""
    status, spec = deployment.get("status") or {}, deployment.get("spec") or {}
    desired = int(spec.get("replicas", 1))
    counts = [int(status.get(key) or 0) for key in _COUNTS]
    seen = int(status.get("observedGeneration") or 0)
    fresh = seen >= int(deployment["metadata"].get("generation") or 0)
    return fresh and counts == [desired] * len(counts)


def kept_config(obj: Object) -> Object:
    """What is remembered of a ConfigMap: never what is in it."""
    return {"metadata": _little(obj), "data": {"digest": _digest(obj)}}


def kept_secret(obj: Object) -> Object:
    """What is remembered of a Secret: a digest that few can try.

    It ends in statuses and annotations, and a PIN has few values to try. The key is the Secret's
    UID: random, the same for every operator, and told with the Secret, with Events about it and
    with what it owns (docs/decisions/0041).
    """
    uid = str((obj.get("metadata") or {}).get("uid", ""))
    keyed = hmac.digest(uid.encode(), _digest(obj).encode(), "sha256").hex()[:32]
    return {"metadata": _little(obj), "data": {"digest": keyed}}


def kept_slice(obj: Object) -> Object:
    """What is remembered of an EndpointSlice: how many may be asked, and since when."""
    endpoints = obj.get("endpoints") or ()
    ready = sum(len(one.get("addresses") or ()) > 0 and _is_ready(one) for one in endpoints)
    meta = obj.get("metadata") or {}
    written = [one.get("time") for one in meta.get("managedFields") or ()]
    triggered = (meta.get("annotations") or {}).get(_TRIGGERED)
    told = _latest((triggered, meta.get("creationTimestamp"), *written))
    service = (meta.get("labels") or {}).get(_SERVICE, "")
    return {"metadata": _little(obj), "service": service, "ready": ready, "changed": told}


def kept_revision(obj: Object) -> Object:
    """What is remembered of a kept revision: all but the template, which is asked for if needed."""
    meta = obj.get("metadata") or {}
    owners = {"ownerReferences": meta.get("ownerReferences") or []}
    told = {"annotations": meta.get("annotations") or {}, "labels": meta.get("labels") or {}}
    return {"metadata": {**_little(obj), **owners, **told}, "revision": obj.get("revision", 0)}


def kept_scaler(obj: Object) -> Object:
    spec = obj.get("spec") or {}
    target = spec.get("scaleTargetRef") or {}
    called = f"{target.get('kind')}/{target.get('name')}"
    return {"metadata": _little(obj), "target": called, "most": spec.get("maxReplicas", 0)}


def most_pods(parsed: ParsedRollout, snapshot: Snapshot, desired: int) -> int:
    """So many of the primary as its autoscaler leaves it."""
    scalers = snapshot.found(names.SCALERS, f"Deployment/{parsed.names.primary}")
    return min([desired, *(int(one["most"]) for one in scalers if one.get("most"))])


def service_terms(obj: Object) -> Iterable[str]:
    return (str(obj.get("service", "")),)


def scaler_terms(obj: Object) -> Iterable[str]:
    return (str(obj.get("target", "")),)


_COUNTS = ("replicas", "updatedReplicas", "availableReplicas")
_CONTENT = ("data", "binaryData", "stringData")


def since_part(slot: Slot) -> str:
    """Where the applied orders keep the generation that a slot's newest version came with."""
    return f"{slot.value} since"


def _pods(
    parsed: ParsedRollout, slot: Slot, snapshot: Snapshot, delay: float, performed: Performed
) -> tuple[Pods | None, float]:
    held = slot_of(parsed, slot, snapshot)
    version = children.version_in(held) if held is not None else None
    if held is None or version is None:
        return None, 0.0
    ready = ready_pods(held, performed(since_part(slot)))
    slices = snapshot.found(names.SLICES, parsed.names.services[slot])
    endpoints, again = _endpoints(slices, snapshot.at, delay)
    desired = int((held.get("spec") or {}).get("replicas", 1))
    order = max(children.order_in(held), performed(slot.value))
    return Pods(version.revision, desired, ready, min(ready, endpoints), order), again


def _endpoints(slices: Iterable[Object], now: dt.datetime, delay: float) -> tuple[int, float]:
    """Ready endpoints that proxies had time to learn of, and when the others will have had it."""
    known, again = 0, 0.0
    for each in slices:
        age = _age(each.get("changed", ""), now)
        if age >= delay:
            known += int(each.get("ready", 0))
        else:
            again = max(again, delay - age)
    return known, again


def _latest(times: Iterable[str | None]) -> str:
    """The newest of these; one of whole seconds may be up to a second later than it says.

    The endpoints controller takes its annotation off where it does not know the time, and a pod's
    is when it became ready, which the slice tells later: the slice's own writes count as well.
    """
    known = [found for text in times if text and (found := _moment(text)) is not None]
    return max(known).isoformat() if known else ""


def _moment(text: str) -> dt.datetime | None:
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    aware = found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)
    return aware if aware.microsecond else aware + dt.timedelta(seconds=1)


def _age(text: str, now: dt.datetime) -> float:
    """Seconds since a moment as Kubernetes writes it; without one, long ago."""
    if not text:
        return float("inf")
    try:
        return (now - dt.datetime.fromisoformat(text)).total_seconds()
    except ValueError:
        return float("inf")


def _digest(obj: Object) -> str:
    return compare.digest({key: obj.get(key) or {} for key in _CONTENT})


def _is_ready(endpoint: Mapping[str, Any]) -> bool:
    # Absent means ready, as the API says it.
    return (endpoint.get("conditions") or {}).get("ready") is not False


def _little(obj: Object) -> Object:
    meta = obj.get("metadata") or {}
    kept = {
        key: meta[key] for key in ("namespace", "name", "uid", "resourceVersion") if key in meta
    }
    told = meta.get("annotations") or {}
    opted = {key: value for key, value in told.items() if key == _OPT_OUT}
    return {**kept, "annotations": opted} if opted else kept


_OPT_OUT = triggers.OPT_OUT
