"""Istio: weights in a VirtualService, our own or one that exists.

What the request may say:

    vsName           an existing VirtualService, amended in place; without it one of ours is made
    virtualService   from this spec: hosts, gateways, http, tcp, tls, whatever else Istio knows
    subset           of the primary's Service in that one, where its routes name subsets
    routes           names of the http routes to share, where not all of them are meant
    destinationRule  an existing rule of the primary, whose policy the canary is to have as well
    delay            seconds until every proxy is held to know a change

Proxies of a mesh do not tell what they know, so a change counts as shown after the delay; where
istiod writes a status, it must have taken the change in as well. istiod collects changes for
100 ms, and proxies were seen to follow within 150 ms; the default leaves room for a busy one.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import msgspec

from fairlead import errors
from fairlead.areas.rollouts.domain.observation import ObservedRoute
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes.routing import (
    backend_weights,
    istio_destinations,
    matching,
    route_annotations,
    route_object,
)
from fairlead.areas.rollouts.kubernetes.routing.matching import Condition
from fairlead.areas.rollouts.kubernetes.routing.permitted import Permitted
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
from fairlead.traffic.routes import Route

VIRTUAL_SERVICES = Resource("networking.istio.io", "v1", "virtualservices", "VirtualService")
DESTINATION_RULES = Resource("networking.istio.io", "v1", "destinationrules", "DestinationRule")
DELAY = 2.0
PATIENCE = dt.timedelta(seconds=30)
"""So long istiod's status may lag behind; one that lags longer is written by nobody any more."""

_ANSWERS_ITSELF = ("redirect", "directResponse", "delegate")


class VirtualServiceWords(Open, frozen=True):
    """The spec of an Istio VirtualService."""

    hosts: list[str] | None = None
    gateways: list[str] | None = None
    http: list[Any] | None = None
    tcp: list[Any] | None = None
    tls: list[Any] | None = None
    export_to: list[str] | None = None


class IstioWords(Words, frozen=True):
    """Traffic is split by a VirtualService: one that exists, or one of ours."""

    __rules__: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!(has(self.vsName) && has(self.virtualService))",
            "name a VirtualService or describe one, not both",
            path=".vsName",
        ),
    )

    vs_name: str | None = None
    virtual_service: VirtualServiceWords | None = None
    subset: str | None = None
    routes: list[str] | None = None
    destination_rule: str | None = None
    delay: float | None = None


class Istio(Provider):
    """A rollout's route as a VirtualService."""

    name = "istio"
    words: type[msgspec.Struct] = IstioWords
    metrics: Mapping[str, str] = prometheus.built_in(
        "istio_requests_total",
        'response_code!~"5.*"',
        "istio_request_duration_milliseconds_bucket",
        # The workload, as Istio's own proxies count its requests.
        'reporter="destination",destination_workload_namespace="{{ namespace }}",'
        'destination_workload=~"{{ target }}"',
    )
    adopted = "vsName"
    apis: Sequence[Resource] = (VIRTUAL_SERVICES, DESTINATION_RULES)

    def delay(self, site: Site) -> float:
        return float(site.desired.get("delay", DELAY))

    def refs(self, site: Site) -> tuple[Ref, ...]:
        source = site.desired.get("destinationRule")
        beside = map(_rule_ref, (site.canary, site.baseline))
        rules = (_rule_source(site), *beside) if source else ()
        return (_service_ref(site), *rules)

    def problems(self, site: Site, found: Found) -> tuple[tuple[str, str], ...]:
        return tuple(_problems(site, found))

    def beyond(self, site: Site, permitted: Permitted) -> Iterable[tuple[str, str]]:
        found = permitted.route(site.desired.get("virtualService"), site.namespace)
        return [(f"virtualService.{path}", reason) for path, reason in found]

    def writes(self, site: Site, desired: DesiredRoute, found: Found) -> tuple[Write, ...]:
        held = _carrier(site, found)
        if held.order > desired.order:
            return ()
        _check_able(site, held.spec if held.own is None else held.own, desired.route)
        made = held.writes(desired)
        # Its policy first: a canary without it may refuse what the primary accepts.
        rules = tuple(Apply(rule) for rule in _rules(site, found, desired.route))
        return (*rules, *made)

    def shown(
        self, site: Site, found: Found, now: dt.datetime
    ) -> tuple[ObservedRoute | None, float]:
        held = _carrier(site, found)
        mark = held.mark
        if mark is None:
            return None, 0.0
        drift = held.drift() or _rule_drift(site, found, mark)
        if drift:
            return ObservedRoute(mark.order, held.weight(), drift), 0.0
        if _lags(held.live) and now < mark.at + PATIENCE:
            return route_annotations.earlier(mark), 1.0
        return route_annotations.settled(mark, self.delay(site), now)

    def give_back(self, site: Site, found: Found) -> tuple[Write, ...]:
        return _carrier(site, found).give_back()


@dataclass(frozen=True, slots=True)
class _Shape:
    """A VirtualService's spec with and without our route."""

    site: Site

    def without_canary(
        self, spec: Object, mark: route_annotations.RouteAnnotations | None
    ) -> Object:
        original_weights = mark.original_weights if mark is not None else {}
        made = dict(spec)
        for section in istio_destinations.sections(spec):
            theirs = self._places(spec, section)
            made[section] = [
                self._rule_without_canary(rule, original_weights.get(place))
                for place, rule in theirs
            ]
        return made

    def routed(self, spec: Object, mark: route_annotations.RouteAnnotations) -> Object:
        made = dict(spec)
        for section in istio_destinations.sections(spec):
            rules: list[Object] = []
            for _, rule in self._places(spec, section):
                if not self._is_shared(section, rule):
                    rules.append(rule)
                elif section == "http":
                    rules += self._routed_http(rule, mark, len(rules))
                else:
                    rules.append(self._weighted(rule, mark.route))
            made[section] = rules
        return made

    def original_weights_of(self, spec: Object) -> Mapping[str, int | None]:
        sides = istio_destinations.sides(self.site)
        return {
            place: sides.primaries(rule["route"])[0].get("weight")
            for place, rule in self.shared(spec)
            if not any(map(sides.is_canary, rule["route"]))
        }

    def seen(self, spec: Object) -> int:
        sides = istio_destinations.sides(self.site)
        return max(
            (backend_weights.seen(rule["route"], sides) for _, rule in self.shared(spec)), default=0
        )

    def shared(self, spec: Object) -> Iterator[tuple[str, Object]]:
        """The rules that the two share, with their places."""
        for section in istio_destinations.sections(spec):
            for place, rule in self._places(spec, section):
                if self._is_shared(section, rule):
                    yield place, rule

    def _is_shared(self, section: str, rule: Object) -> bool:
        chosen = self.site.desired.get("routes")
        if chosen and (section != "http" or rule.get("name") not in chosen):
            return False
        return bool(istio_destinations.sides(self.site).primaries(rule.get("route") or ()))

    def _places(self, spec: Object, section: str) -> Iterator[tuple[str, Object]]:
        """Everybody's rules but those that we put in."""
        mine = f"fairlead/{self.site.name}/"
        theirs = (rule for rule in spec[section] if not str(rule.get("name")).startswith(mine))
        return ((f"{section}.{index}", rule) for index, rule in enumerate(theirs))

    def _rule_without_canary(self, rule: Object, alone: int | None) -> Object:
        sides = istio_destinations.sides(self.site)
        if not sides.primaries(rule.get("route") or ()):
            return rule
        made = {**rule, "route": backend_weights.without_canary(rule["route"], sides, alone)}
        if sides.is_canary({"destination": rule.get("mirror") or {}}):
            del made["mirror"]
            made.pop("mirrorPercentage", None)
        return made

    def _weighted(self, rule: Object, route: Route) -> Object:
        if not self.site.desired.get("vsName"):
            # In a route of ours the canary stands at weight 0 from the first: istiod leaves it out
            # then, so it costs nothing, and to join it needs no write of its own.
            route = replace(route, joined=True)
        return {
            **rule,
            "route": backend_weights.routed(
                rule["route"], istio_destinations.sides(self.site), route
            ),
        }

    def _routed_http(
        self, rule: Object, mark: route_annotations.RouteAnnotations, before: int
    ) -> list[Object]:
        sides, route = istio_destinations.sides(self.site), mark.route
        canary = sides.made(sides.primaries(rule["route"])[0], Slot.CANARY)
        made = self._weighted(rule, route)
        made["route"] = [_kept(one, mark) if sides.is_canary(one) else one for one in made["route"]]
        if route.mirror and "mirror" not in rule:
            made["mirror"] = canary["destination"]
            made["mirrorPercentage"] = {"value": int(route.mirror)}
        picked: list[Object] = []
        for conditions, target in _picks(canary, mark):
            match = _crossed(rule.get("match") or [{}], conditions)
            if match:
                name = f"fairlead/{self.site.name}/{before + len(picked)}"
                picked.append({**rule, "name": name, "match": match, "route": [target]})
        return [*picked, made]


def provider() -> Istio:
    return Istio()


def _picks(
    canary: Object, mark: route_annotations.RouteAnnotations
) -> Iterator[tuple[list[Condition], Object]]:
    """Who goes to the canary whatever the weights say: conditions, one of which must hold."""
    alone = {key: value for key, value in canary.items() if key != "weight"}
    if mark.route.affinity is not None:
        yield [matching.sticky(mark.route.affinity, mark.token)], alone
    if mark.route.matches:
        yield [matching.condition(one) for one in mark.route.matches], _kept(alone, mark)


def _crossed(theirs: Sequence[Object], ours: Sequence[Condition]) -> list[Object]:
    """Each of their matches with each of our conditions on top.

    A header has one condition in a match. Where theirs names our header already, there is no way
    to ask for both, and such requests go by the weights.
    """
    return [
        {
            **match,
            "headers": {**(match.get("headers") or {}), one.header: {one.how.value: one.value}},
        }
        for match in theirs
        for one in ours
        if one.header not in (match.get("headers") or {})
    ]


def _kept(destination: Object, mark: route_annotations.RouteAnnotations) -> Object:
    """The destination, handing out the cookie that keeps users with it, where that is requested."""
    if mark.route.affinity is None:
        return destination
    headers = destination.get("headers") or {}
    response = headers.get("response") or {}
    cookie = {"Set-Cookie": matching.set_cookie(mark.route.affinity, mark.token)}
    added = {**response, "add": {**(response.get("add") or {}), **cookie}}
    return {**destination, "headers": {**headers, "response": added}}


def _carrier(site: Site, found: Found) -> route_object.RouteObject:
    ref = _service_ref(site)
    own = None if site.desired.get("vsName") else _own(site)
    return route_object.RouteObject(ref, found.get(ref), _Shape(site), own, site.namespace)


def _own(site: Site) -> Object:
    """The spec of a VirtualService of ours, with all traffic on the primary."""
    desired = dict(site.desired.get("virtualService") or {})
    destination = {"host": site.primary.service, "port": {"number": site.primary.port}}
    primary_only = [{"destination": destination}]
    if not any(desired.get(section) for section in istio_destinations.SECTIONS):
        desired["http"] = [{}]
    for section in istio_destinations.sections(desired):
        desired[section] = [
            rule
            if any(key in rule for key in ("route", *_ANSWERS_ITSELF))
            else {**rule, "route": primary_only}
            for rule in desired[section]
        ]
    return {"hosts": [site.primary.service], **desired}


def _service_ref(site: Site) -> Ref:
    return Ref(VIRTUAL_SERVICES, str(site.desired.get("vsName") or site.name))


def _lags(live: Object | None) -> bool:
    """Whether istiod writes a status here and has not yet seen the newest spec."""
    seen = ((live or {}).get("status") or {}).get("observedGeneration")
    generation = (live or {}).get("metadata", {}).get("generation", 0)
    return seen is not None and int(seen) < int(generation)


# --- the DestinationRules of those beside the primary ----------------------------------------


def _rule_source(site: Site) -> Ref:
    return Ref(DESTINATION_RULES, str(site.desired["destinationRule"]))


def _rule_ref(side: Backend) -> Ref:
    return Ref(DESTINATION_RULES, side.service)


def _rules(site: Site, found: Found, route: Route) -> Iterator[Object]:
    """The primary's policy for each host beside it, where it is not there as it should be."""
    if not site.desired.get("destinationRule"):
        return
    source = found.get(_rule_source(site))
    if source is None:
        return
    # Subsets are labels of the primary's pods.
    policy = {key: value for key, value in source["spec"].items() if key != "subsets"}
    for side in map(site.at, beside(route)):
        spec = {**policy, "host": istio_destinations.destination_of(policy, side)["host"]}
        ref = _rule_ref(side)
        live = found.get(ref)
        if live is None or route_object.told(ref, live["spec"], spec):
            yield route_object.owned(ref, site.namespace, spec)


def _rule_drift(site: Site, found: Found, mark: route_annotations.RouteAnnotations) -> str:
    for rule in _rules(site, found, mark.route):
        return f"DestinationRule {rule['metadata']['name']} differs from the primary's"
    return ""


# --- what stands in the way -----------------------------------------------------------------


def _problems(site: Site, found: Found) -> Iterator[tuple[str, str]]:
    adopted = site.desired.get("vsName")
    live = found.get(_service_ref(site))
    if adopted and live is None:
        yield "vsName", f"no such VirtualService in this namespace: {adopted}"
        return
    malformed = list(_malformed(site.desired.get("virtualService")))
    yield from malformed
    if not malformed:
        held = _carrier(site, found)
        yield from _unshareable(site, held.spec if held.own is None else held.own)
    yield from _rule_problems(site, found)


def _unshareable(site: Site, spec: Object) -> Iterator[tuple[str, str]]:
    """Why a spec cannot carry the route."""
    shape, adopted = _Shape(site), bool(site.desired.get("vsName"))
    shared = dict(shape.shared(spec))
    if not shared:
        chosen = ", ".join(site.desired.get("routes") or ())
        where = f"no route named {chosen}" if chosen else "no route"
        others = istio_destinations.elsewhere(site, spec) if adopted and not chosen else ""
        field = "routes" if chosen else "vsName" if adopted else "virtualService"
        yield field, f"{where} goes to {istio_destinations.told(site)}{others}"
    for place, rule in shared.items():
        why = backend_weights.problem(rule["route"], istio_destinations.sides(site))
        section, _, index = place.partition(".")
        path = f"{section}[{index}].route"
        if why and adopted:
            yield "vsName", f"{path}: {why}"
        elif why:
            yield f"virtualService.{path}", why


def _malformed(desired: object) -> Iterator[tuple[str, str]]:
    """What of a spec for a VirtualService of ours we could not even read."""
    if desired is None:
        return
    if not isinstance(desired, Mapping):
        yield "virtualService", "must be the spec of a VirtualService"
        return
    hosts = desired.get("hosts", ["*"])
    if (
        not isinstance(hosts, list)
        or not hosts
        or not all(one and isinstance(one, str) for one in hosts)
    ):
        yield "virtualService.hosts", "must be a list of host names"
    for section in istio_destinations.SECTIONS:
        rules = desired.get(section, [])
        if not isinstance(rules, list):
            yield f"virtualService.{section}", "must be a list of routes"
            continue
        for index, rule in enumerate(rules):
            yield from _malformed_rule(rule, f"virtualService.{section}[{index}]")


def _malformed_rule(rule: object, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(rule, Mapping):
        yield path, "must be a route"
        return
    route = rule.get("route", [])
    if not isinstance(route, list):
        yield f"{path}.route", "must be a list of destinations"
        return
    for index, one in enumerate(route):
        destination = one.get("destination") if isinstance(one, Mapping) else None
        host = destination.get("host") if isinstance(destination, Mapping) else None
        if not isinstance(host, str) or not host:
            yield f"{path}.route[{index}].destination.host", "must name a host"
        elif not isinstance(one.get("weight", 0), int) or one.get("weight", 0) < 0:
            yield f"{path}.route[{index}].weight", "must be a whole number, 0 or more"


def _rule_problems(site: Site, found: Found) -> Iterator[tuple[str, str]]:
    name = site.desired.get("destinationRule")
    if not name:
        return
    source = found.get(_rule_source(site))
    if source is None:
        yield "destinationRule", f"no such DestinationRule in this namespace: {name}"
    elif not istio_destinations.is_host(source["spec"].get("host"), site, site.primary.service):
        host = source["spec"].get("host")
        yield "destinationRule", f"{name} is not for {site.primary.service} but for: {host}"


def _check_able(site: Site, spec: Object, route: Route) -> None:
    """Refuse a route that this VirtualService cannot show, before half of it is written."""
    https = [rule for place, rule in _Shape(site).shared(spec) if place.startswith("http.")]
    if not https and (route.matches or route.mirror or route.affinity):
        raise errors.Rejected(
            f"only http routes support headers, cookies and mirroring: {_service_ref(site).name}",
            hint="use weights only, or add an http route to the primary",
        )
    sides = istio_destinations.sides(site)
    for rule in https:
        mirror = rule.get("mirror")
        if route.mirror and mirror and not sides.is_canary({"destination": mirror}):
            raise errors.Rejected(
                f"the route already mirrors to: {mirror.get('host')}",
                hint="remove mirror from the VirtualService or from the strategy",
            )
