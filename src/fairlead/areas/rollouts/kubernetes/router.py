"""What shares a rollout's requests out: a provider says what is to be written, this writes it."""

import contextlib
from typing import Any

import structlog

from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.domain.observation import ObservedRoute
from fairlead.areas.rollouts.kubernetes import children, observe_cluster
from fairlead.areas.rollouts.kubernetes.applied_orders import STANDING_BY
from fairlead.areas.rollouts.kubernetes.context import RolloutContext, RolloutContexts
from fairlead.areas.rollouts.kubernetes.routing import route_annotations
from fairlead.areas.rollouts.kubernetes.routing.provider import (
    Amend,
    Apply,
    DesiredRoute,
    Remove,
    Write,
)
from fairlead.errors import Conflict, NotFound
from fairlead.kubernetes.objects import Key, Resource
from fairlead.kubernetes.writes import compare
from fairlead.traffic.routes import PRIMARY_ONLY, STANDBY

log = structlog.get_logger(__name__)
Object = dict[str, Any]

ROUTE = "route"
# An object of somebody else may change between our read and our write.
_TRIES = 4
_SOON = 0.1


class Router:
    """The port of a rollout over a provider."""

    def __init__(self, contexts: RolloutContexts) -> None:
        self._contexts = contexts

    async def route(self, desired: messages.SetRoute) -> None:
        async with self._contexts.turn(desired.name) as context:
            orders = self._contexts.orders
            if context is None or desired.order < max(
                orders.order(context.uid, part) for part in (ROUTE, STANDING_BY)
            ):
                return
            if context.parsed.adopts:
                await self._contexts.hold(context)
            for tries in range(1, _TRIES + 1):
                try:
                    await self._write(context, desired)
                    break
                except Conflict:
                    if tries == _TRIES:
                        raise
                    await self._read_again(context)
            context.controller.requeue(context.key)

    async def shown(self, name: str) -> ObservedRoute | None:
        context = self._contexts.context_of(name)
        return None if context is None else self._contexts.see(context).route

    async def give_back(self, gone: messages.ReleaseResources) -> None:
        """Nothing: `after_reconcile` gives a route back before the object may go."""

    async def restore(self, context: RolloutContext) -> float:
        """The rollout is going: a route of others is as before, or in so many seconds if not 0.

        By the steps of every rollback, each shown before the next: pods that the proxies still ask
        are collected with the object, and a proxy that is late would lose those requests.
        """
        parsed, site = context.parsed, children.site(context.parsed)
        provider = self._contexts.provider(parsed)
        found = observe_cluster.found(provider, site, context.snapshot)
        mark = route_annotations.read(found.get(provider.refs(site)[0]))
        if mark is not None and parsed.adopts:
            now = self._contexts.controller_context.clock.now()
            shown, again = provider.shown(site, found, now)
            late = again and (shown is None or shown.order < mark.order)
            if late and not mark.route.reaches_canary:
                return again
            if mark.route.joined:
                route = mark.route.only(0) if mark.route.reaches_canary else PRIMARY_ONLY
                desired = DesiredRoute(mark.order + 1, route, now)
                for write in provider.writes(site, desired, found):
                    await self._perform(context, write)
                return provider.delay(site) or _SOON
        for write in provider.give_back(site, found):
            # One that is gone needs nothing back.
            with contextlib.suppress(NotFound):
                await self._perform(context, write)
        return 0.0

    async def _write(self, context: RolloutContext, desired: messages.SetRoute) -> None:
        provider, site = (
            self._contexts.provider(context.parsed),
            children.site(context.parsed),
        )
        snapshot = context.controller.cached_snapshot(context.obj)
        found = observe_cluster.found(provider, site, snapshot)
        now = self._contexts.controller_context.clock.now()
        writes = provider.writes(site, DesiredRoute(desired.order, desired.route, now), found)
        orders = self._contexts.orders
        if desired.route == STANDBY and all(self._is_so(context, write) for write in writes):
            # This provider's proxies know the canary at weight 0 already: only the order is new.
            orders.perform(context.uid, STANDING_BY, desired.order)
            return
        for write in writes:
            await self._perform(context, write)
        orders.perform(context.uid, ROUTE, desired.order)

    def _is_so(self, context: RolloutContext, write: Write) -> bool:
        if not isinstance(write, Apply):
            return False
        cache = self._contexts.cache(context, self._api(context, write.object))
        live = cache.get(Key(context.parsed.namespace, write.object["metadata"]["name"]))
        spec = {"apiVersion": write.object["apiVersion"], "spec": write.object["spec"]}
        return live is not None and not compare.differences(spec, live)

    async def _perform(self, context: RolloutContext, write: Write) -> None:
        self._contexts.controller_context.write_locks.check()
        match write:
            case Apply(obj):
                await self._contexts.apply(context, self._api(context, obj), obj, changing=True)
            case Amend(ref):
                key = Key(context.parsed.namespace, ref.name)
                resource = ref.api
                answer = await self._contexts.controller_context.client.patch(
                    resource, key, write.patch, kind="json"
                )
                self._contexts.cache(context, ref.api).wrote(answer)
            case Remove(ref):
                cache = self._contexts.cache(context, ref.api)
                live = cache.get(Key(context.parsed.namespace, ref.name))
                if live is not None:
                    await context.controller.held.applier.delete(cache, live)

    async def _read_again(self, context: RolloutContext) -> None:
        """Ask the server: our cache is behind what somebody else wrote."""
        provider, site = (
            self._contexts.provider(context.parsed),
            children.site(context.parsed),
        )
        for ref in provider.refs(site):
            key = Key(context.parsed.namespace, ref.name)
            try:
                found = await self._contexts.controller_context.client.get(ref.api, key)
            except NotFound:
                continue
            self._contexts.cache(context, ref.api).wrote(found)

    def _api(self, context: RolloutContext, obj: Object) -> Resource:
        provider, site = (
            self._contexts.provider(context.parsed),
            children.site(context.parsed),
        )
        for api in (*provider.apis, *(ref.api for ref in provider.refs(site))):
            if api.kind == obj["kind"]:
                return api
        raise NotFound(f"not a kind of this provider: {obj['kind']}", hint="declare it in apis")
