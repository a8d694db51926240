"""A small platform for one rollout: real Deployments, and a provider's writes on a real API server.

It stands in for the operator, so that a provider can be tried by itself: the machine's order of
writes, the provider's objects, and nothing of the operator's own.
"""

import dataclasses
import datetime as dt
from typing import Any

from fairlead.analysis import conditions
from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.domain.observation import ObservedRoute, Pods
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes.routing.provider import (
    Amend,
    Apply,
    Backend,
    DesiredRoute,
    Found,
    Provider,
    Ref,
    Remove,
    Site,
    Write,
)
from fairlead.areas.rollouts.ports import Slots
from fairlead.checks.spec import Check
from fairlead.checks.subject import News, Subject
from tests.cluster import client
from tests.dataplane import kubelet

# A field that the server does not know is then an error, not dropped in silence.
_STRICT = {"fieldValidation": "Strict"}
_NOT_FOUND = 404
_CONFLICT = 409
_ORDER = "fairlead.dev/order"
_REVISION = "tests.fairlead.dev/revision"
NAMES = {Slot.PRIMARY: "shop", Slot.CANARY: "shop-canary", Slot.BASELINE: "shop-baseline"}


class DataplanePlatform:
    """Platform, router and everything else that a rollout asks for."""

    def __init__(
        self, admin: client.Client, namespace: str, provider: Provider, desired: Any
    ) -> None:
        backends = {slot.value: Backend(name, 80) for slot, name in NAMES.items()}
        self.site = Site(namespace, "shop", desired=desired, **backends)
        self.provider = provider
        self.errors: dict[str, float] = {}
        self.news: list[str] = []
        self.writes: list[tuple[str, str]] = []
        self._admin = admin
        self._orders: dict[Slot, int] = {}
        self._ready: dict[Slot, tuple[int, dt.datetime]] = {}

    def desired(self, desired: Any) -> None:
        """What the object's spec says to the provider."""
        self.site = dataclasses.replace(self.site, desired=desired)

    async def open(self) -> None:
        """The Services, which stay."""
        for name in NAMES.values():
            body = {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name},
                "spec": {
                    "selector": {"app": name},
                    "ports": [{"name": "http", "port": 80, "targetPort": kubelet.PORT}],
                },
            }
            await self._admin.create(client.path("v1", "services", self.site.namespace), body)

    async def ensure(self, wanted: messages.EnsureVersion) -> None:
        if wanted.order < self._orders.get(wanted.slot, 0):
            return
        self._orders[wanted.slot] = wanted.order
        count = wanted.at_least if wanted.replicas is None else wanted.replicas
        self._note("ensure", f"{NAMES[wanted.slot]} {wanted.version.revision} x{count}")
        body = _deployment(NAMES[wanted.slot], wanted, count)
        await self._admin.apply(self._where(wanted.slot), body)

    async def remove_canary(self, wanted: messages.RemoveCanary) -> None:
        for slot in (Slot.CANARY, Slot.BASELINE):
            self._orders[slot] = max(wanted.order, self._orders.get(slot, 0))
            self._note("remove", NAMES[slot])
            try:
                await self._admin.delete(self._where(slot))
            except client.ApiError as refused:
                if refused.status != _NOT_FOUND:
                    raise

    async def let_go(self, gone: messages.ReleaseResources) -> None: ...

    async def pods(self, name: str) -> Slots:
        return Slots(*[await self._pods(slot) for slot in Slot])

    async def route(self, wanted: messages.SetRoute) -> None:
        self._note("route", f"{wanted.order}: {wanted.route.weight} joined={wanted.route.joined}")
        for _ in range(5):
            desired = DesiredRoute(wanted.order, wanted.route, dt.datetime.now(dt.UTC))
            try:
                for write in self.provider.writes(self.site, desired, await self.found()):
                    await self.perform(write)
            except client.ApiError as refused:
                if refused.status != _CONFLICT:
                    raise
            else:
                return

    async def shown(self, name: str) -> ObservedRoute | None:
        now = dt.datetime.now(dt.UTC)
        return self.provider.shown(self.site, await self.found(), now)[0]

    async def give_back(self, gone: messages.ReleaseResources) -> None:
        for write in self.provider.give_back(self.site, await self.found()):
            await self.perform(write)

    async def found(self) -> Found:
        """What an operator's caches would hold."""
        held = {}
        for ref in self.provider.refs(self.site):
            try:
                held[ref] = await self._admin.get(self.path(ref))
            except client.ApiError as refused:
                if refused.status != _NOT_FOUND:
                    raise
        return held

    async def perform(self, write: Write) -> client.Json:
        match write:
            case Apply(obj):
                ref = self._ref(obj)
                query = {"fieldManager": "fairlead", "force": "true", **_STRICT}
                kind = "application/apply-patch+yaml"
                return await self._admin.send("PATCH", self.path(ref), obj, kind, query)
            case Amend(ref):
                body = client.dumped(write.patch)
                kind = "application/json-patch+json"
                query = {"fieldManager": "fairlead", **_STRICT}
                return await self._admin.send("PATCH", self.path(ref), body, kind, query)
            case Remove(ref):
                return await self._admin.delete(self.path(ref))

    def path(self, ref: Ref) -> str:
        api = f"{ref.api.group}/{ref.api.version}"
        return client.path(api, ref.api.plural, self.site.namespace, ref.name)

    async def ask(self, check: Check, about: Subject) -> conditions.Answer:
        return conditions.Answered(self.errors.get(about.canary.revision, 0.0))

    async def compare(self, check: Check, about: Subject) -> Any:
        raise AssertionError(check)

    async def is_open(self, check: Check, about: Subject) -> tuple[bool, str]:
        raise AssertionError(check)

    async def notify(self, news: News) -> None:
        self.news.append(f"{news.kind}: {news.text}")

    async def publish(self, status: messages.PublishStatus) -> None: ...

    async def reset_override(self, name: str) -> None: ...

    def _ref(self, obj: client.Json) -> Ref:
        named = (obj["kind"], obj["metadata"]["name"])
        return next(
            ref for ref in self.provider.refs(self.site) if (ref.api.kind, ref.name) == named
        )

    def _note(self, what: str, which: str) -> None:
        self.writes.append((what, which))

    def _where(self, slot: Slot) -> str:
        return client.path("apps/v1", "deployments", self.site.namespace, NAMES[slot])

    async def _pods(self, slot: Slot) -> Pods | None:
        try:
            found = await self._admin.get(self._where(slot))
        except client.ApiError as refused:
            if refused.status == _NOT_FOUND:
                return None
            raise
        status, meta = found.get("status") or {}, found["metadata"]
        # Beside the primary no version changes in place, so a number that lags is still its own.
        current = status.get("observedGeneration", 0) >= meta["generation"]
        fresh = current or slot is not Slot.PRIMARY
        old = status.get("replicas", 0) - status.get("updatedReplicas", 0)
        ready = max(0, status.get("readyReplicas", 0) - old) if fresh else 0
        notes = meta["annotations"]
        known = self._known(slot, ready)
        return Pods(notes[_REVISION], found["spec"]["replicas"], ready, known, int(notes[_ORDER]))

    def _known(self, slot: Slot, ready: int) -> int:
        """So many are held to be known: those that were ready a provider's delay ago."""
        now = dt.datetime.now(dt.UTC)
        count, since = self._ready.get(slot, (-1, now))
        if count != ready:
            self._ready[slot] = count, since = ready, now
        old = (now - since).total_seconds() >= self.provider.delay(self.site)
        return ready if old else 0


def _deployment(name: str, wanted: messages.EnsureVersion, count: int) -> client.Json:
    labels = {"app": name}
    revision = wanted.version.revision
    notes = {_ORDER: str(wanted.order), _REVISION: revision}
    container = {"name": "shop", "image": f"shop:{revision}"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "annotations": notes},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": labels},
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 30},
            },
        },
    }
