"""The agent: performs the operations of deployments by the builtin engine, beside the operator.

Whatever goes wrong is an answer, so that the machine tells the user and sets the pace.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from prometheus_client import registry

from fairlead import errors
from fairlead.areas.gitops.builtin import manifests
from fairlead.areas.gitops.builtin.engine import Builtin, Owner
from fairlead.areas.gitops.builtin.repositories import Repositories
from fairlead.areas.gitops.domain import messages
from fairlead.engine import outbox
from fairlead.kubernetes import api_errors, objects, rbac
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.controller.registration import ControllerContext, Registration
from fairlead.kubernetes.kinds import stream_key
from fairlead.kubernetes.messages import Subject
from fairlead.kubernetes.objects import Key
from fairlead.kubernetes.writes.write_lock import WriteLocks

_SECONDS = 240.0
_FOR_EVER = 1_000_000_000
_LONGEST_DELAY = timedelta(minutes=1)
_MOST_SAID = 2000
ENGINE = "builtin"


class Agent:
    """Performs while this process leads."""

    def __init__(self, client: Client, locks: WriteLocks, repositories: Repositories) -> None:
        self._client = client
        self._locks = locks
        self._repositories = repositories
        self._engine = Builtin(client)

    def handlers(self) -> outbox.Handlers:
        made: dict[type, Callable[[Any], Awaitable[object]]] = {
            messages.Gather: self._gather,
            messages.Render: self._render,
            messages.Apply: self._apply,
            messages.Remove: self._remove,
        }
        return {
            effect: outbox.Handler(
                self._answered(perform),
                timedelta(seconds=_SECONDS + 10),
                attempts=_FOR_EVER,
                longest_delay=_LONGEST_DELAY,
            )
            for effect, perform in made.items()
        }

    def _answered(
        self, perform: Callable[[Any], Awaitable[object]]
    ) -> Callable[[Any, outbox.EffectContext], Awaitable[object | None]]:
        async def performed(effect: Any, context: outbox.EffectContext) -> object:
            check_own(effect.subject, context)
            try:
                self._locks.check()
                async with asyncio.timeout(_SECONDS):
                    return await perform(effect)
            except TimeoutError:
                self._locks.check()
                return messages.Failed(effect.order, f"not done within {_SECONDS:g} s")
            except errors.FairleadError as error:
                self._locks.check()
                return messages.Failed(effect.order, f"{error.message}; {error.hint}"[:_MOST_SAID])

        return performed

    async def _gather(self, effect: messages.Gather) -> messages.Gathered:
        space = Key("", effect.subject.namespace)
        try:
            found = await self._client.get(rbac.NAMESPACES, space)
        except errors.NotFound:
            return messages.Gathered(effect.order, "", "", terminating=True)
        except errors.Unauthorised as error:
            said = error.__cause__
            if not isinstance(said, api_errors.StatusError) or said.code != HTTPStatus.FORBIDDEN:
                raise
            raise errors.Forbidden(
                f"the operator has no rights in this namespace: {effect.subject.namespace}",
                hint="bind the ClusterRole edit to its service account there",
            ) from error
        leaving = objects.is_deleting(found)
        return messages.Gathered(effect.order, objects.uid_of(found), ENGINE, terminating=leaving)

    async def _render(self, effect: messages.Render) -> messages.Rendered:
        at, found = await self._manifests(effect.subject, effect.intent)
        return messages.Rendered(effect.order, at, tuple(each.ref for each in found))

    async def _apply(self, effect: messages.Apply) -> messages.Applied:
        exact = messages.Intent(effect.intent.repo_url, effect.intent.path, effect.revision)
        _, found = await self._manifests(effect.subject, exact)
        owner = Owner(effect.subject.uid, effect.subject.namespace)
        async with self._locks.of(owner.uid):
            self._locks.check()
            done = await self._engine.apply(owner, found, effect.obsolete, dry=effect.dry)
        return messages.Applied(effect.order, done)

    async def _remove(self, effect: messages.Remove) -> messages.Removed:
        owner = Owner(effect.subject.uid, effect.subject.namespace)
        async with self._locks.of(owner.uid):
            self._locks.check()
            await self._engine.remove(owner, effect.inventory)
        return messages.Removed(effect.order)

    async def _manifests(
        self, subject: Subject, intent: messages.Intent
    ) -> tuple[str, Sequence[manifests.Manifest]]:
        at, files = await self._repositories.folder(
            intent.repo_url, intent.target_revision, intent.path
        )
        return at, await asyncio.to_thread(manifests.parsed, files, subject.namespace)


def check_own(subject: Subject, context: outbox.EffectContext) -> None:
    """A stream asks for the object that it stands for, whatever stands in the effect."""
    place = {"namespace": subject.namespace, "name": subject.name, "uid": subject.uid}
    if stream_key({"metadata": place}) != context.stream.partition("/")[2]:
        raise errors.Rejected(
            f"{context.stream} asks for another object: {subject.namespace}/{subject.name}",
            hint="discard the effect (fairlead outbox discard)",
        )


class AgentRegistrar:
    """Registers the agent, term after term; repositories stay between terms."""

    def __init__(self) -> None:
        self._repositories = Repositories()

    @property
    def collectors(self) -> Sequence[registry.Collector]:
        return ()

    @contextlib.asynccontextmanager
    async def registration(
        self, controller_context: ControllerContext
    ) -> AsyncIterator[Registration]:
        client, locks = controller_context.client, controller_context.write_locks
        agent = Agent(client, locks, self._repositories)
        yield Registration(agent.handlers())
