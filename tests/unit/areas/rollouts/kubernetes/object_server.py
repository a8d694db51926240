"""An API server for one object at a time: performs a provider's writes on plain dicts."""

import copy
import datetime as dt

from fairlead.areas.rollouts.domain.observation import ObservedRoute
from fairlead.areas.rollouts.kubernetes.routing.provider import (
    Amend,
    Apply,
    DesiredRoute,
    Object,
    Provider,
    Ref,
    Site,
    Write,
)
from fairlead.traffic.routes import Route
from tests.fakes.kubernetes.patches import json_patch

NOW = dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)


class ObjectServer:
    """Objects as a server would keep them: versions, generations, statuses."""

    def __init__(self, provider: Provider, site: Site) -> None:
        self.provider = provider
        self.site = site
        self.found: dict[Ref, Object] = {}
        self.written: list[Write] = []
        self.now = NOW
        self.order = 0

    def put(self, ref: Ref, obj: Object) -> None:
        """Somebody else makes or replaces an object."""
        before = self.found.get(ref, {"metadata": {"generation": 0, "resourceVersion": "0"}})
        meta = {"name": ref.name, "namespace": self.site.namespace} | (obj.get("metadata") or {})
        made = {**copy.deepcopy(obj), "metadata": meta}
        if "status" in before:
            made["status"] = before["status"]
        grown = int(before["metadata"]["generation"]) + (made["spec"] != before.get("spec"))
        meta["generation"] = grown
        meta["resourceVersion"] = str(int(before["metadata"]["resourceVersion"]) + 1)
        self.found[ref] = made

    def edit(self, ref: Ref, *operations: Object) -> None:
        """Somebody else patches an object."""
        self.put(ref, json_patch(self.found[ref], list(operations)))

    def route(self, route: Route, order: int = 0) -> tuple[Write, ...]:
        """Ask the provider for a route and perform what it says."""
        self.order = order or self.order + 1
        wanted = DesiredRoute(self.order, route, self.now)
        writes = self.provider.writes(self.site, wanted, self.found)
        self.perform(writes)
        return writes

    def perform(self, writes: tuple[Write, ...]) -> None:
        for write in writes:
            self.written.append(write)
            match write:
                case Apply(obj):
                    ref = next(
                        each
                        for each in self.provider.refs(self.site)
                        if (each.api.kind, each.name) == (obj["kind"], obj["metadata"]["name"])
                    )
                    self.put(ref, obj)
                case Amend(ref):
                    assert (
                        write.resource_version == (self.found[ref]["metadata"]["resourceVersion"])
                    )
                    self.put(ref, json_patch(self.found[ref], list(write.operations)))
                case other:
                    raise AssertionError(other)

    def shown(self, after: float = 0.0) -> tuple[ObservedRoute | None, float]:
        self.now += dt.timedelta(seconds=after)
        return self.provider.shown(self.site, self.found, self.now)
