"""The pages of content: every release in a line, and one of them closely.

What is shown comes from the same places as the API's answers; a script only hands the verbs over.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from fairlead import errors
from fairlead.access import tokens
from fairlead.areas.content import requests as door
from fairlead.areas.content.domain.release import view
from fairlead.areas.content.domain.release.declared_verbs import VERBS
from fairlead.areas.content.domain.release.draft import stream
from fairlead.web import auth, verbs
from fairlead.web import context as contexts

router = APIRouter(include_in_schema=False)
_ROWS = 100
WIDTH, HEIGHT = 800, 120

PHASES: dict[str, tuple[str, str, str]] = {
    "Idle": ("check", "good", "Idle"),
    "Proposed": ("hand", "ask", "Awaiting review"),
    "Clearing": ("clock", "busy", "Clearing the share"),
    "Deploying": ("clock", "busy", "Deploying"),
    "Raising": ("up", "busy", "Raising the share"),
    "Baking": ("clock", "busy", "Baking"),
    "AwaitingDecision": ("hand", "ask", "Awaiting a decision"),
    "Paused": ("pause", "ask", "Paused"),
    "Promoting": ("up", "busy", "Promoting"),
    "Reverting": ("back", "bad", "Reverting"),
    "Restoring": ("back", "bad", "Restoring"),
    "Settling": ("check", "busy", "Settling"),
}
"""A phase's sign, tone and words: the tone alone never tells it."""

STEPS: dict[str, tuple[str, str]] = {
    "done": ("check", "done"),
    "here": ("dot", "current"),
    "ahead": ("circle", "to come"),
}


@dataclass(frozen=True, slots=True)
class Chart:
    """The share over time, as a path of steps."""

    line: str
    area: str
    since: dt.datetime
    until: dt.datetime
    points: Sequence[tuple[dt.datetime, str]]


@router.get("/releases")
@auth.within_scope
async def releases(request: Request) -> Response:
    scope = contexts.caller(request).scope
    found = await contexts.of(request).engine.read(
        lambda session: door.listed(session, _ROWS, scope=scope)
    )
    return contexts.page(request, "content/releases.html", releases=found, phases=PHASES)


@router.get("/releases/{name:path}")
@auth.within_scope
async def release(
    request: Request,
    name: str,
    identity: Annotated[str, Query(alias="id", max_length=2048)] = "",
    compare: Annotated[bool, Query()] = False,  # noqa: FBT002 - a query has no keywords
) -> Response:
    context, caller = contexts.of(request), contexts.caller(request)
    now = context.now()
    told = await context.engine.read(lambda s: door.read(s, name, now, caller.scope))
    state = await context.engine.read(lambda s: door.find(s, name, caller.scope))
    words: dict[str, Any] = {
        "told": told,
        "one": told.release,
        "stream": stream(told.release.name),
        "phases": PHASES,
        "step_words": STEPS,
        "steers": caller.role >= tokens.Role.OPERATOR,
        "buttons": verbs.buttons(map(VERBS.__getitem__, told.verbs)),
        "chart": chart(told.shares, now),
        "height": HEIGHT,
        "width": WIDTH,
        "identity": identity,
        "seen": view.who(state, identity) if identity else None,
        "versions": door.candidates(state),
    }
    words["lines"], words["unloaded"] = await _difference(state) if compare else (None, "")
    return contexts.page(request, "content/release.html", **words)


def chart(shares: Sequence[door.SharePoint], now: dt.datetime) -> Chart | None:
    """None where no share was ever set."""
    points = [(each.at, each.share) for each in shares]
    if not points:
        return None
    start, last = points[0][0], points[-1]
    span = max((now - start).total_seconds(), 1.0)
    path, level = "", HEIGHT
    for at, share in [*points, (now, last[1])]:
        x = round((at - start).total_seconds() / span * WIDTH, 1)
        path += f"L{x} {level}" if path else f"M{x} {level}"
        level = round(HEIGHT - float(share) / 100 * HEIGHT)
        path += f"L{x} {level}"
    return Chart(path, f"{path}L{WIDTH} {HEIGHT}L0 {HEIGHT}Z", start, now, points)


async def _difference(state: Any) -> tuple[Sequence[str] | None, str]:
    try:
        return await door.difference(state), ""
    except errors.FairleadError as error:
        return None, f"{error.message}; {error.hint}"
