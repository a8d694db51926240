"""A snapshot as plain lists, and objects as users write them."""

import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fairlead.kubernetes.kinds import Children
from fairlead.kubernetes.objects import Resource

Json = dict[str, Any]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class FakeSnapshot:
    """What is found, by kind and term."""

    things: dict[tuple[str, str], list[Json]] = field(default_factory=dict)
    at: datetime = NOW
    absent: frozenset[str] = frozenset()
    children: Children = ()

    @property
    def versions(self) -> list[int]:
        return []

    def found(self, api: Resource, term: str) -> Children:
        return self.things.get((api.kind, term), [])

    def is_served(self, api: Resource) -> bool:
        return api.kind not in self.absent


def canary(**spec: Any) -> Json:
    template = {
        "metadata": {"labels": {"app": "shop"}},
        "spec": {"containers": [{"name": "web", "image": "registry/shop:1"}]},
    }
    return {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "CanaryDeployment",
        "metadata": {"namespace": "bay", "name": "shop", "uid": "u1", "generation": 1},
        "spec": {
            "deploymentSpec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "shop"}},
                "template": copy.deepcopy(template),
            },
            "serviceSpec": {"ports": [{"port": 80}]},
            "provider": {"istio": {}},
            **spec,
        },
    }


def deployment(name: str = "shop-deployment", **status: int) -> Json:
    meta = {"namespace": "bay", "name": name, "generation": 3, "annotations": {}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "shop"}}, "template": {}}
    return {"metadata": meta, "spec": spec, "status": {"observedGeneration": 3, **status}}
