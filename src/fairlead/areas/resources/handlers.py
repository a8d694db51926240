"""From the machine's effects to requests: each answers, and what went wrong is an answer too.

When to try again is the machine's to decide, so that whoever looks sees why a resource waits.
"""

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from fairlead import errors
from fairlead.areas.resources import responses
from fairlead.areas.resources.domain import references, urls, validation
from fairlead.areas.resources.domain.applied import Seal
from fairlead.areas.resources.domain.hooks import Occasion, Point
from fairlead.areas.resources.domain.model import Json, Model
from fairlead.areas.resources.domain.reconcile import messages
from fairlead.areas.resources.domain.reconcile.draft import is_stream
from fairlead.areas.resources.domain.reconcile.planning import Planned, looked, planned
from fairlead.areas.resources.domain.requests import Request
from fairlead.areas.resources.finding import Api, Finder, Shown, outputs
from fairlead.clients.arm.client import Answer, Follow, Question
from fairlead.engine import outbox
from fairlead.engine.messages import StreamName

_SECONDS = 75.0
_FOR_EVER = 1_000_000_000
_LONGEST_DELAY = timedelta(minutes=1)
_POST = "POST"
_SHORTEST_SECRET = 4
_HIDDEN = "(secret)"
_BEGUN = messages.Failure(
    messages.ErrorClass.TRANSIENT, "it may have been made, and is looked for", unknown=True
)
Begin = Callable[[StreamName, int], Awaitable[bool]]
"""Of a creation's order: True for the first who says it, so that it is sent once."""


@dataclass(frozen=True, slots=True)
class ResourcePorts:
    """What is needed to bring a resource to what is declared."""

    api: Api
    model: Callable[[str, str], Model]
    """By type and version."""

    seal: Seal
    secret: Callable[[str], str]
    """By name."""

    begin: Begin
    noted: "Callable[[Finder, messages.Declared, Shown], Awaitable[Json | None]] | None" = None
    """Takes what a read showed, and gives what is to be shown of it."""


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
        if not is_stream(context.stream, id_):
            raise errors.Rejected(
                f"{context.stream} asks for another resource: {id_[:80]}",
                hint="discard the effect (fairlead outbox discard)",
            )
        work = _Work(world, context.idempotency_key, context.stream)
        try:
            async with asyncio.timeout(_SECONDS):
                return work.unechoed(await perform(work, effect), effect)
        except TimeoutError:
            away = errors.Unavailable(f"no answer within {_SECONDS:g} s", hint="it is tried again")
            return messages.Failed(effect.order, _unknown(responses.unperformed(away)))
        except errors.FairleadError as error:
            return messages.Failed(effect.order, responses.unperformed(error))

    return performed


class _Compared(NamedTuple):
    """What is there, held against what is declared."""

    finder: Finder
    planned: Planned
    given: str
    shown: Shown


@dataclass(frozen=True, slots=True)
class _Work:
    """One effect being performed."""

    world: ResourcePorts
    key: str
    stream: StreamName

    def unechoed(self, answer: object, effect: Any) -> object:
        """Without the secrets that the API repeats in what it says."""
        failure = getattr(answer, "failure", None)
        if not isinstance(answer, messages.Failed | messages.Polled) or failure is None:
            return answer
        declared = getattr(effect, "declared", None)
        named = references.names(declared.properties) if declared else _named(effect)
        message = failure.message
        for name in named:
            with contextlib.suppress(errors.FairleadError):
                message = _without(message, self.world.secret(name))
        return replace(answer, failure=replace(failure, message=message))

    async def read(self, effect: messages.Read) -> object:
        if not effect.compares:
            return await self._looked(effect)
        found = await self._compared(effect.declared, effect.last)
        if isinstance(found, messages.Failure):
            return messages.Failed(effect.order, found)
        observation = found.planned.observation
        if self.world.noted is not None:
            told = await self.world.noted(found.finder, effect.declared, found.shown)
            observation = replace(observation, shown=self.world.seal.digest(told))
        return messages.Seen(effect.order, observation, found.given)

    async def _looked(self, effect: messages.Read) -> object:
        told = effect.declared
        shown = await self._finder(told.type, told.version, told.id).shown(told, effect.last)
        if isinstance(shown, messages.Failure):
            if shown.unknown:
                # Somebody was asked to look for it, and now wants it forgotten.
                return messages.Seen(effect.order, looked(None))
            return messages.Failed(effect.order, shown)
        given = shown.given if urls.is_unmade(told.id) else ""
        return messages.Seen(effect.order, looked(shown.observed), given)

    async def write(self, effect: messages.Write) -> object:
        told = effect.declared
        if not urls.is_unmade(told.id):
            return await self._written(effect)
        # A worker that left or died may have sent it: only the first knows that nobody did.
        first = await self.world.begin(self.stream, effect.order)
        try:
            answer = await self._written(effect, is_first=first)
        except errors.FairleadError as error:
            answer = messages.Failed(effect.order, responses.unperformed(error))
        if first or isinstance(answer, messages.Accepted):
            return answer
        failure = answer.failure if isinstance(answer, messages.Failed) else _BEGUN
        return messages.Failed(effect.order, replace(failure, unknown=True))

    async def _written(
        self, effect: messages.Write, *, is_first: bool = True
    ) -> messages.Accepted | messages.Outdated | messages.Failed:
        """Only what was decided: whatever changed since then is decided anew."""
        found = await self._compared(effect.declared, effect.last)
        if isinstance(found, messages.Failure):
            return messages.Failed(effect.order, found)
        plan, request = found.planned.observation.plan, found.planned.request
        if plan is None or request is None or plan.digest != effect.digest:
            return messages.Outdated(effect.order)
        if request.method == _POST:
            return await self._made(effect, found.finder, request, is_first=is_first)
        answer = await self._sent(effect.declared.version, request)
        if answer.status == HTTPStatus.PRECONDITION_FAILED:
            return messages.Outdated(effect.order)
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return messages.Failed(effect.order, found.finder.failure(answer))
        return messages.Accepted(effect.order, _operation(answer), answer.retry_after)

    async def _made(
        self, effect: messages.Write, finder: Finder, request: Request, *, is_first: bool
    ) -> messages.Accepted | messages.Failed:
        """By POST, which makes another one each time: sent once, or with a key that says so."""
        told, header = effect.declared, finder.model.type.repeat_header
        if not is_first and not header:
            return messages.Failed(effect.order, _BEGUN)
        headers = {}
        if header:
            first = effect.last.creation or effect.order
            headers[header] = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.stream} {first}"))
        asked = (_POST, request.url, told.version, request.body, headers, self.key)
        try:
            answer = await self.world.api.ask(Question(*asked))
        except errors.Unavailable as error:
            return messages.Failed(effect.order, _unknown(responses.unperformed(error)))
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            failure = finder.failure(answer)
            refused = HTTPStatus.BAD_REQUEST <= answer.status < HTTPStatus.INTERNAL_SERVER_ERROR
            if not refused or answer.status == HTTPStatus.REQUEST_TIMEOUT:
                failure = _unknown(failure)
            return messages.Failed(effect.order, failure)
        given = finder.given(told, answer)
        return messages.Accepted(effect.order, _operation(answer), answer.retry_after, given)

    async def delete(self, effect: messages.Delete) -> object:
        at = effect.given or effect.id
        finder = self._finder(effect.type, effect.version, at)
        finder.model.hooks.run(Occasion(Point.BEFORE_DELETE, effect.type, at))
        question = Question("DELETE", at, effect.version, correlation=self.key)
        answer = await self.world.api.ask(question)
        done = HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES
        if not done and not responses.is_absent(answer):
            return messages.Failed(effect.order, finder.failure(answer))
        return messages.Accepted(effect.order, _operation(answer), answer.retry_after)

    async def poll(self, effect: messages.Poll) -> object:
        at = Follow(effect.operation.style.value, effect.operation.url)
        answer = await self.world.api.follow(at, self.key)
        told = responses.polled(effect.order, at.style, answer)
        return told or messages.Failed(effect.order, responses.failure(answer))

    async def _compared(
        self, declared: messages.Declared, last: messages.LastApplied
    ) -> _Compared | messages.Failure:
        finder = self._finder(declared.type, declared.version, declared.id)
        if wrong := next(validation.mistakes(finder.model, declared.properties), None):
            # Who declared it had no description at hand: a plan, or a newer one was ingested.
            return messages.Failure(messages.ErrorClass.REFUSED, str(wrong))
        taken = await self._outputs(declared)
        if isinstance(taken, messages.Failure):
            return taken
        properties = references.completed(declared.properties, self.world.secret, taken)
        shown = await finder.shown(declared, last)
        if isinstance(shown, messages.Failure):
            return shown
        given = shown.given if urls.is_unmade(declared.id) else ""
        complete = replace(declared, properties=properties)
        known = replace(last, given=given or last.given)
        found = planned(finder.model, self.world.seal, complete, known, shown.observed)
        if found.request is None or shown.observed is None or not shown.etag:
            return _Compared(finder, found, given, shown)
        # The header is there where the body has none, and is what a condition is held against.
        named = msgspec.structs.replace(found.request, if_match=shown.etag)
        return _Compared(finder, Planned(found.observation, named), given, shown)

    async def _sent(self, version: str, request: Request) -> Answer:
        conditions = {"If-Match": request.if_match, "If-None-Match": request.if_none_match}
        headers = {name: said for name, said in conditions.items() if said}
        asked = (request.method, request.url, version, request.body, headers, self.key)
        return await self.world.api.ask(Question(*asked))

    async def _outputs(
        self, declared: messages.Declared
    ) -> Mapping[references.Output, Any] | messages.Failure:
        if declared.origin is not None and any(references.outputs(declared.properties)):
            # An object of a cluster has no right to what else we may read.
            return messages.Failure(messages.ErrorClass.REFUSED, "only files take outputs by id")
        return await outputs(self.world.api, self.world.model, declared, self.key)

    def _finder(self, type_: str, version: str, id_: str) -> Finder:
        """Nothing is asked for but resources of the type, whatever a row says."""
        model = self.world.model(type_, version)
        if not urls.fits(model.type.url, id_):
            raise errors.Rejected(
                f"not an id of {model.type.type}: {id_[:80]}", hint=f"as {model.type.url}"
            )
        return Finder(self.world.api, model, self.key)


def _named(effect: object) -> tuple[str, ...]:
    return effect.secrets if isinstance(effect, messages.Poll) else ()


def _without(message: str, secret: str) -> str:
    """Shorter ones say nothing, and stand in every other word; a message may end inside of one."""
    if len(secret) < _SHORTEST_SECRET:
        return message
    message = message.replace(secret, _HIDDEN)
    for length in range(len(secret) - 1, _SHORTEST_SECRET - 1, -1):
        if message.endswith(secret[:length]):
            return message[:-length] + _HIDDEN
    return message


def _unknown(failure: messages.Failure) -> messages.Failure:
    return replace(failure, unknown=True)


def _operation(answer: Answer) -> messages.Operation | None:
    told = answer.follow
    return None if told is None else messages.Operation(messages.Style(told.style), told.url)
