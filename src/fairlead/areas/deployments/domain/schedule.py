"""A schedule: stored and edited like the other definitions, and woken by a timer at its times.

            Store                 Due at its time: a run each        ReportTarget
ABSENT ───────────────► ARMED ───────────────────────────► AIMING ─────────────────► a trigger
   ▲                    │  ▲  Due late: the catch-up policy   │
   └────── Remove ──────┘  └──────────────────────────────────┘ RefuseRun

There is one timer, for the next time. Which times have come since the last decision is counted from
what is kept, so a long downtime or a clock that was set forward is one decision; and none that was
decided comes again, whatever the clock does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, assert_never

from fairlead.areas.deployments.domain import definition
from fairlead.areas.deployments.domain.definition import Remove, Removed, Store, Stored
from fairlead.areas.deployments.domain.spec import Flag
from fairlead.areas.deployments.domain.trigger import messages as trigger
from fairlead.engine import machine, recurrence
from fairlead.engine.messages import CancelTimer, Decision, Send, SetTimer

NAME = "schedule"
GRACE = timedelta(minutes=1)
"""What is taken so late was on time: a worker restarts within it."""

_DUE = "due"
_MOST_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class Due:
    """Command, of the timer: this time has come."""

    at: datetime


@dataclass(frozen=True, slots=True)
class ReportTarget:
    """Command, the answer to AimRun: what is deployed from where."""

    at: datetime
    source: trigger.Source
    target: trigger.Target


@dataclass(frozen=True, slots=True)
class RefuseRun:
    """Command, the answer to AimRun: nothing can be deployed."""

    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Armed:
    """Event: times count from now on, and this one is the next."""

    schedule: str
    since: datetime
    next: datetime | None


@dataclass(frozen=True, slots=True)
class Fired:
    """Event: these times are deployed at, and so many others were passed over."""

    runs: tuple[datetime, ...]
    missed: int
    until: datetime
    next: datetime | None


@dataclass(frozen=True, slots=True)
class RunStarted:
    """Event: this trigger deploys for a time."""

    at: datetime
    trigger: str


@dataclass(frozen=True, slots=True)
class RunRefused:
    """Event: for a time, nothing is deployed."""

    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class AimRun:
    """Effect: say where the push target's repository and file are now."""

    at: datetime
    target: str
    ref: str
    commit: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """State: what is stored, up to when all times are decided, and who is under way."""

    version: int = 0
    content: dict[str, Any] = field(default_factory=dict)
    by: str = ""
    present: bool = False
    name: str = ""
    since: datetime | None = None
    next: datetime | None = None
    aiming: tuple[datetime, ...] = ()
    last: str = ""
    """The newest trigger."""

    note: str = ""
    """What was passed over or refused last."""


Command = Store | Remove | Due | ReportTarget | RefuseRun
Event = Stored | Removed | Armed | Fired | RunStarted | RunRefused


def decide(state: Schedule, command: Command, now: datetime) -> Decision:
    match command:
        case Store() | Remove():
            return _edited(state, command, now)
        case Due(at):
            return _due(state, at, now) if state.present and at == state.next else Decision()
        case ReportTarget(at) | RefuseRun(at) if at not in state.aiming:
            return Decision()
        case ReportTarget(at, source, target):
            name = f"{state.name}:{at:%Y%m%dT%H%MZ}"
            cause, by = f"schedule {state.name}, {at:%Y-%m-%d %H:%M} UTC", f"schedule:{state.by}"
            flags = tuple(Flag(each) for each in state.content.get("flags", ()))
            start = trigger.Start(name, source, (target,), cause, by, flags)
            send = Send(trigger.trigger_stream(name), start)
            return Decision((RunStarted(at, name),), sends=(send,))
        case RefuseRun(at, reason):
            return Decision((RunRefused(at, reason),))
        case unreachable:
            assert_never(unreachable)


def evolve(state: Schedule, event: Event) -> Schedule:
    match event:
        case Stored(version, content, by):
            return replace(state, version=version, content=content, by=by, present=True)
        case Removed(version, by):
            gone = replace(state, version=version, by=by, present=False)
            return replace(gone, next=None, aiming=())
        case Armed(name, since, following):
            return replace(state, name=name, since=since, next=following)
        case Fired(runs, missed, until, following):
            note = f"{missed} passed over until {until:%Y-%m-%d %H:%M} UTC" if missed else ""
            aiming = (*state.aiming, *runs)
            return replace(state, since=until, next=following, aiming=aiming, note=note)
        case RunStarted(at, name):
            return replace(state, aiming=_without(state, at), last=name)
        case RunRefused(at, reason):
            return replace(state, aiming=_without(state, at), note=reason)
        case unreachable:
            assert_never(unreachable)


def _edited(state: Schedule, command: Store | Remove, now: datetime) -> Decision:
    kept = definition.Definition(state.version, state.content, state.by, state.present)
    decided = definition.decide(kept, command, now)
    if not decided.events or isinstance(command, Remove):
        timers = (CancelTimer(_DUE),) if decided.events else ()
        return replace(decided, timers=timers)
    # Times before it was stored are nobody's: they are not made up for.
    content = command.content
    following = _rule(content).after(now)
    name = f"{content['environment']}/{content['application']}/{content['name']}"
    return replace(
        decided, events=(*decided.events, Armed(name, now, following)), timers=_timers(following)
    )


def _due(state: Schedule, at: datetime, now: datetime) -> Decision:
    # The timer goes by the store's clock: ours may be behind it.
    now = max(now, at)
    rule = _rule(state.content)
    times = rule.between(state.since or at, now, _MOST_COUNTED)
    runs = _chosen(state.content, times, now)
    fired = Fired(tuple(runs), len(times) - len(runs), now, rule.after(now))
    target = f"{state.content['environment']}/{state.content['application']}"
    branch, tag = state.content.get("branch", ""), state.content.get("tag", "")
    ref = f"refs/heads/{branch}" if branch else f"refs/tags/{tag}" if tag else ""
    aims = tuple(AimRun(each, target, ref, state.content.get("commit", "")) for each in runs)
    return Decision((fired,), aims, timers=_timers(fired.next))


def _chosen(content: dict[str, Any], times: list[datetime], now: datetime) -> list[datetime]:
    on_time = [each for each in times if now - each <= GRACE]
    match content.get("catch_up", "once"):
        case "all":
            return times[-int(content.get("most", 5)) :]
        case "once":
            # One that is on time makes up for those before it.
            return on_time or times[-1:]
        case _:
            return on_time


def _timers(following: datetime | None) -> tuple[SetTimer | CancelTimer, ...]:
    if following is None:
        return (CancelTimer(_DUE),)
    return (SetTimer(_DUE, following, Due(following)),)


def _rule(content: dict[str, Any]) -> recurrence.Recurrence:
    return recurrence.parse(content["cron"], content.get("time_zone", "UTC"))


def _without(state: Schedule, at: datetime) -> tuple[datetime, ...]:
    return tuple(each for each in state.aiming if each != at)


SCHEDULE: machine.Machine[Schedule, Command, Event] = machine.Machine(
    name=NAME,
    initial=Schedule(),
    decide=decide,
    evolve=evolve,
    vocabulary=machine.Vocabulary(Schedule, Command, Event, AimRun),
    attributes=machine.Attributes(
        {"present": bool, "target": str, "environment": str},
        lambda state: {
            "present": state.present,
            **(
                {
                    "target": state.name.rpartition("/")[0],
                    "environment": state.name.partition("/")[0],
                }
                if state.present
                else {}
            ),
        },
    ),
)
MACHINES: Mapping[str, machine.AnyMachine] = {**definition.MACHINES, NAME: SCHEDULE}
"""Of all that operators store."""
