"""From the machine's effects to requests: each answers, and what went wrong is an answer too.

When to try again is the machine's to decide, so that whoever looks sees why a resource waits.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol

import msgspec

from fairlead import errors
from fairlead.areas.resources import responses
from fairlead.areas.resources.domain import references, urls
from fairlead.areas.resources.domain.applied import Seal
from fairlead.areas.resources.domain.model import Json, Model
from fairlead.areas.resources.domain.reconcile import messages
from fairlead.areas.resources.domain.reconcile.draft import stream
from fairlead.areas.resources.domain.reconcile.planning import Planned, looked, planned
from fairlead.areas.resources.domain.requests import Request
from fairlead.clients.arm.client import Answer, Follow, Question
from fairlead.engine import outbox

_SECONDS = 75.0
_FOR_EVER = 1_000_000_000
_LONGEST_DELAY = timedelta(minutes=1)
_NO_BODY = "the API shows no resource"
_POST = "POST"
_UNMAKEABLE = messages.Failure(
    messages.ErrorClass.REFUSED, "it is made by POST, which is not built yet: make it by hand"
)


class Api(Protocol):
    """Where resources are."""

    async def ask(self, question: Question) -> Answer: ...

    async def follow(self, at: Follow, correlation: str = "") -> Answer: ...


@dataclass(frozen=True, slots=True)
class ResourcePorts:
    """What is needed to bring a resource to what is declared."""

    api: Api
    model: Callable[[str, str], Model]
    """By type and version."""

    seal: Seal
    secret: Callable[[str], str]
    """By name."""


def handlers(world: ResourcePorts) -> outbox.Handlers:
    made: dict[type, Callable[[_Work, Any], Awaitable[object]]] = {
        messages.Read: _Work.read,
        messages.Write: _Work.write,
        messages.Delete: _Work.delete,
        messages.Poll: _Work.poll,
    }
    return {
        effect: outbox.Handler(
            _answered(world, perform),
            timedelta(seconds=_SECONDS + 10),
            attempts=_FOR_EVER,
            longest_delay=_LONGEST_DELAY,
        )
        for effect, perform in made.items()
    }


def _answered(
    world: ResourcePorts, perform: Callable[["_Work", Any], Awaitable[object]]
) -> Callable[[Any, outbox.EffectContext], Awaitable[object | None]]:
    async def performed(effect: Any, context: outbox.EffectContext) -> object:
        id_ = effect.id if hasattr(effect, "id") else effect.declared.id
        if stream(id_) != context.stream:
            raise errors.Rejected(
                f"{context.stream} asks for another resource: {id_[:80]}",
                hint="discard the effect (fairlead outbox discard)",
            )
        try:
            async with asyncio.timeout(_SECONDS):
                return await perform(_Work(world, context.idempotency_key), effect)
        except TimeoutError:
            away = errors.Unavailable(f"no answer within {_SECONDS:g} s", hint="it is tried again")
            return messages.Failed(effect.order, responses.unperformed(away))
        except errors.FairleadError as error:
            return messages.Failed(effect.order, responses.unperformed(error))

    return performed


class _Shown(NamedTuple):
    """What the API has; None where it has none."""

    observed: Json | None
    etag: str


@dataclass(frozen=True, slots=True)
class _Work:
    """One effect being performed."""

    world: ResourcePorts
    key: str

    async def read(self, effect: messages.Read) -> object:
        if not effect.compares:
            return await self._looked(effect)
        found = await self._compared(effect.declared, effect.last)
        if isinstance(found, messages.Failure):
            return messages.Failed(effect.order, found)
        return messages.Seen(effect.order, found.observation)

    async def _looked(self, effect: messages.Read) -> object:
        told = effect.declared
        self._model(told.type, told.version, told.id)
        shown = await self._shown(told)
        if isinstance(shown, messages.Failure):
            return messages.Failed(effect.order, shown)
        return messages.Seen(effect.order, looked(shown.observed))

    async def write(self, effect: messages.Write) -> object:
        """Only what was decided: whatever changed since then is decided anew."""
        found = await self._compared(effect.declared, effect.last)
        if isinstance(found, messages.Failure):
            return messages.Failed(effect.order, found)
        plan, request = found.observation.plan, found.request
        if plan is None or request is None or plan.digest != effect.digest:
            return messages.Outdated(effect.order)
        if request.method == _POST:
            # Sent again after a cut it would make another one: the API gives each a name.
            return messages.Failed(effect.order, _UNMAKEABLE)
        answer = await self._sent(effect.declared.version, request)
        if answer.status == HTTPStatus.PRECONDITION_FAILED:
            return messages.Outdated(effect.order)
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return messages.Failed(effect.order, responses.failure(answer))
        return messages.Accepted(effect.order, _operation(answer), answer.retry_after)

    async def delete(self, effect: messages.Delete) -> object:
        self._model(effect.type, effect.version, effect.id)
        question = Question("DELETE", effect.id, effect.version, correlation=self.key)
        answer = await self.world.api.ask(question)
        done = HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES
        if not done and not responses.is_absent(answer):
            return messages.Failed(effect.order, responses.failure(answer))
        return messages.Accepted(effect.order, _operation(answer), answer.retry_after)

    async def poll(self, effect: messages.Poll) -> object:
        at = Follow(effect.operation.style.value, effect.operation.url)
        answer = await self.world.api.follow(at, self.key)
        told = responses.polled(effect.order, at.style, answer)
        return told or messages.Failed(effect.order, responses.failure(answer))

    async def _compared(
        self, declared: messages.Declared, last: messages.LastApplied
    ) -> Planned | messages.Failure:
        model = self._model(declared.type, declared.version, declared.id)
        properties = references.resolved(declared.properties, self.world.secret)
        shown = await self._shown(declared)
        if isinstance(shown, messages.Failure):
            return shown
        complete = replace(declared, properties=properties)
        found = planned(model, self.world.seal, complete, last, shown.observed)
        if found.request is None or shown.observed is None or not shown.etag:
            return found
        # The header is there where the body has none, and is what a condition is held against.
        named = msgspec.structs.replace(found.request, if_match=shown.etag)
        return Planned(found.observation, named)

    async def _shown(self, declared: messages.Declared) -> "_Shown | messages.Failure":
        question = Question("GET", declared.id, declared.version, correlation=self.key)
        answer = await self.world.api.ask(question)
        if responses.is_absent(answer):
            return _Shown(None, "")
        if answer.status != HTTPStatus.OK:
            return responses.failure(answer)
        if not isinstance(answer.body, dict):
            return messages.Failure(messages.ErrorClass.TRANSIENT, _NO_BODY)
        return _Shown(answer.body, answer.etag)

    async def _sent(self, version: str, request: Request) -> Answer:
        conditions = {"If-Match": request.if_match, "If-None-Match": request.if_none_match}
        headers = {name: said for name, said in conditions.items() if said}
        asked = (request.method, request.url, version, request.body, headers, self.key)
        return await self.world.api.ask(Question(*asked))

    def _model(self, type_: str, version: str, id_: str) -> Model:
        """Nothing is asked for but resources of the type, whatever a row says."""
        model = self.world.model(type_, version)
        if not urls.fits(model.type.url, id_):
            raise errors.Rejected(
                f"not an id of {model.type.type}: {id_[:80]}", hint=f"as {model.type.url}"
            )
        return model


def _operation(answer: Answer) -> messages.Operation | None:
    told = answer.follow
    return None if told is None else messages.Operation(messages.Style(told.style), told.url)
