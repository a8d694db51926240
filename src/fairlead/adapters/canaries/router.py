"""What shares a rollout's requests out: a provider says what is to be written, this writes it."""

from typing import Any

import structlog

from fairlead.adapters.canaries import children, seeing
from fairlead.adapters.canaries.desk import Case, Desk
from fairlead.adapters.canaries.ledger import STANDING_BY
from fairlead.adapters.canaries.provider import Amend, Apply, Remove, Wanted, Write
from fairlead.adapters.kubernetes import compare, rights
from fairlead.adapters.kubernetes.objects import Key
from fairlead.domain.rollouts import messages
from fairlead.domain.rollouts.sight import Shown
from fairlead.domain.traffic.routes import STANDBY
from fairlead.errors import Conflict, NotFound
from fairlead.intents.kubernetes import Api

log = structlog.get_logger(__name__)
Object = dict[str, Any]

ROUTE = "route"
# An object of somebody else may change between our look and our write.
_TRIES = 4


class Router:
    """The port of a rollout over a provider."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def route(self, wanted: messages.SetRoute) -> None:
        async with self._desk.turn(wanted.name) as case:
            ledger = self._desk.ledger
            if case is None or wanted.order < max(
                ledger.order(case.uid, part) for part in (ROUTE, STANDING_BY)
            ):
                return
            if case.reading.adopts:
                await self._desk.hold(case)
            for tries in range(1, _TRIES + 1):
                try:
                    await self._write(case, wanted)
                    break
                except Conflict:
                    if tries == _TRIES:
                        raise
                    await self._read_again(case)
            case.station.look_again(case.key)

    async def shown(self, name: str) -> Shown | None:
        case = self._desk.look(name)
        return None if case is None else self._desk.see(case).route

    async def give_back(self, gone: messages.LetGo) -> None:
        """Nothing: `tend` gives a route back before the object may go."""

    async def restore(self, case: Case) -> None:
        """The rollout is going: a route of somebody else gets all traffic on the primary."""
        provider, site = self._desk.provider(case.reading), children.site(case.reading)
        for write in provider.give_back(site, seeing.found(provider, site, case.around)):
            await self._perform(case, write)

    async def _write(self, case: Case, wanted: messages.SetRoute) -> None:
        provider, site = self._desk.provider(case.reading), children.site(case.reading)
        around = case.station.surroundings(case.obj)
        found = seeing.found(provider, site, around)
        wish = Wanted(wanted.order, wanted.route, self._desk.gear.clock.now())
        writes = provider.writes(site, wish, found)
        ledger = self._desk.ledger
        if wanted.route == STANDBY and all(self._is_so(case, write) for write in writes):
            # This provider's proxies know the canary at weight 0 already: only the order is new.
            ledger.perform(case.uid, STANDING_BY, wanted.order)
            return
        for write in writes:
            await self._perform(case, write)
        ledger.perform(case.uid, ROUTE, wanted.order)

    def _is_so(self, case: Case, write: Write) -> bool:
        if not isinstance(write, Apply):
            return False
        cache = self._desk.cache(case, self._api(case, write.object))
        live = cache.get(Key(case.reading.namespace, write.object["metadata"]["name"]))
        spec = {"apiVersion": write.object["apiVersion"], "spec": write.object["spec"]}
        return live is not None and not compare.differences(spec, live)

    async def _perform(self, case: Case, write: Write) -> None:
        self._desk.gear.turns.check()
        match write:
            case Apply(obj):
                await self._desk.apply(case, self._api(case, obj), obj, changing=True)
            case Amend(ref):
                key = Key(case.reading.namespace, ref.name)
                resource = rights.resource(ref.api)
                answer = await self._desk.gear.client.patch(resource, key, write.patch, kind="json")
                self._desk.cache(case, ref.api).wrote(answer)
            case Remove(ref):
                cache = self._desk.cache(case, ref.api)
                live = cache.get(Key(case.reading.namespace, ref.name))
                if live is not None:
                    await case.station.held.applier.delete(cache, live)

    async def _read_again(self, case: Case) -> None:
        """Ask the server: our cache is behind what somebody else wrote."""
        provider, site = self._desk.provider(case.reading), children.site(case.reading)
        for ref in provider.refs(site):
            key = Key(case.reading.namespace, ref.name)
            try:
                found = await self._desk.gear.client.get(rights.resource(ref.api), key)
            except NotFound:
                continue
            self._desk.cache(case, ref.api).wrote(found)

    def _api(self, case: Case, obj: Object) -> Api:
        provider, site = self._desk.provider(case.reading), children.site(case.reading)
        for api in (*provider.apis, *(ref.api for ref in provider.refs(site))):
            if api.kind == obj["kind"]:
                return api
        raise NotFound(f"not a kind of this provider: {obj['kind']}", hint="declare it in apis")
