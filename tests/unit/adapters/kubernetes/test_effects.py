"""Effects on objects: what is written, and above all what is not."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from fairlead.adapters.kubernetes import credentials, rights
from fairlead.adapters.kubernetes.apply import Applier
from fairlead.adapters.kubernetes.cache import Cache
from fairlead.adapters.kubernetes.client import Client
from fairlead.adapters.kubernetes.config import Connection
from fairlead.adapters.kubernetes.effects import Held, Performer
from fairlead.adapters.kubernetes.events import Recorder
from fairlead.adapters.kubernetes.objects import Object
from fairlead.adapters.kubernetes.schema import CRDS
from fairlead.adapters.kubernetes.turns import Turns
from fairlead.domain.intents import (
    ApplyChildren,
    Condition,
    Confirm,
    PublishStatus,
    Refuse,
    Subject,
    TellEvent,
)
from fairlead.engine.messages import StreamName
from fairlead.engine.outbox import Context
from fairlead.errors import Conflict
from tests.contract.kubernetes_samples import deployment
from tests.fakes.kubernetes.server import Fault, Server
from tests.operator.flotilla import CONFIG_MAPS, FLOTILLAS, KIND, Plan, flotilla, wanted

FLEETS = rights.resource(FLOTILLAS)
SHIPS = rights.resource(CONFIG_MAPS)


class Lead:
    """A term that a test ends."""

    lost = False

    def check(self) -> None:
        if self.lost:
            raise Conflict("no longer the leader, term: 1", hint="the next leader goes on")


@dataclasses.dataclass
class Harbour:
    """A performer with its caches, and one flotilla in them."""

    performer: Performer
    objects: Cache
    ships: Cache
    lead: Lead
    made: Object
    turns: Turns
    server: Server | None = None

    @property
    def subject(self) -> Subject:
        return KIND.subject(self.made)

    def apply(self, round_: int, cargo: str = "tea") -> ApplyChildren:
        return ApplyChildren(self.subject, round_, wanted(self.subject, Plan(1, 3, cargo)))

    def publish(self, round_: int, phase: str = "Ready") -> PublishStatus:
        ready = Condition("Ready", status=True, reason="Launched")
        return PublishStatus(self.subject, round_, 1, {"phase": phase}, (ready,))

    def rewrite(self, metadata: Object | None = None, **fields: Any) -> None:
        """What the watch shows of another's hand."""
        meta = {**self.made["metadata"], **(metadata or {}), "resourceVersion": "999999"}
        self.objects.put({**self.made, **fields, "metadata": meta})

    async def perform(self, effect: Any, attempt: int = 1) -> object | None:
        context = Context(StreamName("flotilla/x"), "key", attempt)
        return await self.performer.handlers()[type(effect)].perform(effect, context)

    @property
    def writes(self) -> int:
        assert self.server is not None
        return sum(request.is_write for request in self.server.requests)


def moored(client: Client, made: Object) -> Harbour:
    objects, ships = Cache(FLEETS), Cache(SHIPS)
    objects.put(made)
    held = Held(objects, {("v1", "ConfigMap"): ships}, Applier(client, objects))
    lead = Lead()
    turns = Turns(lead)
    performer = Performer(
        client,
        {str(FLOTILLAS): held},
        Recorder(client, "test"),
        turns,
        lambda: datetime(2026, 1, 1, tzinfo=UTC),
    )
    return Harbour(performer, objects, ships, lead, made, turns)


@pytest.fixture
async def harbour() -> AsyncIterator[Harbour]:
    async with (
        Server().running() as server,
        Client(Connection(server.url, credentials.Fixed())) as client,
    ):
        await client.create(CRDS, rights.definition(KIND))
        made = await client.create(FLEETS, flotilla("default", "north"))
        server.requests.clear()
        yield dataclasses.replace(moored(client, made), server=server)


async def test_children_are_made_once_and_confirmed(harbour: Harbour) -> None:
    first = await harbour.perform(harbour.apply(1))
    again = await harbour.perform(harbour.apply(2))

    assert (first, again) == (Confirm(1), Confirm(2))
    assert harbour.writes == 3


async def test_an_old_round_is_dropped(harbour: Harbour) -> None:
    await harbour.perform(harbour.apply(2, "silk"))

    late = await harbour.perform(harbour.apply(1, "tea"))

    assert late is None
    assert {ship["data"]["cargo"] for ship in harbour.ships.all()} == {"silk"}


async def test_a_round_before_that_of_the_status_is_dropped(harbour: Harbour) -> None:
    harbour.rewrite(status={"round": 5})

    late = await harbour.perform(harbour.apply(4))
    await harbour.perform(harbour.publish(4, "Building"))

    assert late is None
    assert harbour.writes == 0


async def test_a_round_written_by_a_hand_stops_nothing(harbour: Harbour) -> None:
    await harbour.perform(harbour.apply(1))
    harbour.rewrite(status={"round": 1_000_000})

    answer = await harbour.perform(harbour.apply(2, "silk"))

    assert answer == Confirm(2)


async def test_a_status_that_differs_in_its_round_only_is_not_written(harbour: Harbour) -> None:
    for round_ in (1, 2, 3):
        await harbour.perform(harbour.publish(round_))

    assert harbour.writes == 1


async def test_nothing_is_written_to_an_object_that_is_going(harbour: Harbour) -> None:
    harbour.rewrite(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})

    answer = await harbour.perform(harbour.apply(1))
    await harbour.perform(harbour.publish(1))

    assert answer is None
    assert harbour.writes == 0


async def test_nothing_is_written_for_a_namesake(harbour: Harbour) -> None:
    other = dataclasses.replace(harbour.subject, uid="another")

    answer = await harbour.perform(dataclasses.replace(harbour.apply(1), subject=other))
    await harbour.perform(TellEvent(other, "Hello", "nobody"))

    assert answer is None
    assert harbour.writes == 0


async def test_nothing_is_written_after_the_term(harbour: Harbour) -> None:
    harbour.lead.lost = True

    for effect in (harbour.apply(1), harbour.publish(1)):
        with pytest.raises(Conflict, match="no longer the leader"):
            await harbour.perform(effect)

    assert harbour.writes == 0


async def test_a_kind_of_child_that_is_not_declared_is_refused(harbour: Harbour) -> None:
    effect = ApplyChildren(harbour.subject, 1, (deployment("default", "north"),))

    answer = await harbour.perform(effect)

    assert isinstance(answer, Refuse)
    assert "Deployment" in answer.message


async def test_what_may_pass_is_tried_again_before_the_machine_hears(harbour: Harbour) -> None:
    assert harbour.server is not None
    harbour.server.faults.append(Fault(409, 2, reason="Conflict"))

    with pytest.raises(Conflict):
        await harbour.perform(harbour.apply(1), attempt=5)
    answer = await harbour.perform(harbour.apply(1), attempt=6)

    assert isinstance(answer, Refuse)
    assert answer.reason == "Conflict"


@contextlib.asynccontextmanager
async def silent(heard: asyncio.Event) -> AsyncIterator[str]:
    """A server that takes requests and never answers."""

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        heard.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_lost_term_breaks_off_what_hangs() -> None:
    heard = asyncio.Event()
    made = flotilla("default", "north")
    made["metadata"] |= {"uid": "u1", "resourceVersion": "1", "generation": 1}
    async with silent(heard) as url, Client(Connection(url, credentials.Fixed())) as client:
        harbour = moored(client, made)
        task = asyncio.create_task(harbour.perform(harbour.apply(1)))
        await heard.wait()

        harbour.lead.lost = True
        harbour.turns.abandon()

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(task), 5)
        assert task.done()
