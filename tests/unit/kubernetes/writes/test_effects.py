"""Effects on objects: what is written, and above all what is not."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from fairlead.engine.messages import StreamName
from fairlead.engine.outbox import EffectContext
from fairlead.errors import Conflict, Rejected
from fairlead.kubernetes import rbac
from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.messages import (
    ApplyChildren,
    Condition,
    Confirm,
    PublishStatus,
    RecordEvent,
    Refuse,
    Subject,
)
from fairlead.kubernetes.objects import Key, Object
from fairlead.kubernetes.schema import CRDS
from fairlead.kubernetes.writes.apply import Applier
from fairlead.kubernetes.writes.effects import Held, Performer
from fairlead.kubernetes.writes.events import EVENTS, Recorder
from fairlead.kubernetes.writes.write_lock import WriteLocks
from tests.contract.kubernetes_samples import deployment
from tests.fakes.kubernetes.server import Fault, Server
from tests.operator.sample_kind import BUNDLES, CONFIG_MAPS, KIND, Plan, bundle, wanted

GADGETS = CONFIG_MAPS


class Lead:
    """A term that a test ends."""

    lost = False

    def check(self) -> None:
        if self.lost:
            raise Conflict("no longer the leader, term: 1", hint="the next leader continues")


@dataclasses.dataclass
class PerformerHarness:
    """A performer with its caches, and one bundle in them."""

    performer: Performer
    objects: Cache
    gadgets: Cache
    lead: Lead
    made: Object
    write_locks: WriteLocks
    recorder: Recorder
    client: Client
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
        place = {"namespace": "default", "name": effect.subject.name, "uid": effect.subject.uid}
        context = EffectContext(KIND.stream({"metadata": place}), "key", attempt)
        return await self.performer.handlers()[type(effect)].perform(effect, context)

    async def status(self) -> Object:
        found = await self.client.get(BUNDLES, Key("default", "north"))
        status: Object = found["status"]
        return status

    async def events(self) -> list[Object]:
        return [one async for one in self.client.each(EVENTS)]

    @property
    def writes(self) -> int:
        assert self.server is not None
        return sum(request.is_write for request in self.server.requests)


def moored(client: Client, made: Object) -> PerformerHarness:
    objects, gadgets = Cache(BUNDLES), Cache(GADGETS)
    objects.put(made)
    held = Held(objects, {("v1", "ConfigMap"): gadgets}, Applier(client, objects))
    lead = Lead()
    write_locks, recorder = WriteLocks(lead), Recorder(client, "test")
    performer = Performer(client, {str(BUNDLES): held}, recorder, write_locks, now)
    return PerformerHarness(performer, objects, gadgets, lead, made, write_locks, recorder, client)


def unbound_performer(harness: PerformerHarness) -> Performer:
    applier = Applier(harness.client, harness.objects)
    held = Held(harness.objects, {}, applier, bound=False)
    return Performer(
        harness.client, {str(BUNDLES): held}, harness.recorder, harness.write_locks, now
    )


def now() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def harness() -> AsyncIterator[PerformerHarness]:
    async with (
        Server().running() as server,
        Client(Connection(server.url, credentials.Fixed())) as client,
    ):
        await client.create(CRDS, rbac.definition(KIND))
        made = await client.create(BUNDLES, bundle("default", "north"))
        server.requests.clear()
        yield dataclasses.replace(moored(client, made), server=server)


async def test_children_are_made_once_and_confirmed(harness: PerformerHarness) -> None:
    first = await harness.perform(harness.apply(1))
    again = await harness.perform(harness.apply(2))

    assert (first, again) == (Confirm(1), Confirm(2))
    assert harness.writes == 3


async def test_an_old_round_is_dropped(harness: PerformerHarness) -> None:
    await harness.perform(harness.apply(2, "silk"))

    late = await harness.perform(harness.apply(1, "tea"))

    assert late is None
    assert {gadget["data"]["cargo"] for gadget in harness.gadgets.all()} == {"silk"}


async def test_a_round_before_that_of_the_status_is_dropped(harness: PerformerHarness) -> None:
    harness.rewrite(status={"round": 5})

    late = await harness.perform(harness.apply(4))
    await harness.perform(harness.publish(4, "Building"))

    assert late is None
    assert harness.writes == 0


async def test_a_round_written_by_a_hand_stops_nothing(harness: PerformerHarness) -> None:
    await harness.perform(harness.apply(1))
    harness.rewrite(status={"round": 1_000_000})

    answer = await harness.perform(harness.apply(2, "silk"))

    assert answer == Confirm(2)


async def test_a_kind_whose_machine_takes_up_no_round_is_not_bound_by_that_of_the_status(
    harness: PerformerHarness,
) -> None:
    """A store from a backup is behind the status, and its machine still shows where it is."""
    unbound = unbound_performer(harness)
    key = Key("default", "north")
    harness.objects.put(
        await harness.client.patch(BUNDLES, key, {"status": {"round": 5}}, subresource="status")
    )

    shown = await unbound.publish(harness.publish(2, "Building"))
    late = await unbound.publish(harness.publish(1, "Empty"))

    assert (shown, late) == (True, False)
    assert (await harness.status())["phase"] == "Building"


async def test_what_stands_beside_is_made_of_the_object_as_it_is_then(
    harness: PerformerHarness,
) -> None:
    shown = await harness.performer.publish(
        harness.publish(1), lambda live: {"voyages": live["metadata"]["generation"]}
    )

    assert shown
    assert (await harness.status())["voyages"] == 1


async def test_a_refused_status_is_told_by_an_event(harness: PerformerHarness) -> None:
    assert harness.server is not None
    harness.server.faults.append(Fault(400, 1, reason="BadRequest"))

    shown = await harness.performer.publish(harness.publish(1))
    await harness.recorder.flush()

    assert not shown
    assert [one["reason"] for one in await harness.events()] == ["StatusRefused"]


async def test_topics_of_one_reason_are_events_of_their_own(harness: PerformerHarness) -> None:
    for topic in ("10", "50", "50"):
        told = RecordEvent(harness.subject, "StepReached", f"weight is {topic} %", topic=topic)
        await harness.perform(told)
    await harness.recorder.flush()

    notes = sorted(one["note"] for one in await harness.events())
    assert notes == ["weight is 10 %", "weight is 50 %"]


async def test_a_status_that_differs_in_its_round_only_is_not_written(
    harness: PerformerHarness,
) -> None:
    for round_ in (1, 2, 3):
        await harness.perform(harness.publish(round_))

    assert harness.writes == 1


async def test_nothing_is_written_to_an_object_that_is_going(harness: PerformerHarness) -> None:
    harness.rewrite(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})

    answer = await harness.perform(harness.apply(1))
    await harness.perform(harness.publish(1))

    assert answer is None
    assert harness.writes == 0


async def test_nothing_is_written_for_a_namesake(harness: PerformerHarness) -> None:
    other = dataclasses.replace(harness.subject, uid="another")

    answer = await harness.perform(dataclasses.replace(harness.apply(1), subject=other))
    await harness.perform(RecordEvent(other, "Hello", "nobody"))

    assert answer is None
    assert harness.writes == 0


async def test_nothing_is_written_after_the_term(harness: PerformerHarness) -> None:
    harness.lead.lost = True

    for effect in (harness.apply(1), harness.publish(1)):
        with pytest.raises(Conflict, match="no longer the leader"):
            await harness.perform(effect)

    assert harness.writes == 0


async def test_a_kind_of_child_that_is_not_declared_is_refused(harness: PerformerHarness) -> None:
    effect = ApplyChildren(harness.subject, 1, (deployment("default", "north"),))

    answer = await harness.perform(effect)

    assert isinstance(answer, Refuse)
    assert "Deployment" in answer.message


async def test_what_may_pass_is_tried_again_before_the_machine_hears(
    harness: PerformerHarness,
) -> None:
    assert harness.server is not None
    harness.server.faults.append(Fault(409, 2, reason="Conflict"))

    with pytest.raises(Conflict):
        await harness.perform(harness.apply(1), attempt=5)
    answer = await harness.perform(harness.apply(1), attempt=6)

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
    made = bundle("default", "north")
    made["metadata"] |= {"uid": "u1", "resourceVersion": "1", "generation": 1}
    async with silent(heard) as url, Client(Connection(url, credentials.Fixed())) as client:
        harness = moored(client, made)
        task = asyncio.create_task(harness.perform(harness.apply(1)))
        await heard.wait()

        harness.lead.lost = True
        harness.write_locks.abandon()

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(task), 5)
        assert task.done()


async def test_a_stream_writes_for_the_object_it_stands_for_and_no_other(
    harness: PerformerHarness,
) -> None:
    context = EffectContext(StreamName("bundle/elsewhere/north/u9"), "key", 1)
    handlers = harness.performer.handlers()
    before = harness.writes

    for effect in (harness.apply(1), harness.publish(1)):
        with pytest.raises(Rejected, match="asks for another object: default/north"):
            await handlers[type(effect)].perform(effect, context)

    assert harness.writes == before
