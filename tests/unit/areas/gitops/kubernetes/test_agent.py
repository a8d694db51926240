"""What the agent answers: whatever goes wrong is told to the machine, with what to do."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.gitops.builtin.repositories import Repositories
from fairlead.areas.gitops.domain import messages
from fairlead.areas.gitops.kubernetes.agent import Agent
from fairlead.engine.messages import StreamName
from fairlead.engine.outbox import EffectContext
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client, named
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.messages import Subject
from fairlead.kubernetes.objects import uid_of
from fairlead.kubernetes.writes.write_lock import WriteLocks
from tests.fakes.kubernetes.server import Fault, Server

SUBJECT = Subject("gitopsdeployments.managed-gitops.redhat.com", "team-a", "shop", "uid")
OPERATION = messages.Operation("op", "builtin", "ns-uid", "uid", messages.APPLICATION)
STREAM = "gitops-deployment/team-a/shop/uid"


class Term:
    """A term as leader that may end."""

    is_over = False

    def check(self) -> None:
        if self.is_over:
            raise errors.Unavailable("the term is over", hint="another leads")


class Rig:
    """An agent before the fake API server."""

    def __init__(self, server: Server, client: Client) -> None:
        self.server, self.client, self.term = server, client, Term()
        self.handlers = Agent(client, WriteLocks(self.term), Repositories()).handlers()

    async def perform(self, effect: Any, stream: str = STREAM) -> object | None:
        context = EffectContext(StreamName(stream), "key", 1)
        return await self.handlers[type(effect)].perform(effect, context)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with (
        Server().running() as server,
        Client(Connection(server.url, credentials.Fixed())) as client,
    ):
        yield Rig(server, client)


async def test_whose_namespace_it_is_is_gathered(rig: Rig) -> None:
    space = named(rbac.NAMESPACES, {"metadata": {"name": "team-a"}})
    made = await rig.client.create(rbac.NAMESPACES, space)

    found = await rig.perform(messages.Gather(1, SUBJECT))

    assert found == messages.Gathered(1, uid_of(made), "builtin")


async def test_a_namespace_that_is_gone_is_told_as_one_that_is_going(rig: Rig) -> None:
    found = await rig.perform(messages.Gather(1, SUBJECT))

    assert found == messages.Gathered(1, "", "", terminating=True)


async def test_missing_rights_are_told_with_what_to_do(rig: Rig) -> None:
    rig.server.faults.append(Fault(403, times=9, reason="Forbidden"))

    found = await rig.perform(messages.Gather(1, SUBJECT))

    assert isinstance(found, messages.Failed)
    assert "no rights in this namespace: team-a; bind the ClusterRole edit" in found.error


async def test_a_failure_is_an_answer_with_its_hint(rig: Rig) -> None:
    intent = messages.Intent("ssh://git.example/shop", "deploy")

    found = await rig.perform(messages.Render(3, OPERATION, SUBJECT, intent))

    assert isinstance(found, messages.Failed)
    assert found.order == 3
    assert found.error.endswith("; use a path, http:// or https://")


async def test_a_removal_of_nothing_is_done(rig: Rig) -> None:
    assert await rig.perform(messages.Remove(4, OPERATION, SUBJECT, ())) == messages.Removed(4)


async def test_a_stream_asks_for_its_own_object_only(rig: Rig) -> None:
    with pytest.raises(errors.Rejected, match="asks for another object: team-a/shop"):
        await rig.perform(messages.Gather(1, SUBJECT), "gitops-deployment/team-b/shop/uid")


async def test_nothing_is_answered_once_the_term_is_over(rig: Rig) -> None:
    rig.term.is_over = True

    with pytest.raises(errors.Unavailable, match="the term is over"):
        await rig.perform(messages.Remove(4, OPERATION, SUBJECT, ()))
