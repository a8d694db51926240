"""The API of content releases: see them, propose one, and steer it with the verbs people use."""

from typing import Annotated

import pydantic
from fastapi import APIRouter, Depends, Header, Query, Request

from fairlead import errors
from fairlead.access import intake, tokens
from fairlead.areas.content import requests as door
from fairlead.areas.content.domain.release import view
from fairlead.areas.content.domain.release.declared_verbs import VERBS
from fairlead.areas.content.release import rules
from fairlead.areas.content.release.host import QUEUE
from fairlead.engine import messages
from fairlead.web import api, auth, bodies, shapes
from fairlead.web import context as contexts

router = APIRouter(prefix="/api/v1/releases", tags=["releases"], responses=api.FAILURES)
Deployer = Annotated[intake.Caller, Depends(auth.needs(tokens.Role.DEPLOYER))]
_REASONED = ", ".join(name for name, verb in VERBS.items() if verb.takes_reason)


class Action(pydantic.BaseModel):
    """What goes with a verb; all of it may be left out."""

    model_config = pydantic.ConfigDict(extra="forbid")

    why: str = pydantic.Field("", max_length=500, description=f"The reason, for {_REASONED}.")
    revision: str = pydantic.Field(
        "", description="Of the proposal that was reviewed, for approve."
    )
    id: str | None = pydantic.Field(
        None, description="Your name for this request: the same id twice is taken once."
    )


class Steered(pydantic.BaseModel):
    """What became of a request."""

    receipt: shapes.Receipt
    release: view.Summary


class Difference(pydantic.BaseModel):
    """What two versions serve, as a unified difference."""

    stable: str
    other: str
    lines: list[str]


@router.get("", summary="Content releases, newest first")
@auth.within_scope
async def list_releases(
    request: Request, limit: api.Limit = 100, where: api.Where = ""
) -> shapes.Page[view.Summary]:
    scope = contexts.caller(request).scope
    found = await contexts.of(request).engine.read(
        lambda session: door.listed(session, limit, where, scope)
    )
    return shapes.Page(items=found, next=None)


@router.post(
    "",
    summary="Propose a version of a content",
    description="`release` is the file of `fairlead content release propose` as JSON:"
    " docs/reference/content.md has its fields. Nothing is deployed before somebody else approves.",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    },
)
@auth.within_scope
async def propose_release(request: Request, caller: Deployer) -> Steered:
    context = contexts.of(request)
    queue = context.services.find(QUEUE)
    if queue is None:
        raise errors.NotFound(
            "this control plane performs no releases of content", hint="run it with fairlead up"
        )
    asked = rules.proposed(await bodies.plain(request))
    await context.engine.read(lambda session: door.check_order(session, asked))
    receipt = await door.propose(context.intake, caller, asked, queue)
    return await _steered(request, receipt)


@router.get("/{name:path}/who", summary="What an identity gets")
@auth.within_scope
async def who_gets_what(
    request: Request, name: str, identity: Annotated[str, Query(alias="id", max_length=2048)]
) -> view.Seen:
    scope = contexts.caller(request).scope
    state = await contexts.of(request).engine.read(lambda s: door.find(s, name, scope))
    return view.who(state, identity)


@router.get("/{name:path}/difference", summary="What stable and the other version serve")
@auth.within_scope
async def get_difference(request: Request, name: str) -> Difference:
    scope = contexts.caller(request).scope
    state = await contexts.of(request).engine.read(lambda s: door.find(s, name, scope))
    old, new = door.candidates(state)
    return Difference(stable=old, other=new, lines=[*await door.difference(state)])


@router.get("/{name:path}", summary="One release with its steps, checks and history")
@auth.within_scope
async def get_release(request: Request, name: str) -> door.Detail:
    context, scope = contexts.of(request), contexts.caller(request).scope
    now = context.now()
    return await context.engine.read(lambda session: door.read(session, name, now, scope))


@router.post(
    "/{name:path}/{verb}",
    summary="Ask something of a release",
    description=f"The verbs: {', '.join(VERBS)}. One that does not fit now is refused with what"
    " would work.",
    openapi_extra={
        "requestBody": {"content": {"application/json": {"schema": Action.model_json_schema()}}}
    },
)
@auth.within_scope
async def steer_release(
    request: Request,
    caller: auth.Operator,
    name: str,
    verb: str,
    idempotency_key: Annotated[str, Header(description="The same as `id` in the body.")] = "",
) -> Steered:
    if verb not in VERBS:
        raise errors.NotFound(f"unknown verb: {verb[:80]}", hint=f"use one of: {', '.join(VERBS)}")
    given = await bodies.read(request, Action, 'send {"why": …, "id": …}, or {}')
    context = contexts.of(request)
    await context.engine.read(lambda session: door.find(session, name, caller.scope))
    named = given.id or idempotency_key
    command_id = messages.command_id(named) if named else None
    asked = view.command(verb, caller.name, given.why, given.revision)
    receipt = await context.intake.submit(caller, door.verb_request(name, asked, command_id))
    return await _steered(request, receipt)


async def _steered(request: Request, receipt: messages.Receipt) -> Steered:
    name, context = receipt.stream.partition("/")[2], contexts.of(request)
    told = await context.engine.read(lambda session: door.read(session, name, context.now()))
    return Steered(receipt=shapes.Receipt.of(receipt), release=told.release)
