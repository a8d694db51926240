"""Resources of objects at work during one term of an operator.

Requests are made as everywhere else. Around each stand the object: it is held before the first
write, its Secrets are read for this one effect, and what the API showed comes into its status.
"""

import base64
import binascii
import contextlib
import dataclasses
import functools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import msgspec
from prometheus_client import registry

from fairlead.areas.resources import handlers as requests_
from fairlead.areas.resources import host as hosts
from fairlead.areas.resources import responses
from fairlead.areas.resources.domain import requests
from fairlead.areas.resources.domain.applied import Seal
from fairlead.areas.resources.domain.model import Json
from fairlead.areas.resources.domain.reconcile import messages, publishing
from fairlead.areas.resources.finding import Finder, Shown
from fairlead.areas.resources.kubernetes import parsing
from fairlead.areas.resources.kubernetes.claims import Claim
from fairlead.areas.resources.kubernetes.kinds import CloudKinds
from fairlead.engine import outbox
from fairlead.errors import FairleadError, NotFound, Rejected
from fairlead.kubernetes import kinds as reconciler
from fairlead.kubernetes import objects, rbac
from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.controller.controller import Controller
from fairlead.kubernetes.controller.registration import ControllerContext, Registration
from fairlead.kubernetes.messages import RecordEvent
from fairlead.kubernetes.objects import Key, Object
from fairlead.kubernetes.writes import finalizers, seals
from fairlead.settings import Settings

_READY = "Ready"
_MOST_OBSERVED = 256 * 1024
"""Bytes of a status: an object may have 1.5 MB, with what was applied in it."""


class CloudRegistrar:
    """Registers resources, term after term."""

    def __init__(self, kinds: CloudKinds, chosen: Settings) -> None:
        self._kinds = kinds
        self._chosen = chosen

    @property
    def collectors(self) -> Sequence[registry.Collector]:
        return ()

    @contextlib.asynccontextmanager
    async def registration(self, context: ControllerContext) -> AsyncIterator[Registration]:
        sealing = await seals.load(context.client, context.status_key)
        self._kinds.seals = sealing
        ours = {str(kind.api) for kind in self._kinds.kinds}
        controllers = [one for one in context.controllers if str(one.kind.api) in ours]
        context = dataclasses.replace(context, controllers=controllers)
        known = [one.held.objects for one in controllers]
        self._kinds.claims.begin(
            (found for cache in known for key in cache.known() if (found := cache.get(key))),
            lambda claim: any(_has(cache, claim) for cache in known),
        )
        try:
            host: hosts.Host | None = hosts.host(self._chosen)
            told = None
        except FairleadError as error:
            # The objects say so, each of them; all else of this operator goes on.
            said = f"{error.message}; {error.hint}"
            host, told = None, messages.Failure(messages.ErrorClass.CREDENTIALS, said)
        work = _Work(context, self._kinds, sealing, {})
        if host is None:
            assert told is not None
            yield Registration(_refusing(work, told))
            return
        async with host.arm.open():
            yield Registration(_handlers(work, host))


def _has(cache: Cache, claim: Claim) -> bool:
    found = cache.get(claim.key)
    return found is not None and objects.uid_of(found) == claim.uid


def sealing_of(sealing: seals.Seals) -> Seal:
    return Seal(sealing.of({"metadata": {"name": "", "uid": ""}}, "resources").encode())


@dataclasses.dataclass(frozen=True, slots=True)
class _Work:
    """One term."""

    context: ControllerContext
    kinds: CloudKinds
    seals: seals.Seals
    shown: dict[str, Json | None]
    """What the API showed last of an object's resource, without secrets, by its UID."""

    def take_engine(self, host: hosts.Host) -> None:
        """That of this term, which is made after us: for budgets and creations."""
        host.begun.engine = host.budget.engine = self.context.engine()

    def find(self, stream: str) -> tuple[Controller, Object] | None:
        """This very object, also one that is on its way out."""
        place = reconciler.place_of(stream)
        if place is None:
            return None
        for controller in self.context.controllers:
            cache = controller.held.objects
            for key in cache.beginning(place.namespace, place.name, place.is_cut):
                found = cache.get(key)
                if found is not None and objects.uid_of(found) == place.uid:
                    return controller, found
        return None

    async def hold(self, controller: Controller, obj: Object) -> None:
        """Before anything is made, so that whoever deletes the object waits for its end."""
        async with self.context.write_locks.of(objects.uid_of(obj)):
            self.context.write_locks.check()
            live = controller.held.objects.get(objects.key_of(obj))
            if live is not None and objects.uid_of(live) == objects.uid_of(obj):
                cache = controller.held.objects
                await finalizers.hold(self.context.client, cache, live, publishing.FINALIZER)

    async def publish(self, effect: messages.Publish, _: outbox.EffectContext) -> None:
        subject = effect.status.subject
        memory = publishing.words(effect)

        def beside(live: Object) -> Object:
            said: Object = {"memory": memory, "seal": self.seals.of(live, memory)}
            said["observedGeneration"] = effect.status.generation
            return said | self._observed(live)

        stream = f"/{reconciler.stream_key({'metadata': _meta(subject)})}"
        held = self.find(f"resource{stream}")
        if held is None:
            return
        controller, live = held
        ready = next(each for each in effect.status.conditions if each.type == _READY)
        if objects.is_deleting(live):
            if ready.message:
                async with self.context.write_locks.of(subject.uid):
                    await controller.stays(live, ready.message)
            return
        if await self.context.performer.publish(effect.status, beside):
            self._tell(effect, live)

    def _tell(self, effect: messages.Publish, before: Object) -> None:
        """An Event where it became ready, or something is in its way."""
        known = (before.get("status") or {}).get("conditions") or ()
        was: Mapping[str, Any] = next((each for each in known if each["type"] == _READY), {})
        now = next(each for each in effect.status.conditions if each.type == _READY)
        if (was.get("reason"), was.get("message")) == (now.reason, now.message):
            return
        if now.status or now.message:
            note = now.message or f"as declared: {effect.status.status['resourceId']}"
            warning = not now.status
            told = RecordEvent(effect.status.subject, now.reason, note, warning, topic=note)
            self.context.performer.record(told)

    def _observed(self, live: Object) -> Object:
        known = (live.get("status") or {}).get("observed")
        shown = self.shown.get(objects.uid_of(live), known)
        if shown is None:
            return {}
        if len(msgspec.json.encode(shown)) > _MOST_OBSERVED:
            shown = {name: shown[name] for name in ("id", "name", "etag") if name in shown}
        return {"observed": shown}

    async def secrets(self, obj: Object, form: parsing.Form) -> Mapping[str, str]:
        """The values that the object names, by `SECRET/KEY`."""
        namespace, found = objects.key_of(obj).namespace, {}
        for _, name in parsing.secrets(form, obj):
            secret, _, key = name.partition("/")
            try:
                data = (await self.context.client.get(rbac.SECRETS, Key(namespace, secret)))["data"]
                found[name] = base64.b64decode(data[key], validate=True).decode()
            except (NotFound, KeyError) as error:
                raise NotFound(
                    f"no such key of a Secret: {name}", hint="make it in the object's namespace"
                ) from error
            except (binascii.Error, UnicodeDecodeError) as error:
                raise Rejected(f"no text in this key: {name}", hint="put text into it") from error
        return found


def _handlers(work: _Work, host: hosts.Host) -> outbox.Handlers:
    # The same for every replica, and after a restart: what a status remembers is compared.
    ports = dataclasses.replace(host.ports, seal=sealing_of(work.seals))
    made: dict[type, outbox.Handler] = {messages.Publish: outbox.Handler(work.publish)}
    for effect, usual in requests_.handlers(ports).items():

        async def perform(
            effect: Any, context: outbox.EffectContext, of: type = effect
        ) -> object | None:
            work.take_engine(host)
            return await _performed(work, ports, of, effect, context)

        made[effect] = dataclasses.replace(usual, perform=perform)
    return made


async def _performed(
    work: _Work,
    ports: requests_.ResourcePorts,
    of: type,
    effect: Any,
    context: outbox.EffectContext,
) -> object | None:
    """One request for an object, while we lead and it is there."""
    work.context.write_locks.check()
    held = work.find(context.stream)
    if held is None:
        gone = NotFound("its object is gone", hint="it is told so soon")
        return messages.Failed(effect.order, responses.unperformed(gone))
    controller, obj = held
    uid = objects.uid_of(obj)
    try:
        if of is messages.Write:
            await work.hold(controller, obj)
        form = work.kinds.form(controller.kind)
        secrets = await work.secrets(obj, form) if _compares(effect) else {}
    except FairleadError as error:
        return messages.Failed(effect.order, responses.unperformed(error))
    noted = functools.partial(_noted, work, uid)
    world = dataclasses.replace(ports, secret=_named(secrets), noted=noted)
    return await requests_.handlers(world)[of].perform(effect, context)


def _compares(effect: object) -> bool:
    return isinstance(effect, messages.Write) or (
        isinstance(effect, messages.Read) and effect.compares
    )


def _named(secrets: Mapping[str, str]) -> Callable[[str], str]:
    def secret(name: str) -> str:
        if name not in secrets:
            raise NotFound(f"no such key of a Secret: {name}", hint="the object names it no longer")
        return secrets[name]

    return secret


async def _noted(
    work: _Work, uid: str, finder: Finder, declared: messages.Declared, shown: Shown
) -> Json | None:
    """What its status will show: all that is there, with what is joined, without secrets."""
    work.shown[uid] = None
    if shown.observed is not None:
        whole, warnings = await finder.joined(shown.given or declared.id, shown.observed)
        request = requests.Request("PUT", declared.id, [], whole)
        work.shown[uid] = requests.shown(finder.model, request).body
        for told in warnings:
            assert declared.origin is not None, "what no object declared is performed elsewhere"
            subject = declared.origin.subject
            event = RecordEvent(subject, "JoinFailed", told, warning=True, topic=told)
            work.context.performer.record(event)
    return work.shown[uid]


def _refusing(work: _Work, failure: messages.Failure) -> outbox.Handlers:
    async def refuse(effect: Any, _: outbox.EffectContext) -> object:
        return messages.Failed(effect.order, failure)

    asked = (messages.Read, messages.Write, messages.Delete, messages.Poll)
    made: dict[type, outbox.Handler] = {effect: outbox.Handler(refuse) for effect in asked}
    return {**made, messages.Publish: outbox.Handler(work.publish)}


def _meta(subject: Any) -> Object:
    return {"namespace": subject.namespace, "name": subject.name, "uid": subject.uid}
