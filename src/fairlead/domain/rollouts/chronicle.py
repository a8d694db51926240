"""What a run went through, short enough to be kept beside its row: steps, checks, weights, news.

Events tell everything that was decided on, and too much of it for a page. A chronicle
keeps what a person asks about a run: which steps it took and when, what each check said last and
with which numbers, who did what, and how it ended.
"""

import dataclasses
import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairlead.domain.analysis.conditions import Phase
from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import states
from fairlead.domain.rollouts.messages import Finding

MOST_RUNS = 10
MOST_NEWS = 100
MOST_WEIGHTS = 200
_BAD = {Phase.FAILED, Phase.ERROR, Phase.INCONCLUSIVE}


@dataclass(frozen=True, slots=True)
class StepMark:
    """One step: when the way to it began, and when the proxies showed it."""

    number: int
    """Counted from 1."""

    share: int
    began: dt.datetime
    reached: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class CheckMark:
    """What one check said at one step: how often it was asked, and its last words."""

    check: str
    step: int
    """Counted from 1; 0 before the first."""

    phase: str
    """The last answer's; empty where there was nothing to count yet."""

    reason: str
    at: dt.datetime
    measured: int = 0
    passed: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Weight:
    """The canary's share from this moment on."""

    at: dt.datetime
    share: int


@dataclass(frozen=True, slots=True)
class News:
    """Something worth telling, and who did it where that was a person."""

    at: dt.datetime
    kind: str
    text: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class RunMark:
    """One version's way from its start to its end."""

    number: int
    target: str
    revision: str
    why: str
    started: dt.datetime
    straight: bool = False
    steps: tuple[StepMark, ...] = ()
    checks: tuple[CheckMark, ...] = ()
    weights: tuple[Weight, ...] = ()
    news: tuple[News, ...] = ()
    """The newest first."""

    ended: dt.datetime | None = None
    ending: str = ""
    end_why: str = ""


Runs = tuple[RunMark, ...]
"""The newest first."""


def note(runs: Runs, event: told.Event, after: states.State, at: dt.datetime) -> Runs:
    """The runs with what this event adds to the newest one."""
    runs = _with_new_run(runs, after)
    if not runs or runs[0].ended is not None:
        return runs
    mark = _MARKS.get(type(event))
    head = runs[0] if mark is None else mark(runs[0], event, at)
    return (head, *runs[1:])


def _with_new_run(runs: Runs, after: states.State) -> Runs:
    """A run that is new to us: just begun, or adopted in the middle of its way."""
    if not isinstance(after, states.Running):
        return runs
    run = after.run
    if runs and runs[0].ended is None and runs[0].number == run.number:
        return runs
    target = run.target
    fresh = RunMark(run.number, str(target), target.revision, run.why, run.started, run.straight)
    return (fresh, *runs)[:MOST_RUNS]


def _told(head: RunMark, news: News) -> RunMark:
    return dataclasses.replace(head, news=(news, *head.news)[:MOST_NEWS])


def _run_queued(head: RunMark, event: told.RunQueued, at: dt.datetime) -> RunMark:
    return _told(head, News(at, "Started", event.errand.why))


def _slot_asked(head: RunMark, event: told.SlotAsked, at: dt.datetime) -> RunMark:
    return _told(head, News(at, "Waiting", f"for room under the limit of {event.limiter}"))


def _window_awaited(head: RunMark, event: told.WindowAwaited, at: dt.datetime) -> RunMark:
    opens = f"{event.until:%Y-%m-%d %H:%M} UTC"
    return _told(head, News(at, "Waiting", f"for its window, which opens {opens}"))


def _move_began(head: RunMark, event: told.MoveBegan, at: dt.datetime) -> RunMark:
    step = StepMark(event.step + 1, event.share, at)
    before = tuple(each for each in head.steps if each.number != step.number)
    return dataclasses.replace(head, steps=(*before, step))


def _step_reached(head: RunMark, event: told.StepReached, at: dt.datetime) -> RunMark:
    number = event.step + 1
    steps = tuple(
        dataclasses.replace(each, reached=at) if each.number == number else each
        for each in head.steps
    )
    head = dataclasses.replace(head, steps=steps)
    return _told(head, News(at, "StepReached", f"the canary has {event.share} %"))


def _measured(head: RunMark, event: told.Measured, at: dt.datetime) -> RunMark:
    step = head.steps[-1].number if head.steps else 0
    for finding in event.findings:
        before = _mark_of(head, finding.check, step)
        mark = _counted(before, finding, step, at)
        others = tuple(each for each in head.checks if each is not before)
        head = dataclasses.replace(head, checks=(*others, mark))
        turned = before is None or before.phase != mark.phase
        if finding.phase is not None and (turned or finding.phase in _BAD):
            text = f"{finding.check}: {finding.reason}"
            head = _told(head, News(at, f"Check{finding.phase.value}", text))
    return head


def _mark_of(head: RunMark, check: str, step: int) -> CheckMark | None:
    found = (each for each in head.checks if (each.check, each.step) == (check, step))
    return next(found, None)


def _counted(before: CheckMark | None, finding: Finding, step: int, at: dt.datetime) -> CheckMark:
    mark = before or CheckMark(finding.check, step, "", "", at)
    phase = finding.phase
    return dataclasses.replace(
        mark,
        phase=phase.value if phase else mark.phase,
        reason=finding.reason,
        at=at,
        measured=mark.measured + (phase is not None),
        passed=mark.passed + (phase is Phase.SUCCESSFUL),
        failed=mark.failed + (phase in _BAD),
    )


def _route_asked(head: RunMark, event: told.RouteAsked, at: dt.datetime) -> RunMark:
    share = int(event.route.share)
    if head.weights and head.weights[-1].share == share:
        return head
    return dataclasses.replace(head, weights=(*head.weights, Weight(at, share))[-MOST_WEIGHTS:])


def _straightened(head: RunMark, event: told.Straightened, at: dt.datetime) -> RunMark:
    head = dataclasses.replace(head, straight=True)
    return _told(head, News(at, "Promoted", "what is left of its steps is skipped", event.by))


def _run_ended(head: RunMark, event: told.RunEnded, at: dt.datetime) -> RunMark:
    ending = event.ending.value
    head = dataclasses.replace(head, ended=at, ending=ending, end_why=event.why)
    if head.weights and head.weights[-1].share:
        head = dataclasses.replace(head, weights=(*head.weights, Weight(at, 0)))
    known = any(news.kind == "GoingHome" and news.text == event.why for news in head.news)
    return _told(head, News(at, ending, "all traffic is home again" if known else event.why))


def _says(kind: str, text: Callable[[Any], str]) -> Callable[[RunMark, Any, dt.datetime], RunMark]:
    """An event that is one line of news and nothing more."""

    def mark(head: RunMark, event: Any, at: dt.datetime) -> RunMark:
        return _told(head, News(at, kind, text(event), getattr(event, "by", "")))

    return mark


_MARKS: dict[type, Callable[[RunMark, Any, dt.datetime], RunMark]] = {
    told.RunQueued: _run_queued,
    told.SlotAsked: _slot_asked,
    told.WindowAwaited: _window_awaited,
    told.MoveBegan: _move_began,
    told.StepReached: _step_reached,
    told.Measured: _measured,
    told.RouteAsked: _route_asked,
    told.Straightened: _straightened,
    told.RunEnded: _run_ended,
    told.Approved: _says("Approved", lambda _: "the step may go on"),
    told.GateReached: _says("Waiting", lambda event: f"for its group, at the gate {event.gate}"),
    told.GatePassed: _says("GatePassed", lambda _: "the whole group has arrived"),
    told.PromotionBegan: _says("Promoting", lambda _: "the primary becomes the new version"),
    told.Stalled: _says("Stalled", lambda event: event.why),
    told.HomeBegan: _says("GoingHome", lambda event: event.why),
    told.Drifted: _says("Drifted", lambda event: f"put back: {event.what}"),
    told.Paused: _says("Paused", lambda event: event.why),
    told.Resumed: _says("Resumed", lambda _: "steps up again"),
}
