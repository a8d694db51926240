"""Gateway API: weights in an HTTPRoute, our own or one that exists.

What the request may say:

    routeName   an existing HTTPRoute, amended in place; without it one of ours is made from
    route       this spec: parentRefs, hostnames, rules, and whatever else Gateway API knows
    delay       seconds until the proxies are held to know a change that their controller took in

Beside it stands a second route of ours, NAME-fairlead, with the same parents and hosts. It has a
rule for each of our Services at a path that nobody asks for, for some gateways forget a backend
at weight 0 and lose requests while they do. And it has the rules for headers and cookies: more
conditions win over fewer, whichever route they stand in, so the route that people know keeps its
rules.

A change is shown when a gateway's controller says in the status that it accepted this very
generation, and the delay has passed; Envoy Gateway was seen to need 21 to 55 ms.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from fairlead import errors
from fairlead.areas.rollouts.domain.observation import ObservedRoute
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes.routing import (
    backend_weights,
    matching,
    route_annotations,
    route_object,
)
from fairlead.areas.rollouts.kubernetes.routing.matching import Condition
from fairlead.areas.rollouts.kubernetes.routing.provider import (
    Apply,
    Backend,
    DesiredRoute,
    Found,
    Object,
    Open,
    Provider,
    Ref,
    Site,
    Write,
    beside,
)
from fairlead.areas.rollouts.rules import Words
from fairlead.clients import prometheus
from fairlead.kubernetes.objects import Resource
from fairlead.kubernetes.schema import Rule
from fairlead.kubernetes.writes import compare
from fairlead.traffic.routes import How, Route

HTTP_ROUTES = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")
DELAY = 1.0
PATIENCE = dt.timedelta(seconds=60)
"""A controller that has not registered for so long, while another has, is held to be gone."""

_MOST_RULES = 16
_AGAIN = 1.0
_EVERYTHING = {"path": {"type": "PathPrefix", "value": "/"}}


class RouteWords(Open, frozen=True):
    """The spec of an HTTPRoute of the Gateway API."""

    parent_refs: list[Any] | None = None
    hostnames: list[str] | None = None
    rules: list[Any] | None = None


class GatewayWords(Words, frozen=True):
    """Traffic is split by an HTTPRoute: one that exists, or one of ours."""

    __rules__: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.routeName) != has(self.route)",
            "name an HTTPRoute or describe one, not both",
            path=".routeName",
        ),
    )

    route_name: str | None = None
    route: RouteWords | None = None
    delay: float | None = None


_CLUSTER = 'envoy_cluster_name="service/{{ namespace }}/{{ service }}/{{ port }}/http"'
"""Envoy Gateway with `mergeBackends`, which alone counts each backend of a route by itself."""


class GatewayApi(Provider):
    """A rollout's route as an HTTPRoute."""

    name = "gatewayApi"
    words: type[msgspec.Struct] = GatewayWords
    metrics: Mapping[str, str] = prometheus.envoy(_CLUSTER)
    adopted = "routeName"
    apis: Sequence[Resource] = (HTTP_ROUTES,)

    def delay(self, site: Site) -> float:
        return float(site.desired.get("delay", DELAY))

    def refs(self, site: Site) -> tuple[Ref, ...]:
        return (_route_ref(site), _side_ref(site))

    def problems(self, site: Site, found: Found) -> tuple[tuple[str, str], ...]:
        return tuple(_problems(site, found))

    def writes(self, site: Site, desired: DesiredRoute, found: Found) -> tuple[Write, ...]:
        held = _carrier(site, found)
        if held.order > desired.order or (held.own is None and held.live is None):
            return ()
        mark = route_annotations.next_mark(desired, held.mark)
        side = _side(site, held, mark)
        _check_able(side, desired.route)
        made = held.writes(desired)
        # First, so that all backends are held before the weights of any can change.
        return (Apply(side), *made) if _side_differs(site, side, found) else made

    def shown(
        self, site: Site, found: Found, now: dt.datetime
    ) -> tuple[ObservedRoute | None, float]:
        held = _carrier(site, found)
        mark = held.mark
        if mark is None:
            return None, 0.0
        drift = held.drift() or _side_drift(site, found, held, mark)
        if drift:
            return ObservedRoute(mark.order, held.weight(), drift), 0.0
        patient = now < mark.at + PATIENCE
        side = found.get(_side_ref(site))
        if not all(_taken_in(route, patient=patient) for route in (held.live, side)):
            return route_annotations.earlier(mark), _AGAIN
        return route_annotations.settled(mark, self.delay(site), now)

    def give_back(self, site: Site, found: Found) -> tuple[Write, ...]:
        return _carrier(site, found).give_back()


@dataclass(frozen=True, slots=True)
class _Shape:
    """An HTTPRoute's spec with and without our route."""

    site: Site

    def without_canary(
        self, spec: Object, mark: route_annotations.RouteAnnotations | None
    ) -> Object:
        original_weights = mark.original_weights if mark is not None else {}
        rules = spec.get("rules") or []
        made = [
            self._rule_without_canary(rule, original_weights.get(str(n), 1))
            for n, rule in enumerate(rules)
        ]
        return {**spec, "rules": made} if "rules" in spec else spec

    def routed(self, spec: Object, mark: route_annotations.RouteAnnotations) -> Object:
        if "rules" not in spec:
            return spec
        return {**spec, "rules": [self._routed(rule, mark) for rule in spec["rules"]]}

    def original_weights_of(self, spec: Object) -> Mapping[str, int | None]:
        sides = _sides(self.site)
        return {
            str(n): sides.primaries(rule["backendRefs"])[0].get("weight")
            for n, rule in self.shared(spec)
            if not any(map(sides.is_canary, rule["backendRefs"]))
        }

    def seen(self, spec: Object) -> int:
        sides = _sides(self.site)
        found = (backend_weights.seen(rule["backendRefs"], sides) for _, rule in self.shared(spec))
        return max(found, default=0)

    def shared(self, spec: Object) -> Iterator[tuple[int, Object]]:
        """The rules that the two share, with their numbers."""
        for number, rule in enumerate(spec.get("rules") or ()):
            if _sides(self.site).primaries(rule.get("backendRefs") or ()):
                yield number, rule

    def _rule_without_canary(self, rule: Object, alone: int | None) -> Object:
        sides = _sides(self.site)
        if not sides.primaries(rule.get("backendRefs") or ()):
            return rule
        made = {
            **rule,
            "backendRefs": backend_weights.without_canary(rule["backendRefs"], sides, alone),
        }
        theirs = [one for one in rule.get("filters") or () if not self._is_our_mirror(one)]
        if theirs:
            made["filters"] = theirs
        else:
            made.pop("filters", None)
        return made

    def _is_our_mirror(self, one: Object) -> bool:
        mirrored: Object = (one.get("requestMirror") or {}).get("backendRef") or {}
        return _sides(self.site).is_canary(mirrored)

    def _routed(self, rule: Object, mark: route_annotations.RouteAnnotations) -> Object:
        sides = _sides(self.site)
        if not sides.primaries(rule.get("backendRefs") or ()):
            return rule
        refs = backend_weights.routed(rule["backendRefs"], sides, mark.route)
        made = {
            **rule,
            "backendRefs": [_kept(one, mark) if sides.is_canary(one) else one for one in refs],
        }
        if mark.route.mirror:
            port = sides.primaries(rule["backendRefs"])[0].get("port", self.site.canary.port)
            # With what the server would fill in, so that it is read as it was written.
            backend = {"group": "", "kind": "Service", **_backend(self.site.canary, port)}
            copy = {"backendRef": backend, "percent": int(mark.route.mirror)}
            ours = {"type": "RequestMirror", "requestMirror": copy}
            made["filters"] = [*(rule.get("filters") or ()), ours]
        return made


def provider() -> GatewayApi:
    return GatewayApi()


def _kept(backend: Object, mark: route_annotations.RouteAnnotations) -> Object:
    """The backend, handing out the cookie that keeps users with it, where that is requested."""
    if mark.route.affinity is None:
        return backend
    kind, field = "ResponseHeaderModifier", "responseHeaderModifier"
    given: list[Object] = backend.get("filters") or []
    filters = [one for one in given if one.get("type") != kind]
    # There may be one such filter at most, so ours goes into theirs.
    change: Object = next((one[field] for one in given if one.get("type") == kind), {})
    cookie = {"name": "Set-Cookie", "value": matching.set_cookie(mark.route.affinity, mark.token)}
    changed = {**change, "add": [*(change.get("add") or ()), cookie]}
    return {**backend, "filters": [*filters, {"type": kind, field: changed}]}


def _sides(site: Site) -> backend_weights.Sides:
    def leads(item: Object, slot: Slot) -> bool:
        return (
            item.get("name") == site.at(slot).service
            and not item.get("group")
            and item.get("kind", "Service") == "Service"
            and item.get("namespace", site.namespace) == site.namespace
        )

    def made(primary: Object, slot: Slot) -> Object:
        return {**primary, "name": site.at(slot).service}

    return backend_weights.Sides(leads, made, unsaid=1)


def _carrier(site: Site, found: Found) -> route_object.RouteObject:
    ref = _route_ref(site)
    own = None if site.desired.get("routeName") else _own(site)
    return route_object.RouteObject(ref, found.get(ref), _Shape(site), own, site.namespace)


def _own(site: Site) -> Object:
    """The spec of a route of ours, with all traffic on the primary."""
    desired = dict(site.desired.get("route") or {})
    primary_only = [_backend(site.primary)]
    rules = [
        rule
        if "backendRefs" in rule or _answers_itself(rule)
        else {**rule, "backendRefs": primary_only}
        for rule in desired.get("rules") or [{}]
    ]
    return {**desired, "rules": rules}


def _answers_itself(rule: Object) -> bool:
    return any(one.get("type") == "RequestRedirect" for one in rule.get("filters") or ())


def _backend(side: Backend, port: int | None = None) -> Object:
    return {"name": side.service, "port": side.port if port is None else port}


def _route_ref(site: Site) -> Ref:
    return Ref(HTTP_ROUTES, str(site.desired.get("routeName") or site.name))


# --- what the controllers say ---------------------------------------------------------------


def _taken_in(route: Object | None, *, patient: bool) -> bool:
    """Whether a gateway has accepted this very generation, and none is still behind."""
    if route is None:
        return False
    generation = int(route["metadata"].get("generation", 0))
    held = [each for each in _parents(route) if _says(each, "Accepted") is not None]
    current = [each for each in held if _is_current(each, generation)]
    good = [each for each in current if _says(each, "Accepted") and _says(each, "ResolvedRefs")]
    refused = [each for each in current if not _says(each, "Accepted")]
    behind = len(held) - len(good) - len(refused)
    return bool(good) and (not behind or not patient)


def _parents(route: Object) -> Sequence[Object]:
    return (route.get("status") or {}).get("parents") or ()


def _says(parent: Object, kind: str) -> bool | None:
    for one in parent.get("conditions") or ():
        if one["type"] == kind:
            return bool(one["status"] == "True")
    return None


def _is_current(parent: Object, generation: int) -> bool:
    conditions = parent.get("conditions") or ()
    return all(
        int(one.get("observedGeneration", 0)) >= generation
        for one in conditions
        if one["type"] in ("Accepted", "ResolvedRefs")
    )


# --- the route beside -----------------------------------------------------------------------


def _side_ref(site: Site) -> Ref:
    return Ref(HTTP_ROUTES, f"{site.name}-fairlead")


def _side(
    site: Site, held: route_object.RouteObject, mark: route_annotations.RouteAnnotations
) -> Object:
    """Our second route, which holds all backends and picks requests by what they carry."""
    main = held.own if held.own is not None else _Shape(site).without_canary(held.spec, held.mark)
    spec = {key: main[key] for key in ("parentRefs", "hostnames") if main.get(key)}
    spec["rules"] = [*_keeps(site, main, mark.route), *_picks(site, main, mark)]
    return route_object.owned(_side_ref(site), site.namespace, spec)


def _keeps(site: Site, main: Object, route: Route) -> Iterator[Object]:
    sides = _sides(site)
    primaries = (sides.primaries(rule["backendRefs"])[0] for _, rule in _Shape(site).shared(main))
    ports = sorted({one.get("port", site.primary.port) for one in primaries})
    for slot in (Slot.PRIMARY, *beside(route)):
        for port in ports:
            path = f"/.well-known/fairlead/{site.namespace}/{site.name}/{slot.value}/{port}"
            match = {"path": {"type": "Exact", "value": path}}
            yield {"matches": [match], "backendRefs": [_backend(site.at(slot), port)]}


def _picks(site: Site, main: Object, mark: route_annotations.RouteAnnotations) -> Iterator[Object]:
    """For each rule that is shared: who goes to the canary whatever the weights say."""
    sides, route = _sides(site), mark.route
    for _, rule in _Shape(site).shared(main):
        primary = sides.primaries(rule["backendRefs"])[0]
        whole = sides.made(primary, Slot.CANARY)
        canary = {key: value for key, value in whole.items() if key != "weight"}
        base = {key: value for key, value in rule.items() if key != "name"}
        matches = rule.get("matches") or [_EVERYTHING]
        if route.affinity is not None:
            ours = _crossed(matches, [matching.sticky(route.affinity, mark.token)])
            yield {**base, "matches": ours, "backendRefs": [canary]}
        if route.matches:
            ours = _crossed(matches, [matching.condition(one) for one in route.matches])
            yield {**base, "matches": ours, "backendRefs": [_kept(canary, mark)]}


def _crossed(theirs: Sequence[Object], ours: Sequence[Condition]) -> list[Object]:
    """Each of their matches with each of our conditions on top."""
    return [
        {**match, "headers": [*(match.get("headers") or ()), _header(one)]}
        for match in theirs
        for one in ours
    ]


def _header(one: Condition) -> Object:
    if one.how is How.EXACT:
        return {"type": "Exact", "name": one.header, "value": one.value}
    value = matching.prefix(one.value) if one.how is How.PREFIX else one.value
    return {"type": "RegularExpression", "name": one.header, "value": value}


def _side_differs(site: Site, side: Object, found: Found) -> bool:
    live = found.get(_side_ref(site))
    return live is None or bool(compare.differences(side, live))


def _side_drift(
    site: Site,
    found: Found,
    held: route_object.RouteObject,
    mark: route_annotations.RouteAnnotations,
) -> str:
    if not _side_differs(site, _side(site, held, mark), found):
        return ""
    return f"HTTPRoute {_side_ref(site).name} does not match {held.ref.name}"


# --- what stands in the way -----------------------------------------------------------------


def _problems(site: Site, found: Found) -> Iterator[tuple[str, str]]:
    adopted = site.desired.get("routeName")
    if adopted and found.get(_route_ref(site)) is None:
        yield "routeName", f"no such HTTPRoute in this namespace: {adopted}"
        return
    malformed = list(_malformed(site.desired.get("route"))) if not adopted else []
    yield from malformed
    if malformed:
        return
    held = _carrier(site, found)
    shared = dict(_Shape(site).shared(held.spec if held.own is None else held.own))
    field = "routeName" if adopted else "route.rules"
    if not shared:
        yield field, f"no rule routes to the Service {site.primary.service}"
    for number, rule in shared.items():
        why = backend_weights.problem(rule["backendRefs"], _sides(site))
        path = f"rules[{number}].backendRefs"
        if why:
            yield ("routeName", f"{path}: {why}") if adopted else (f"route.{path}", why)


def _malformed(desired: object) -> Iterator[tuple[str, str]]:
    """What of a spec for a route of ours we could not even read."""
    if not isinstance(desired, Mapping):
        yield "route", "set the name of a route, or the spec of a new one"
        return
    parents = desired.get("parentRefs")
    if not _is_list(parents) or not parents:
        yield "route.parentRefs", "must name at least one Gateway"
    rules = desired.get("rules", [])
    if not _is_list(rules):
        yield "route.rules", "must be a list of rules"
        return
    for number, rule in enumerate(rules):
        for key in ("matches", "filters", "backendRefs"):
            if not _is_list(rule.get(key, [])):
                yield f"route.rules[{number}].{key}", "must be a list of objects"


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)


def _check_able(side: Object, route: Route) -> None:
    """Refuse a route that cannot be shown, before half of it is written."""
    if len(side["spec"]["rules"]) > _MOST_RULES and (route.matches or route.affinity):
        raise errors.Rejected(
            f"too many rules to match requests by header or cookie: {len(side['spec']['rules'])}",
            hint=f"a route has at most {_MOST_RULES}; split fewer rules, or use weights only",
        )
