"""A shop behind an HTTPRoute, its own or one that somebody wrote."""

from typing import Any

from fairlead.areas.rollouts.kubernetes.providers import gateway_api
from fairlead.areas.rollouts.kubernetes.routing.provider import Backend, Object, Ref, Site
from fairlead.traffic.routes import Match, Where
from tests.unit.areas.rollouts.kubernetes.object_server import ObjectServer

MINE = Ref(gateway_api.HTTP_ROUTES, "shop")
WEB = Ref(gateway_api.HTTP_ROUTES, "web")
SIDE = Ref(gateway_api.HTTP_ROUTES, "shop-fairlead")
BETA = Match(Where.HEADER, "X-Beta", "yes")
PARENTS = [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "public"}]
SLASH = {"path": {"type": "PathPrefix", "value": "/"}}


def ref(name: str, weight: int = 1, **more: Any) -> Object:
    """A backend as the API server completes it."""
    return {"group": "", "kind": "Service", "name": name, "port": 80, "weight": weight, **more}


THEIRS: Object = {
    "metadata": {"labels": {"team": "web"}},
    "spec": {
        "parentRefs": PARENTS,
        "hostnames": ["shop.example.com"],
        "rules": [
            {"matches": [{"path": {"type": "Exact", "value": "/x"}}], "backendRefs": [ref("x")]},
            {
                "name": "web",
                "matches": [SLASH],
                "filters": [{"type": "URLRewrite", "urlRewrite": {"somethingNew": [1, 2]}}],
                "timeouts": {"request": "5s"},
                "backendRefs": [ref("shop")],
            },
            {"matches": [{"path": {"type": "PathPrefix", "value": "/old"}}],
             "backendRefs": [ref("shop", 80), ref("legacy", 20)]},
        ],
    },
}  # fmt: skip


def site(**desired: Any) -> Site:
    primary, canary, baseline = (Backend(f"shop{end}", 80) for end in ("", "-canary", "-baseline"))
    return Site("prod", "shop", primary, canary, desired, baseline)


def own(**desired: Any) -> ObjectServer:
    desired = {"route": {"parentRefs": PARENTS}} | desired
    return ObjectServer(gateway_api.GatewayApi(), site(**desired))


def adopted(spec: Object | None = None) -> ObjectServer:
    server = ObjectServer(gateway_api.GatewayApi(), site(routeName="web"))
    server.put(WEB, {**THEIRS, "spec": spec} if spec is not None else THEIRS)
    return server


def weights(server: ObjectServer, which: Ref, rule: int = 0) -> dict[str, int]:
    refs = server.found[which]["spec"]["rules"][rule]["backendRefs"]
    return {one["name"]: one.get("weight", 1) for one in refs}


def take_in(server: ObjectServer, *, behind: int = 0) -> None:
    """A gateway's controller accepts what is written."""
    for route in server.found.values():
        seen = route["metadata"]["generation"] - behind
        route["status"] = {"parents": [parent("gate", seen)]}


def parent(name: str, seen: int, *, accepted: str = "True", resolved: str = "True") -> Object:
    said = {"Accepted": accepted, "ResolvedRefs": resolved}
    conditions = [
        {"type": kind, "status": status, "observedGeneration": seen}
        for kind, status in said.items()
    ]
    return {"controllerName": name, "parentRef": PARENTS[0], "conditions": conditions}
