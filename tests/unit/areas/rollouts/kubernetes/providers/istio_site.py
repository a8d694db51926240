"""A shop behind a VirtualService, its own or one that somebody wrote."""

from typing import Any

from fairlead.areas.rollouts.kubernetes.providers import istio
from fairlead.areas.rollouts.kubernetes.routing.provider import Backend, Object, Ref, Site
from fairlead.traffic.routes import Match, Where
from tests.unit.areas.rollouts.kubernetes.object_server import ObjectServer

SERVICE = Ref(istio.VIRTUAL_SERVICES, "shop")
WEB = Ref(istio.VIRTUAL_SERVICES, "web")
RULE = Ref(istio.DESTINATION_RULES, "shop-policy")
COPY = Ref(istio.DESTINATION_RULES, "shop-canary")
POLICY = {
    "host": "shop.prod.svc.cluster.local",
    "trafficPolicy": {"tls": {"mode": "ISTIO_MUTUAL"}, "somethingNew": 1},
    "subsets": [{"name": "v1", "labels": {"v": "1"}}],
}
BETA = Match(Where.HEADER, "X-Beta", "yes")

# As somebody may have written it: fields that we do not know, and routes that are not ours.
THEIRS: Object = {
    "apiVersion": "networking.istio.io/v1",
    "kind": "VirtualService",
    "metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "shop:VirtualService"}},
    "spec": {
        "hosts": ["shop.example.com"],
        "gateways": ["istio-system/public"],
        "exportTo": ["."],
        "http": [
            {
                "name": "admin",
                "match": [{"uri": {"prefix": "/admin"}}],
                "route": [{"destination": {"host": "admin"}}],
            },
            {
                "name": "preview",
                "match": [{"uri": {"prefix": "/preview"}}],
                "route": [{"destination": {"host": "shop-canary"}}],
            },
            {
                "name": "web",
                "match": [{"uri": {"prefix": "/"}}, {"uri": {"exact": "/x"}, "port": 80}],
                "timeout": "5s",
                "retries": {"attempts": 3, "somethingNew": {"deep": [1, 2]}},
                "route": [
                    {
                        "destination": {
                            "host": "shop.prod.svc.cluster.local",
                            "port": {"number": 80},
                            "subset": "v1",
                        },
                        "headers": {"request": {"set": {"x-from": "gate"}}},
                    }
                ],
            },
        ],
        "tcp": [
            {
                "match": [{"port": 5432}],
                "route": [
                    {"destination": {"host": "shop.prod", "subset": "v1"}, "weight": 80},
                    {"destination": {"host": "legacy"}, "weight": 20},
                ],
            }
        ],
    },
}


def site(**desired: Any) -> Site:
    primary, canary, baseline = (Backend(f"shop{end}", 80) for end in ("", "-canary", "-baseline"))
    return Site("prod", "shop", primary, canary, desired, baseline)


def own(**desired: Any) -> ObjectServer:
    return ObjectServer(istio.Istio(), site(**desired))


def adopted(spec: Object | None = None, **desired: Any) -> ObjectServer:
    named = {"vsName": "web", **({"subset": "v1"} if spec is None else {})}
    server = ObjectServer(istio.Istio(), site(**{**named, **desired}))
    server.put(WEB, {**THEIRS, "spec": spec} if spec is not None else THEIRS)
    return server


def weights(
    server: ObjectServer, ref: Ref, section: str = "http", index: int = -1
) -> dict[str, int]:
    rule = server.found[ref]["spec"][section][index]
    return {one["destination"]["host"]: one.get("weight") for one in rule["route"]}
