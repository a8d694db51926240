"""A deployment closely: what its state does not keep (times, who, statements), from its events."""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from fairlead.areas.deployments.domain.deployment.state import Deployment, StepRun
from fairlead.areas.deployments.domain.messages import StatementFound, StepStatus
from fairlead.areas.deployments.domain.plan.graph import ready
from fairlead.engine import visibility
from fairlead.engine.messages import StreamName
from fairlead.engine.store import protocol

_PAGE = 500
_MOST_PAGES = 20
_QUIET = ("StillUnderway", "AskedAgain")
"""Events of polling: they tell people nothing."""


@dataclass(frozen=True, slots=True)
class News:
    """One line of a history."""

    at: dt.datetime
    kind: str
    text: str
    by: str


@dataclass(slots=True)
class Timing:
    """When the newest attempt of a step began and ended."""

    started: dt.datetime
    ended: dt.datetime | None = None


@dataclass(slots=True)
class Detail:
    """What the page shows of a deployment beside its state."""

    state: Deployment
    timings: dict[str, Timing] = field(default_factory=dict)
    statements: dict[str, tuple[StatementFound, ...]] = field(default_factory=dict)
    """What evaluations found, by their steps."""

    news: list[News] = field(default_factory=list)
    """The newest first."""

    @property
    def open(self) -> tuple[tuple[str, str], ...]:
        """What may follow the evaluation, by class; empty once that is known."""
        state = self.state
        if state.plan is None or state.status.over or len(state.steps) > len(state.plan.steps):
            return ()
        return tuple(
            (each.impact.value, ", ".join(step.name for step in each.steps))
            for each in state.plan.branches
        )

    def word(self, run: StepRun) -> str:
        """READY is what nothing stands in the way of, as in the terminal."""
        done = {each.step.name for each in self.state.those(StepStatus.DONE)}
        waits = run.status is StepStatus.BLOCKED and bool(ready((run.step,), done))
        return "READY" if waits else run.status.value


def with_trouble(
    view: visibility.StreamView,
    effects: Callable[[StreamName], Iterable[visibility.EffectView]],
    unserved: Callable[[StreamName], str],
) -> visibility.StreamView:
    """With why it takes its time, which is no event of the deployment yet.

    That is what the outbox tries again, and what no worker serves.
    """
    if view.ended_at is not None:
        return view
    own = {_step(each): _trouble(each) for each in effects(view.name) if each.error}
    steps = []
    for run in view.data["steps"]:
        error = own.get(run["step"]["name"], run["error"])
        if run["status"] == StepStatus.ACTIVE.value and run["child"]:
            told = (_trouble(each) for each in effects(run["child"]) if each.error)
            error = next(told, error) or unserved(run["child"])
        steps.append({**run, "error": error})
    reason = own.get("", view.data["reason"]) or unserved(view.name)
    return replace(view, data={**view.data, "steps": steps, "reason": reason})


def _step(effect: visibility.EffectView) -> str:
    """What it is about; empty where that is the infrastructure before any step."""
    return str(effect.data.get("step") or effect.data.get("begun", {}).get("step", ""))


def _trouble(effect: visibility.EffectView) -> str:
    what = "given up, see fairlead outbox" if effect.dead_at else "it is tried again"
    return f"try {effect.attempts} failed, {what}: {effect.error}"


def read(session: protocol.Session, view: visibility.StreamView) -> Detail:
    found = Detail(msgspec.convert(view.data, Deployment))
    for each in _events(session, view.name):
        data: Mapping[str, Any] = each.data
        if each.type == "RunStep":
            found.timings[data["step"]] = Timing(each.at)
        elif each.type == "StepResult":
            _take_result(found, data, each.at)
        if each.type not in _QUIET:
            found.news.append(news(each))
    found.news.reverse()
    return found


def news(event: visibility.EventView) -> News:
    """An event in one line; whatever it carries beside is in the stream."""
    data: Mapping[str, Any] = event.data
    names = ("deployment", "step", "status", "impact", "asks", "reason", "why", "error", "detail")
    words = [str(data[name]) for name in names if data.get(name)]
    return News(event.at, event.type, ": ".join(words), str(data.get("by") or ""))


def _take_result(found: Detail, data: Mapping[str, Any], at: dt.datetime) -> None:
    timing = found.timings.get(data["step"])
    if timing is not None and data["status"] in ("DONE", "FAILED"):
        timing.ended = at
    if data.get("statements"):
        told = msgspec.convert(data["statements"], tuple[StatementFound, ...])
        found.statements[data["step"]] = told


def _events(session: protocol.Session, name: StreamName) -> Iterator[visibility.EventView]:
    after = 0
    for _ in range(_MOST_PAGES):
        page = visibility.events(session, name, after, _PAGE)
        yield from page
        if not page.more:
            return
        after = page[-1].seq
