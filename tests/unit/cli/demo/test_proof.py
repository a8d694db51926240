"""The demo can fail: each claim is refused when it does not hold."""

import dataclasses
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fairlead._sample import depot, trip
from fairlead.cli.demo import proof, record, road, scene, story
from fairlead.engine import batch, library, messages
from fairlead.engine import machine as machines

NOW = datetime(2026, 1, 2, tzinfo=UTC)
PLAN = scene.Plan(Path("unused"), "demo1", 1)
TRIP = messages.stream_name("trip", "demo1-1")


@dataclasses.dataclass(frozen=True)
class Evidence:
    """Everything that the proof is given."""

    told: story.Told
    kept: proof.Kept
    seen: road.Tally


def test_a_sound_story_holds_every_claim() -> None:
    assert failed(evidence()) == []


def lose_an_event(given: Evidence) -> Evidence:
    events = [event for event in story_events() if (event.stream, event.seq) != (TRIP, 5)]
    return dataclasses.replace(given, told=told(events))


def repeat_an_event(given: Evidence) -> Evidence:
    events = story_events()
    return dataclasses.replace(given, told=told([*events, events[-1]]))


def lose_the_end(given: Evidence) -> Evidence:
    events = [event for event in story_events() if (event.stream, event.seq) != (PLAN.stream, 4)]
    return dataclasses.replace(given, told=told(events))


def spoil_a_state(given: Evidence) -> Evidence:
    view = dataclasses.replace(given.kept.streams[TRIP], data={"legs": 9})
    return keep(given, {**given.kept.streams, TRIP: view})


def leave_a_stream_open(given: Evidence) -> Evidence:
    view = dataclasses.replace(given.kept.streams[TRIP], ended_at=None)
    return keep(given, {**given.kept.streams, TRIP: view})


def lose_a_stream(given: Evidence) -> Evidence:
    return keep(given, {PLAN.stream: given.kept.streams[PLAN.stream]})


def leave_an_effect(given: Evidence) -> Evidence:
    return dataclasses.replace(given, kept=dataclasses.replace(given.kept, effects=1))


def drive_a_leg_twice(given: Evidence) -> Evidence:
    return dataclasses.replace(given, seen=road.Tally(keys=11, legs=10, asked=11))


def skip_a_leg(given: Evidence) -> Evidence:
    return dataclasses.replace(given, seen=road.Tally(keys=9, legs=9, asked=9))


def end_without_a_crash(given: Evidence) -> Evidence:
    return crash(given, ended_with=0)


def kill_an_idle_worker(given: Evidence) -> Evidence:
    return crash(given, held=0)


def kill_too_late(given: Evidence) -> Evidence:
    return crash(given, home_before=1)


def take_the_order_twice(given: Evidence) -> Evidence:
    return dataclasses.replace(given, told=dataclasses.replace(given.told, order_taken_twice=True))


@pytest.mark.parametrize(
    ("spoil", "claim"),
    [
        (lose_an_event, "none lost"),
        (repeat_an_event, "no sequence number repeated"),
        (lose_the_end, "none lost"),
        (spoil_a_state, "state equals its events"),
        (leave_a_stream_open, "came home"),
        (lose_a_stream, "came home"),
        (leave_an_effect, "outbox is empty"),
        (drive_a_leg_twice, "drove each once"),
        (skip_a_leg, "drove each once"),
        (end_without_a_crash, "was killed"),
        (kill_an_idle_worker, "was killed"),
        (kill_too_late, "was killed"),
        (take_the_order_twice, "taken once"),
    ],
)
def test_a_spoilt_story_is_told_as_such(spoil: Callable[[Evidence], Evidence], claim: str) -> None:
    found = failed(spoil(evidence()))

    assert any(claim in each for each in found), found


def test_events_of_other_streams_are_not_counted() -> None:
    before = told(story_events()).record.events
    other = dataclasses.replace(story_events()[0], stream=messages.stream_name("depot", "demo11"))

    assert told([*story_events(), other]).record.events == before


def failed(given: Evidence) -> list[str]:
    found = proof.findings(PLAN, given.told, given.kept, given.seen)
    assert len(found) == 7
    return [each.claim for each in found if each.against]


def evidence() -> Evidence:
    streams = {
        str(PLAN.stream): view(PLAN.stream, 4, "Done", {"trips": 1}),
        str(TRIP): view(TRIP, 12, "Home", {"legs": 10}),
    }
    return Evidence(told(story_events()), proof.Kept(streams, 0), road.Tally(10, 10, 11))


def told(events: list[library.EventView]) -> story.Told:
    repertoire = batch.Repertoire(machines.Machines((depot.DEPOT, trip.TRIP)))
    seen = record.Record(PLAN, repertoire, library.Place())
    seen.take(events)
    return story.Told(seen, 1.0, story.Crash(7, -signal.SIGKILL, 0, 1), order_taken_twice=False)


def crash(given: Evidence, **changes: int) -> Evidence:
    changed = dataclasses.replace(given.told.crash, **changes)
    return dataclasses.replace(given, told=dataclasses.replace(given.told, crash=changed))


def keep(given: Evidence, streams: dict[str, library.StreamView]) -> Evidence:
    return dataclasses.replace(given, kept=dataclasses.replace(given.kept, streams=streams))


def story_events() -> list[library.EventView]:
    """One trip of ten legs, from its order to its return."""
    ordered = {"depot": "demo1", "trips": 1, "legs": 10, "at_once": 64}
    departed = {"depot": str(PLAN.stream), "trip": 1, "legs": 10}
    return [
        event(PLAN.stream, 1, "Ordered", ordered),
        event(PLAN.stream, 2, "Sent", {"trip": 1}),
        event(TRIP, 1, "Departed", departed),
        *(event(TRIP, leg + 1, "LegDriven", {"leg": leg}) for leg in range(1, 11)),
        event(TRIP, 12, "Arrived", {"legs": 10}),
        event(PLAN.stream, 3, "Returned", {"trip": 1}),
        event(PLAN.stream, 4, "Closed", {"trips": 1}),
    ]


def event(
    stream: messages.StreamName, seq: int, type_: str, data: dict[str, Any]
) -> library.EventView:
    return library.EventView(stream, seq, type_, 1, data, f"{seq}", NOW, library.Place(0, seq))


def view(
    name: messages.StreamName, version: int, state: str, data: dict[str, Any]
) -> library.StreamView:
    kind = name.partition("/")[0]
    return library.StreamView(1, name, kind, version, state, data, NOW, NOW, NOW)
