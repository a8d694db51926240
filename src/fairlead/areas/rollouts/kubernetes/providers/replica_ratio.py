"""No mesh, no gateway: the Service itself shares requests out, over all pods alike.

The route is the Service's selector: the primary's pods, the canary's, or both. Between 0 and 100
the weight is what the pods make of it: one canary pod beside ten of the primary gets 1 of 11.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from fairlead.areas.rollouts.domain.observation import ObservedRoute
from fairlead.areas.rollouts.domain.plan.strategy import Kind, Strategy
from fairlead.areas.rollouts.kubernetes import names
from fairlead.areas.rollouts.kubernetes.routing.provider import (
    ORDER,
    Apply,
    DesiredRoute,
    Found,
    Provider,
    Ref,
    Site,
    Write,
)
from fairlead.areas.rollouts.rules import Words
from fairlead.errors import Rejected
from fairlead.kubernetes.objects import Resource
from fairlead.kubernetes.writes import compare
from fairlead.traffic.routes import Route
from fairlead.values import ALL

WEIGHT = "fairlead.dev/weight"
AT = "fairlead.dev/routed-at"
BEFORE = "fairlead.dev/before"
"""Annotations: the weight of the route, when it was written, and order and weight before that."""

DELAY = 2.0
_PRIMARY, _CANARY = {names.SLOT: "primary"}, {names.SLOT: "canary"}


class ReplicasWords(Words, frozen=True):
    """Traffic is split by the Service itself, evenly over all pods."""

    delay: float | None = None


class ReplicaRatio(Provider):
    """A rollout's route as the selector of its own Service."""

    name = "replicas"
    words: type[msgspec.Struct] = ReplicasWords
    metrics: Mapping[str, str] = MappingProxyType({})
    adopted = ""
    apis: Sequence[Resource] = (names.SERVICES,)

    def unsupported(self, strategy: Strategy, *, is_target: bool) -> Iterable[tuple[str, str]]:
        if strategy.baseline:
            reason = "a Service splits traffic by pods only; use another provider"
            yield "spec.strategy.baseline", reason
        if is_target:
            yield "spec.provider.replicas", "needs deploymentSpec: a target's Service is not ours"
        elif strategy.kind is Kind.AB or strategy.mirror or strategy.affinity:
            reason = "a Service supports no headers, cookies or mirroring; use another provider"
            yield "spec.strategy", reason

    def delay(self, site: Site) -> float:
        return float(site.desired.get("delay", DELAY))

    def refs(self, site: Site) -> tuple[Ref, ...]:
        return (Ref(names.SERVICES, site.primary.service),)

    def problems(self, site: Site, found: Found) -> tuple[tuple[str, str], ...]:
        del site, found
        return ()

    def writes(self, site: Site, desired: DesiredRoute, found: Found) -> tuple[Write, ...]:
        _check_able(desired.route)
        live = found.get(self.refs(site)[0])
        told = _differences(live)
        order = _number(told.get(ORDER))
        if order > desired.order:
            return ()
        before = told.get(BEFORE, "")
        at = told.get(AT, "")
        if order < desired.order:
            before, at = f"{order}/{_number(told.get(WEIGHT))}", desired.at.isoformat()
        marks = {
            ORDER: str(desired.order),
            WEIGHT: str(int(desired.route.weight)),
            AT: at,
            BEFORE: before,
        }
        service = site.desired["service"]
        spec = {**service["spec"], "selector": {**_own(site), **_chosen(desired.route.weight)}}
        meta = {**service["metadata"], "annotations": marks}
        made = {**service, "metadata": meta, "spec": spec}
        if live is not None and not compare.differences(made, live):
            return ()
        return (Apply(made),)

    def shown(
        self, site: Site, found: Found, now: dt.datetime
    ) -> tuple[ObservedRoute | None, float]:
        live = found.get(self.refs(site)[0])
        told = _differences(live)
        if live is None or ORDER not in told:
            return None, 0.0
        order, weight = _number(told[ORDER]), _number(told.get(WEIGHT))
        selector = live["spec"].get("selector") or {}
        if selector != {**_own(site), **_chosen(weight)}:
            return ObservedRoute(order, weight, "the Service's selector was changed"), 0.0
        age = (now - dt.datetime.fromisoformat(told[AT])).total_seconds() if AT in told else DELAY
        if age >= self.delay(site):
            return ObservedRoute(order, weight), 0.0
        before, _, was = told.get(BEFORE, "").partition("/")
        earlier = ObservedRoute(_number(before), _number(was)) if _number(before) else None
        return earlier, self.delay(site) - max(0.0, age)

    def give_back(self, site: Site, found: Found) -> tuple[Write, ...]:
        del site, found
        return ()


def provider() -> ReplicaRatio:
    return ReplicaRatio()


def _check_able(route: Route) -> None:
    if route.matches or route.mirror or route.affinity or route.compared:
        raise Rejected(
            "a Service supports no headers, cookies, mirroring or baseline: spec.provider.replicas",
            hint="use weights only, or the provider istio or gatewayApi",
        )


def _chosen(weight: int) -> dict[str, str]:
    if weight == ALL:
        return _CANARY
    return {} if weight else _PRIMARY


def _own(site: Site) -> dict[str, str]:
    selector: dict[str, str] = site.desired["service"]["spec"]["selector"]
    return selector


def _differences(live: dict[str, object] | None) -> dict[str, str]:
    meta = (live or {}).get("metadata")
    told = meta.get("annotations") if isinstance(meta, dict) else None
    return dict(told or {})


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0
