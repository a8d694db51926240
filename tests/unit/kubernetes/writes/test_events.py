"""Telling what happened: once, then counted, and never too much."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Object, key_of
from fairlead.kubernetes.writes.events import EVENTS, Count, Create, Journal, Occurrence, Recorder
from tests.contract.kubernetes_samples import widget
from tests.fakes.kubernetes.hand_clock import HandClock
from tests.fakes.kubernetes.server import Fault, Server


def about(name: str = "a", uid: str = "u1") -> Object:
    obj = widget("default", name)
    obj["metadata"]["uid"] = uid
    return obj


def happened(reason: str = "Shifted", note: str = "to 10 %", uid: str = "u1") -> Occurrence:
    return Occurrence(about(uid=uid), reason, note)


def test_the_same_again_is_counted_not_repeated() -> None:
    journal = Journal()

    told = [journal.note(happened(note=f"try {n}"), f"e{n}", now=n * 20.0) for n in range(5)]

    assert told == [Create("e0"), None, Count("e0", 3), None, Count("e0", 5)]


def test_other_reasons_and_objects_are_events_of_their_own() -> None:
    journal = Journal()

    assert journal.note(happened("Shifted"), "a", 0) == Create("a")
    assert journal.note(happened("RolledBack"), "b", 0) == Create("b")
    assert journal.note(happened("Shifted", uid="u2"), "c", 0) == Create("c")


def test_a_series_ends_with_a_long_silence() -> None:
    journal = Journal()
    journal.note(happened(), "a", 0)

    assert journal.note(happened(), "b", 361) == Create("b")


def test_one_chatty_object_is_held_to_its_budget() -> None:
    journal = Journal()

    told = [journal.note(happened(f"Reason{n}"), f"e{n}", 0) for n in range(100)]
    other = journal.note(happened("Reason", uid="u2"), "other", 0)
    later = journal.note(happened("Later"), "later", 31)

    assert sum(one is not None for one in told) == 25
    assert other == Create("other")
    assert later == Create("later")


class World:
    def __init__(self, server: Server, client: Client) -> None:
        self.server = server
        self.client = client
        self.clock = HandClock()
        self.recorder = Recorder(client, "pod-1", self.clock.clock(), room=10)

    async def events(self) -> list[Any]:
        return [event async for event in self.client.each(EVENTS)]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with Server().running() as server:
        connection = Connection(server.url, credentials.Fixed())
        async with Client(connection, manager="operator") as client:
            yield World(server, client)


async def test_an_event_names_its_object_reason_and_reporter(world: World) -> None:
    world.recorder.record(
        Occurrence(about(), "RolledBack", "x" * 5000, kind="Warning", action="RollBack")
    )
    await world.recorder.flush()

    (event,) = await world.events()
    assert event["reason"] == "RolledBack"
    assert event["type"] == "Warning"
    assert event["action"] == "RollBack"
    assert len(event["note"]) == 1024
    assert event["regarding"]["uid"] == "u1"
    assert event["reportingController"] == "fairlead.dev/operator"
    assert event["reportingInstance"] == "pod-1"
    assert event["eventTime"].endswith("Z")


async def test_a_repeat_becomes_a_series(world: World) -> None:
    for _ in range(4):
        world.recorder.record(happened())
        await world.recorder.flush()
        await world.clock.advance(40)

    (event,) = await world.events()
    assert event["series"]["count"] == 4


async def test_an_event_that_is_gone_is_told_anew(world: World) -> None:
    world.recorder.record(happened())
    await world.recorder.flush()
    for event in await world.events():
        await world.client.delete(EVENTS, key_of(event))
    await world.clock.advance(40)

    world.recorder.record(happened())
    await world.recorder.flush()

    assert len(await world.events()) == 1


async def test_a_refused_event_does_not_stop_the_next(world: World) -> None:
    world.server.faults.append(Fault(403))

    world.recorder.record(happened("First"))
    world.recorder.record(happened("Second"))
    await world.recorder.flush()

    assert [event["reason"] for event in await world.events()] == ["Second"]


async def test_without_room_the_oldest_is_dropped(world: World) -> None:
    for number in range(15):
        world.recorder.record(happened(f"Reason{number}"))
    await world.recorder.flush()

    reasons = {event["reason"] for event in await world.events()}
    assert reasons == {f"Reason{number}" for number in range(5, 15)}


async def test_the_recorder_sends_as_it_is_told(world: World) -> None:
    sent = asyncio.Event()
    world.server.store.listeners.append(lambda _: sent.set())
    task = asyncio.create_task(world.recorder.run())

    world.recorder.record(happened())
    async with asyncio.timeout(30):
        await sent.wait()

    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
