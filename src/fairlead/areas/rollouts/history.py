"""A run's history, short enough to be kept beside its row: steps, checks, weights, news.

Events hold everything that was decided on, and too much of it for a page. A history keeps what a
person asks about a run: which steps it took and when, what each check measured last, who did
what, and how it ended.
"""

import dataclasses
import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from fairlead.areas.rollouts import measurements
from fairlead.areas.rollouts.domain import events, states
from fairlead.areas.rollouts.domain.plan import steps as steps_
from fairlead.areas.rollouts.domain.plan.spec import Version
from fairlead.areas.rollouts.domain.plan.strategy import Strategy
from fairlead.checks.spec import BUILT_IN, Check, CheckKind, Finding

MOST_RUNS = 10
MOST_NEWS = 100
MOST_WEIGHTS = 200
MOST_POINTS = 240
"""Of a run in progress, over all of its checks and slots; one that ended keeps half of them."""

KEPT_POINTS = MOST_POINTS // 2


@dataclass(frozen=True, slots=True)
class StepMark:
    """One step: when the shift to it started, and when the proxies showed it."""

    number: int
    """Counted from 1."""

    weight: int
    began: dt.datetime
    reached: dt.datetime | None = None


class PlannedMark(NamedTuple):
    """A step as the run planned it."""

    weight: int
    pause_seconds: float
    approve: bool
    mirror: int


class Rule(NamedTuple):
    """A check of the run, in short."""

    check: str
    metric: str
    """The built-in one that it asks for; empty where it asks something else."""

    dry_run: bool


@dataclass(frozen=True, slots=True)
class Weight:
    """The canary's weight from this moment on."""

    at: dt.datetime
    weight: int


@dataclass(frozen=True, slots=True)
class News:
    """Something worth showing, and who did it where that was a person."""

    at: dt.datetime
    kind: str
    text: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class RunMark:
    """One run from its start to its end."""

    number: int
    target: str
    revision: str
    why: str
    started: dt.datetime
    skip_steps: bool = False
    stable: str = ""
    """The version that the run was to replace."""

    stable_revision: str = ""
    plan: tuple[PlannedMark, ...] = ()
    rules: tuple[Rule, ...] = ()
    steps: tuple[StepMark, ...] = ()
    checks: measurements.Marks = ()
    traffic: measurements.Traffic = ()
    weights: tuple[Weight, ...] = ()
    news: tuple[News, ...] = ()
    """The newest first."""

    ended: dt.datetime | None = None
    ending: str = ""
    end_why: str = ""


Runs = tuple[RunMark, ...]
"""The newest first."""


def note(runs: Runs, event: events.Event, after: states.State, at: dt.datetime) -> Runs:
    """The runs with what this event adds to the newest one."""
    runs = _with_new_run(runs, after)
    if not runs or runs[0].ended is not None:
        return runs
    mark = _MARKS.get(type(event))
    head = runs[0] if mark is None else mark(runs[0], event, at)
    return (head, *runs[1:])


def resumed(state: states.State) -> Runs:
    """The runs of a rollout whose events are known from here on only."""
    return _with_new_run((), state)


def planned(strategy: Strategy) -> tuple[PlannedMark, ...]:
    """The steps that a run with this strategy takes."""
    return tuple(
        PlannedMark(
            int(step.weight), step.pause.total_seconds(), step.approve, int(step.route.mirror)
        )
        for step in steps_.plan(strategy)
    )


def _with_new_run(runs: Runs, after: states.State) -> Runs:
    """A run that is new to us: just started, or adopted in its middle."""
    if not isinstance(after, states.Running):
        return runs
    run = after.run
    if runs and runs[0].ended is None and runs[0].number == run.number:
        return runs
    return (_started(run, after.rollout.stable), *runs)[:MOST_RUNS]


def _started(run: states.Run, stable: Version) -> RunMark:
    target = run.target
    return RunMark(
        run.number,
        str(target),
        target.revision,
        run.why,
        run.started,
        run.skip_steps,
        stable=str(stable),
        stable_revision=stable.revision,
        plan=planned(run.spec.strategy),
        rules=tuple(_rule(check) for check in run.spec.checks),
    )


def _rule(check: Check) -> Rule:
    metric = check.query if check.kind is CheckKind.METRIC and check.query in BUILT_IN else ""
    return Rule(check.name, metric, check.dry_run)


def _with_news(head: RunMark, news: News) -> RunMark:
    return dataclasses.replace(head, news=(news, *head.news)[:MOST_NEWS])


def _run_queued(head: RunMark, event: events.RunQueued, at: dt.datetime) -> RunMark:
    return _with_news(head, News(at, "Started", event.pending.why))


def _slot_requested(head: RunMark, event: events.SlotRequested, at: dt.datetime) -> RunMark:
    return _with_news(head, News(at, "Waiting", f"for a slot of limiter {event.limiter}"))


def _window_awaited(head: RunMark, event: events.WindowAwaited, at: dt.datetime) -> RunMark:
    opens = f"{event.until:%Y-%m-%d %H:%M} UTC"
    return _with_news(head, News(at, "Waiting", f"for its window, which opens {opens}"))


def _shift_started(head: RunMark, event: events.ShiftStarted, at: dt.datetime) -> RunMark:
    step = StepMark(event.step + 1, event.weight, at)
    before = tuple(each for each in head.steps if each.number != step.number)
    return dataclasses.replace(head, steps=(*before, step))


def _step_reached(head: RunMark, event: events.StepReached, at: dt.datetime) -> RunMark:
    number = event.step + 1
    steps = tuple(
        dataclasses.replace(each, reached=at) if each.number == number else each
        for each in head.steps
    )
    head = dataclasses.replace(head, steps=steps)
    return _with_news(head, News(at, "StepReached", f"canary weight is {event.weight} %"))


def _measured(head: RunMark, event: events.Measured, at: dt.datetime) -> RunMark:
    step = head.steps[-1].number if head.steps else 0
    seconds = round((at - head.started).total_seconds(), 1)
    checks, traffic = head.checks, head.traffic
    for finding in event.findings:
        before = measurements.find(checks, finding.check, step)
        checks = measurements.with_finding(checks, finding, step, (at, seconds))
        head = _with_verdict(head, finding, before, at)
    for counted in event.traffic:
        traffic = measurements.with_traffic(traffic, counted, step, seconds)
    return _thinned(dataclasses.replace(head, checks=checks, traffic=traffic), MOST_POINTS)


def _with_verdict(
    head: RunMark, finding: Finding, before: measurements.CheckMark | None, at: dt.datetime
) -> RunMark:
    """A verdict is news where it turned, and each time where it is bad."""
    phase = finding.phase
    if phase is None:
        return head
    turned = before is None or before.phase != phase.value
    if not turned and phase not in measurements.BAD:
        return head
    text = f"{finding.check}: {finding.reason}"
    return _with_news(head, News(at, f"Check{phase.value}", text))


def _thinned(head: RunMark, most: int) -> RunMark:
    checks, traffic = measurements.thinned(head.checks, head.traffic, most)
    return dataclasses.replace(head, checks=checks, traffic=traffic)


def _route_requested(head: RunMark, event: events.RouteRequested, at: dt.datetime) -> RunMark:
    weight = int(event.route.weight)
    if head.weights and head.weights[-1].weight == weight:
        return head
    return dataclasses.replace(head, weights=(*head.weights, Weight(at, weight))[-MOST_WEIGHTS:])


def _steps_skipped(head: RunMark, event: events.StepsSkipped, at: dt.datetime) -> RunMark:
    head = dataclasses.replace(head, skip_steps=True)
    return _with_news(head, News(at, "Promoted", "remaining steps skipped", event.by))


def _run_ended(head: RunMark, event: events.RunEnded, at: dt.datetime) -> RunMark:
    ending = event.ending.value
    head = dataclasses.replace(head, ended=at, ending=ending, end_why=event.why)
    head = _thinned(head, KEPT_POINTS)
    if head.weights and head.weights[-1].weight:
        head = dataclasses.replace(head, weights=(*head.weights, Weight(at, 0)))
    known = any(news.kind == "RollingBack" and news.text == event.why for news in head.news)
    return _with_news(
        head, News(at, ending, "the stable version has all traffic again" if known else event.why)
    )


def _says(kind: str, text: Callable[[Any], str]) -> Callable[[RunMark, Any, dt.datetime], RunMark]:
    """An event that is one line of news and nothing more."""

    def mark(head: RunMark, event: Any, at: dt.datetime) -> RunMark:
        return _with_news(head, News(at, kind, text(event), getattr(event, "by", "")))

    return mark


_MARKS: dict[type, Callable[[RunMark, Any, dt.datetime], RunMark]] = {
    events.RunQueued: _run_queued,
    events.SlotRequested: _slot_requested,
    events.WindowAwaited: _window_awaited,
    events.ShiftStarted: _shift_started,
    events.StepReached: _step_reached,
    events.Measured: _measured,
    events.RouteRequested: _route_requested,
    events.StepsSkipped: _steps_skipped,
    events.RunEnded: _run_ended,
    events.Approved: _says("Approved", lambda _: "step approved"),
    events.GateReached: _says("Waiting", lambda event: f"for its group at gate {event.gate}"),
    events.GatePassed: _says("GatePassed", lambda _: "the whole group has reached the gate"),
    events.PromotionStarted: _says(
        "Promoting", lambda _: "updating the primary to the new version"
    ),
    events.Stalled: _says("Stalled", lambda event: event.why),
    events.RollbackStarted: _says("RollingBack", lambda event: event.why),
    events.Drifted: _says("Drifted", lambda event: f"restored: {event.what}"),
    events.Paused: _says("Paused", lambda event: event.why),
    events.Resumed: _says("Resumed", lambda _: "steps continue"),
}
