"""The first page and its details: every rollout in a line, and one of them closely.

What is shown comes from the same rows as the API's answers; scripts only keep it fresh and hand
the verbs over.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from fairlead.access import tokens
from fairlead.areas.rollouts import chart, detail, history, projection, requests
from fairlead.areas.rollouts.domain import view
from fairlead.areas.rollouts.domain.declared_verbs import VERBS
from fairlead.areas.rollouts.traffic_stats import TRAFFIC_STATS, Point
from fairlead.areas.rollouts.workload_logs import WORKLOAD_LOGS
from fairlead.engine import messages
from fairlead.values import Verb
from fairlead.web import auth, verbs
from fairlead.web import context as contexts

router = APIRouter(include_in_schema=False)
_ROWS = 100

PHASES: dict[str, tuple[str, str, str]] = {
    "Unknown": ("question", "calm", "Unknown"),
    "Starting": ("clock", "busy", "Starting"),
    "Stable": ("check", "good", "Stable"),
    "RolledBack": ("back", "bad", "Rolled back"),
    "Queued": ("clock", "calm", "Queued"),
    "Progressing": ("forth", "busy", "Progressing"),
    "AwaitingApproval": ("hand", "ask", "Awaiting approval"),
    "Baking": ("clock", "busy", "Baking"),
    "Promoting": ("up", "busy", "Promoting"),
    "RollingBack": ("back", "bad", "Rolling back"),
    "Paused": ("pause", "ask", "Paused"),
    "Stalled": ("alert", "bad", "Stalled"),
    "Gone": ("cross", "calm", "Gone"),
}
"""A phase's sign, tone and words: the tone alone never tells it."""

CHECKS: dict[str, tuple[str, str, str]] = {
    "Successful": ("check", "good", "Passed"),
    "Failed": ("cross", "bad", "Failed"),
    "Error": ("alert", "bad", "Error"),
    "Inconclusive": ("question", "ask", "Inconclusive"),
    "Running": ("clock", "busy", "Measuring"),
    "GoodSoFar": ("check", "good", "Good so far"),
    "Waiting": ("clock", "calm", "Waiting"),
    "NoVerdict": ("circle", "calm", "No verdict"),
}
STEPS: dict[str, tuple[str, str, str]] = {
    "done": ("check", "good", "done"),
    "here": ("dot", "busy", "current"),
    "shifting": ("forth", "busy", "shifting"),
    "skipped": ("forth", "calm", "skipped"),
    "ahead": ("circle", "calm", "to come"),
    "unreached": ("circle", "calm", "not reached"),
    "stopped": ("cross", "bad", "rolled back here"),
}
ENDINGS: dict[str, tuple[str, str, str]] = {
    "": ("forth", "busy", "In progress"),
    "Promoted": ("check", "good", "Promoted"),
    "RolledBack": ("back", "bad", "Rolled back"),
    "Superseded": ("forth", "calm", "Superseded"),
    "Reverted": ("back", "calm", "Reverted"),
}
NEWS: dict[str, tuple[str, str, str]] = {
    "Started": ("circle", "calm", "Started"),
    "Waiting": ("clock", "calm", "Waiting"),
    "StepReached": ("forth", "busy", "Step reached"),
    "CheckSuccessful": ("check", "good", "Check passed"),
    "CheckFailed": ("cross", "bad", "Check failed"),
    "CheckError": ("alert", "bad", "Check error"),
    "CheckInconclusive": ("question", "ask", "Check inconclusive"),
    "Approved": ("hand", "good", "Approved"),
    "GatePassed": ("forth", "calm", "Gate passed"),
    "Promoting": ("up", "busy", "Promoting"),
    "Promoted": ("check", "good", "Promoted"),
    "Paused": ("pause", "ask", "Paused"),
    "Resumed": ("forth", "busy", "Resumed"),
    "Stalled": ("alert", "bad", "Stalled"),
    "Drifted": ("alert", "ask", "Drifted"),
    "RollingBack": ("back", "bad", "Rolling back"),
    "RolledBack": ("back", "bad", "Rolled back"),
    "Superseded": ("forth", "calm", "Superseded"),
    "Reverted": ("back", "calm", "Reverted"),
}
_FIRST = tuple(phase.value for phase in view.WAITING)
_LAST = ("Stable", "RolledBack")


@router.get("/")
@auth.within_scope
async def rollouts(
    request: Request, before: Annotated[int | None, Query(ge=0, lt=2**63)] = None
) -> Response:
    scope = contexts.caller(request).scope
    found, further = await contexts.of(request).engine.read(
        lambda session: requests.listed(session, _ROWS, before, scope)
    )
    shown = sorted(found, key=_urgency)
    waiting = sum(1 for each in shown if each.phase in _FIRST)
    moving = sum(1 for each in shown if each.phase not in (*_FIRST, *_LAST))
    words = {"waiting": waiting, "moving": moving, "phases": PHASES}
    return contexts.page(
        request, "rollouts/rollouts.html", rollouts=shown, further=further, **words
    )


@router.get("/rollouts")
async def first_page() -> Response:
    # Who leaves the name out of an address means the list.
    return RedirectResponse("/", 303)


@router.get("/rollouts/{name:path}")
@auth.within_scope
async def rollout(
    request: Request, name: str, run: Annotated[int | None, Query(ge=0, lt=2**63)] = None
) -> Response:
    context, scope = contexts.of(request), contexts.caller(request).scope
    now = context.now()
    told = await context.engine.read(lambda session: requests.read(session, name, now, scope, run))
    role = contexts.caller(request).role
    counter = context.services.find(TRAFFIC_STATS)
    points = counter.recent(told.rollout.name) if counter is not None else ()
    kept = context.services.find(WORKLOAD_LOGS) is not None and "/" not in told.rollout.name
    words = _words(told, role) | _drawn(told, points, now)
    words |= {"recorded": counter is not None, "logged": kept and words["steers"]}
    return contexts.page(request, "rollouts/rollout.html", **words)


def _urgency(summary: projection.Summary) -> tuple[int, str]:
    """What waits for a person first, then what moves, then what rests."""
    place = 0 if summary.phase in _FIRST else 2 if summary.phase in _LAST else 1
    return place, summary.title


def _words(told: detail.Detail, role: tokens.Role) -> dict[str, Any]:
    return {
        "told": told,
        "one": told.rollout,
        "newest": not told.runs or told.run == told.runs[0].number,
        "stream": messages.stream_name("rollout", told.rollout.name),
        "steers": role >= tokens.Role.OPERATOR,
        "buttons": verbs.buttons(
            each for each in map(VERBS.__getitem__, told.verbs) if _may(role, each)
        ),
        "phases": PHASES,
        "check_words": CHECKS,
        "step_words": STEPS,
        "endings": ENDINGS,
        "news_words": NEWS,
    }


def _drawn(told: detail.Detail, points: Sequence[Point], now: datetime) -> dict[str, Any]:
    run = next((each for each in told.runs if each.number == told.run), None)
    return {
        "run": run,
        "chart": chart.of(run or _before_runs(told, points, now), points, now),
        "height": chart.HEIGHT,
        "number": chart.number,
        # What is over does not change any more.
        "follows": run is None or run.ended is None,
    }


def _before_runs(told: detail.Detail, points: Sequence[Point], now: datetime) -> history.RunMark:
    """What a version without a run did, drawn as a run of nobody beside it."""
    since, revision = (points[0].at, points[-1].revision) if points else (now, "")
    return history.RunMark(
        0, "", "", "", since, stable=told.rollout.primary, stable_revision=revision
    )


def _may(role: tokens.Role, verb: Verb) -> bool:
    return role >= tokens.Role.DEPLOYER or not verb.deletes
