"""Whether the story went as told: every claim held against what is kept and what was seen."""

import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from fairlead.cli.demo import road, scene, story
from fairlead.engine import library
from fairlead.engine.store import protocol

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim, and what speaks against it; nothing where it holds."""

    claim: str
    against: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """What the store holds of the story at its end."""

    streams: Mapping[str, library.StreamView]
    effects: int


def kept(session: protocol.Session, plan: scene.Plan) -> Kept:
    left = library.effects(session, limit=_PAGE)
    streams = {str(view.name): view for view in _streams(session) if plan.owns(view.name)}
    return Kept(streams, sum(1 for each in left if plan.owns(each.stream)))


def findings(plan: scene.Plan, told: story.Told, now: Kept, seen: road.Tally) -> list[Finding]:
    return [
        _home(plan, told, now),
        _crash(plan, told),
        _sequences(told, now),
        _states(told, now),
        _outside(plan, seen),
        _left(now),
        Finding(
            "the order was sent twice under one id and taken once",
            "it was taken twice" if told.order_taken_twice else "",
        ),
    ]


def _home(plan: scene.Plan, told: story.Told, now: Kept) -> Finding:
    ended = sum(1 for view in now.streams.values() if view.ended_at is not None)
    claim = f"all {plan.trips} trips came home, and the depot closed"
    if ended == len(now.streams) == plan.trips + 1 and told.record.home == plan.trips:
        return Finding(claim)
    return Finding(claim, f"{ended} of {plan.trips + 1} streams ended")


def _crash(plan: scene.Plan, told: story.Told) -> Finding:
    crash = told.crash
    claim = (
        f"worker {crash.pid} was killed with {crash.home_before} trips home and {crash.held} legs"
        " on the road, and another finished them"
    )
    if crash.ended_with != -signal.SIGKILL:
        return Finding(claim, f"it ended with code {crash.ended_with}")
    if crash.home_before == plan.trips or not crash.held:
        return Finding(claim, "nothing was under way when it was killed")
    return Finding(claim)


def _sequences(told: story.Told, now: Kept) -> Finding:
    claim = f"{told.record.events} events, none lost, no sequence number repeated or skipped"
    if told.record.faults:
        return Finding(claim, told.record.faults[0])
    kept_last = {name: view.version for name, view in now.streams.items()}
    if kept_last != told.record.seqs:
        return Finding(claim, "the feed and the streams disagree about the last numbers")
    return Finding(claim)


def _states(told: story.Told, now: Kept) -> Finding:
    """Each state row against the events folded again."""
    claim = "every stream's state equals its events, folded again from the first"
    for name, state in told.record.states.items():
        view = now.streams.get(name)
        if view is None or (view.state, view.data) != (
            type(state).__name__,
            msgspec.to_builtins(state),
        ):
            return Finding(claim, f"{name} differs")
    return Finding(claim)


def _outside(plan: scene.Plan, seen: road.Tally) -> Finding:
    legs = plan.trips * scene.LEGS
    claim = (
        f"the outside was asked {seen.asked} times for {legs} legs and drove each once;"
        f" {seen.again} asked again after the crash were known by their key"
    )
    if seen.keys == seen.legs == legs:
        return Finding(claim)
    return Finding(claim, f"it saw {seen.keys} keys and {seen.legs} legs")


def _left(now: Kept) -> Finding:
    claim = "the outbox is empty: nothing waits, nothing lies dead"
    return Finding(claim, f"{now.effects} effects are left" if now.effects else "")


def _streams(session: protocol.Session) -> Iterator[library.StreamView]:
    before = None
    while page := library.streams(session, library.StreamFilter(before=before, limit=_PAGE)):
        yield from page
        before = page[-1].number
