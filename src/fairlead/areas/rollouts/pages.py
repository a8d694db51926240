"""The first page and its details: every rollout in a line, and one of them closely.

What is shown comes from the same rows as the API's answers; scripts only keep it fresh, draw
the numbers and hand the verbs over.
"""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from fairlead.domain.rollouts import detail, rows
from fairlead.engine import messages
from fairlead.intents import requests as door
from fairlead.intents import tokens
from fairlead.web import context as contexts
from fairlead.web import pages

router = APIRouter(include_in_schema=False)
_ROWS = 100

PHASES: dict[str, tuple[str, str, str]] = {
    "Unknown": ("question", "calm", "Unknown"),
    "Starting": ("clock", "busy", "Starting"),
    "Stable": ("check", "good", "Stable"),
    "TakenBack": ("back", "bad", "Taken back"),
    "Queued": ("clock", "calm", "Queued"),
    "Progressing": ("forth", "busy", "Progressing"),
    "AwaitingApproval": ("hand", "ask", "Awaiting approval"),
    "Baking": ("clock", "busy", "Baking"),
    "Promoting": ("up", "busy", "Promoting"),
    "GoingHome": ("back", "bad", "Going home"),
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
}
STEPS: dict[str, tuple[str, str, str]] = {
    "done": ("check", "good", "done"),
    "here": ("dot", "busy", "here now"),
    "moving": ("forth", "busy", "on the way"),
    "skipped": ("forth", "calm", "skipped"),
    "ahead": ("circle", "calm", "ahead"),
    "stopped": ("cross", "bad", "given up here"),
}
ENDINGS: dict[str, tuple[str, str, str]] = {
    "": ("forth", "busy", "Under way"),
    "Promoted": ("check", "good", "Promoted"),
    "TakenBack": ("back", "bad", "Taken back"),
    "Superseded": ("forth", "calm", "Superseded"),
    "Reverted": ("back", "calm", "Reverted"),
}
NEWS: dict[str, tuple[str, str, str]] = {
    "Started": ("circle", "calm", "Started"),
    "Waiting": ("clock", "calm", "Waiting"),
    "StepReached": ("forth", "busy", "Step reached"),
    "CheckSuccessful": ("check", "good", "Check passed"),
    "CheckFailed": ("cross", "bad", "Check failed"),
    "CheckError": ("alert", "bad", "Check not answered"),
    "CheckInconclusive": ("question", "ask", "Check unclear"),
    "Approved": ("hand", "good", "Approved"),
    "GatePassed": ("forth", "calm", "Gate passed"),
    "Promoting": ("up", "busy", "Promoting"),
    "Promoted": ("check", "good", "Promoted"),
    "Paused": ("pause", "ask", "Paused"),
    "Resumed": ("forth", "busy", "Resumed"),
    "Stalled": ("alert", "bad", "Stalled"),
    "Drifted": ("alert", "ask", "Drifted"),
    "GoingHome": ("back", "bad", "Going home"),
    "TakenBack": ("back", "bad", "Taken back"),
    "Superseded": ("forth", "calm", "Superseded"),
    "Reverted": ("back", "calm", "Reverted"),
}
_FIRST = ("AwaitingApproval", "Stalled", "Paused")
_LAST = ("Stable", "TakenBack")


@router.get("/")
async def rollouts(
    request: Request, before: Annotated[int | None, Query(ge=0, lt=2**63)] = None
) -> Response:
    found, further = await contexts.of(request).engine.read(
        lambda session: door.listed(session, _ROWS, before)
    )
    shown = sorted(found, key=_urgency)
    waiting = sum(1 for each in shown if each.phase in _FIRST)
    moving = sum(1 for each in shown if each.phase not in (*_FIRST, *_LAST))
    words = {"waiting": waiting, "moving": moving, "phases": PHASES}
    return pages.page("rollouts.html", 200, rollouts=shown, further=further, **words)


@router.get("/rollouts/{name:path}")
async def rollout(request: Request, name: str) -> Response:
    context = contexts.of(request)
    now = context.now()
    told = await context.engine.read(lambda session: door.look(session, name, now))
    steers = contexts.caller(request).role >= tokens.Role.OPERATOR
    return pages.page("rollout.html", **_words(told, now, steers=steers))


def _urgency(summary: rows.Summary) -> tuple[int, str]:
    """What waits for a person first, then what moves, then what rests."""
    place = 0 if summary.phase in _FIRST else 2 if summary.phase in _LAST else 1
    return place, summary.title


def _words(told: detail.Detail, now: datetime, *, steers: bool) -> dict[str, Any]:
    run = told.runs[0] if told.runs else None
    until = (run.ended or now) if run else now
    drawn = {
        "name": told.rollout.name,
        "primary": told.rollout.primary,
        "canary": told.rollout.canary or (run.target if run else ""),
        "started": run.started.isoformat() if run else None,
        "ended": run.ended.isoformat() if run and run.ended else None,
        "weights": [[mark.at.isoformat(), mark.share] for mark in run.weights] if run else [],
    }
    return {
        "told": told,
        "one": told.rollout,
        "run": run,
        "until": until,
        "stream": messages.stream_name("rollout", told.rollout.name),
        "drawn": drawn,
        "steers": steers,
        "phases": PHASES,
        "check_words": CHECKS,
        "step_words": STEPS,
        "endings": ENDINGS,
        "news_words": NEWS,
    }
