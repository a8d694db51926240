"""The pages of deployments: stacks with their queues, deployments with their plans, triggers.

What is shown comes from the same rows as the API's answers; scripts only keep it fresh and hand
the verbs over.
"""

import functools
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from fairlead import errors
from fairlead.access import tokens
from fairlead.areas.deployments import detail, drawing
from fairlead.areas.deployments.domain.declared_verbs import OF_MACHINES, REFUSE, VERBS
from fairlead.areas.deployments.domain.deployment.state import Deployment, phase
from fairlead.areas.deployments.domain.stack.state import Stack, Status
from fairlead.areas.deployments.domain.trigger.state import Trigger, status
from fairlead.engine import visibility
from fairlead.engine.messages import StreamName
from fairlead.engine.store import protocol
from fairlead.values import Verb
from fairlead.web import auth
from fairlead.web import context as contexts
from fairlead.web import verbs as web_verbs

router = APIRouter(include_in_schema=False)
_ROWS = 100
_NEWS = 50
Before = Annotated[int | None, Query(ge=0, lt=2**63)]

STACKS: dict[str, tuple[str, str, str]] = {
    "NEW": ("circle", "calm", "New"),
    "CREATING": ("clock", "busy", "Creating"),
    "STABLE": ("check", "good", "Stable"),
    "AVAILABLE": ("check", "good", "Available"),
    "MIGRATING": ("forth", "busy", "Migrating"),
    "BROKEN": ("alert", "bad", "Broken"),
}
"""A status' sign, tone and words: the tone alone never tells it."""

DEPLOYMENTS: dict[str, tuple[str, str, str]] = {
    "NEW": ("circle", "calm", "New"),
    "QUEUED": ("clock", "calm", "Queued"),
    "TRIGGERED": ("clock", "busy", "Triggered"),
    "WAITING": ("clock", "busy", "Waiting for the infrastructure"),
    "AVAILABLE": ("clock", "busy", "Ready to run"),
    "ASKING": ("hand", "ask", "Awaiting approval"),
    "FROZEN": ("pause", "ask", "Frozen"),
    "RUNNING": ("forth", "busy", "Running"),
    "DONE": ("check", "good", "Done"),
    "FAILED": ("alert", "bad", "Failed"),
    "TERMINATED": ("cross", "bad", "Terminated"),
}
LEADS: dict[str, str] = {
    "QUEUED": "It waits for the deployments before it.",
    "TRIGGERED": "It has its turn.",
    "WAITING": "It begins once the infrastructure has settled.",
    "AVAILABLE": "Its plan is made.",
    "DONE": "This version is deployed.",
    "FAILED": "It ended with an error.",
    "TERMINATED": "It was ended before its plan was.",
}
"""In a sentence, where the status alone would be said twice."""

STEPS: dict[str, tuple[str, str, str]] = {
    "BLOCKED": ("circle", "calm", "waits"),
    "READY": ("dot", "calm", "ready"),
    "ACTIVE": ("forth", "busy", "active"),
    "DONE": ("check", "good", "done"),
    "FAILED": ("cross", "bad", "failed"),
}
CLASSES: dict[str, tuple[str, str, str]] = {
    "NOP": ("check", "good", "NOP"),
    "PARALLEL": ("check", "good", "PARALLEL"),
    "BEFORE": ("up", "ask", "BEFORE"),
    "DOWNTIME": ("alert", "bad", "DOWNTIME"),
}
TRIGGERS: dict[str, tuple[str, str, str]] = {
    "NEW": ("circle", "calm", "New"),
    "RESOLVING": ("clock", "busy", "Finding the commit"),
    "FETCHING": ("clock", "busy", "Reading its file"),
    "REQUESTED": ("forth", "busy", "Deploying"),
    "DONE": ("check", "good", "Done"),
    "FAILED": ("alert", "bad", "Failed"),
    "REFUSED": ("cross", "bad", "Refused"),
}
_WORDS = {
    "stack_words": STACKS,
    "deployment_words": DEPLOYMENTS,
    "deployment_leads": LEADS,
    "step_words": STEPS,
    "class_words": CLASSES,
    "trigger_words": TRIGGERS,
}


@router.get("/stacks")
@auth.within_scope
async def stacks(request: Request, before: Before = None) -> Response:
    found = await _listed(request, "stack", before)
    rows = [(each, msgspec.convert(each.data, Stack)) for each in found]
    shown = sorted(rows, key=lambda row: row[1].status is not Status.BROKEN)
    return _page(request, "stacks", rows=shown, further=_further(found))


@router.get("/stacks/{name:path}")
@auth.within_scope
async def stack(request: Request, name: str, before: Before = None) -> Response:
    view = await _found(request, "stack", name)
    one = msgspec.convert(view.data, Stack)
    past = await _listed(
        request, "deployment", before, f"stack={msgspec.json.encode(name).decode()}"
    )
    rows = [(each, msgspec.convert(each.data, Deployment)) for each in past]
    current = next((state for _, state in rows if state.name == one.current), None)
    if current is None and one.current:
        found = await _found(request, "deployment", one.current)
        current = msgspec.convert(found.data, Deployment)
    asked = [*OF_MACHINES["stack"]] if one.status is Status.BROKEN else []
    events = await contexts.of(request).engine.read(
        lambda s: visibility.events(s, view.name, max(0, view.version - _NEWS), _NEWS)
    )
    return _page(
        request,
        "stack",
        view=view,
        one=one,
        current=current,
        rows=rows,
        further=_further(past),
        news=[detail.news(each) for each in reversed(events)],
        buttons=web_verbs.buttons(VERBS[each] for each in asked),
        current_buttons=web_verbs.buttons(_fitting(current)),
    )


@router.get("/deployments")
async def deployments() -> Response:
    # No list of their own: each stands with its stack.
    return RedirectResponse("/stacks", 303)


@router.get("/deployments/{name:path}")
@auth.within_scope
async def deployment(request: Request, name: str) -> Response:
    view = await _found(request, "deployment", name)

    now = contexts.of(request).now()

    def read(session: protocol.Session) -> detail.Detail:
        def unserved(stream: StreamName) -> str:
            found = visibility.find(session, stream)
            return visibility.unserved(session, found, now) if found else ""

        effects = functools.partial(visibility.effects, session)
        shown = detail.with_trouble(view, lambda stream: effects(name=stream), unserved)
        return detail.read(session, shown)

    told = await contexts.of(request).engine.read(read)
    state = told.state
    return _page(
        request,
        "deployment",
        view=view,
        told=told,
        one=state,
        drawn=drawing.of([run.step for run in state.steps]),
        words={run.step.name: told.word(run) for run in state.steps},
        buttons=web_verbs.buttons(_fitting(state)),
        size=(drawing.WIDTH, drawing.HEIGHT),
    )


@router.get("/triggers")
@auth.within_scope
async def triggers(request: Request, before: Before = None) -> Response:
    found = await _listed(request, "trigger", before)
    rows = [(each, msgspec.convert(each.data, Trigger)) for each in found]
    return _page(request, "triggers", rows=rows, further=_further(found))


@router.get("/triggers/{name:path}")
@auth.within_scope
async def trigger(request: Request, name: str) -> Response:
    view = await _found(request, "trigger", name)
    return _page(request, "trigger", view=view, one=msgspec.convert(view.data, Trigger))


def condition(state: Deployment) -> str:
    """Its status, or what it waits for where that is a person or a date."""
    if state.waits_for:
        return "ASKING" if state.waits_for.startswith("approval") else "FROZEN"
    return state.status.value


def _fitting(state: Deployment | None) -> list[Verb]:
    """What may be asked of a deployment now; to end one that asks is to say no to it."""
    if state is None or state.status.over:
        return []
    if condition(state) == "ASKING":
        return [VERBS["approve"], REFUSE]
    return [VERBS["abort"]]


async def _found(request: Request, machine: str, name: str) -> visibility.StreamView:
    stream = contexts.stream(request, machine, name)
    view = await contexts.of(request).engine.read(lambda s: visibility.find(s, stream))
    if view is None:
        raise errors.NotFound(
            f"no such {machine}: {name[:80]}", hint=f"list them: fairlead get {machine}s"
        )
    return view


async def _listed(
    request: Request, machine: str, before: int | None, where: str = ""
) -> visibility.Page[visibility.StreamView]:
    which = visibility.StreamFilter(
        machine,
        before=before,
        limit=_ROWS,
        scope=contexts.caller(request).scope,
        where=contexts.where(request, where, machine),
    )
    return await contexts.of(request).engine.read(lambda s: visibility.streams(s, which))


def _further(found: visibility.Page[visibility.StreamView]) -> int | None:
    return found[-1].number if found and found.more else None


def _page(request: Request, template: str, **values: Any) -> Response:
    helpers: dict[str, Any] = {"condition": condition, "phase": phase, "trigger_status": status}
    steers = contexts.caller(request).role >= tokens.Role.OPERATOR
    return contexts.page(
        request, f"deployments/{template}.html", steers=steers, **_WORDS, **helpers, **values
    )
