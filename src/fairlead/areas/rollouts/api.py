"""The API of rollouts: see them, and steer them with the verbs that people use."""

from datetime import datetime
from typing import Annotated

import pydantic
from fastapi import APIRouter, Header, Query, Request

from fairlead import errors
from fairlead.domain.rollouts import choices, detail, rows
from fairlead.domain.rollouts import numbers as numbers_
from fairlead.engine import library, messages
from fairlead.intents import requests as door
from fairlead.web import api, auth, bodies, shapes
from fairlead.web import context as contexts

router = APIRouter(prefix="/api/v1/rollouts", tags=["rollouts"], responses=api.FAILURES)


class Wish(pydantic.BaseModel):
    """What goes with a verb; all of it may be left out, but a rollback needs its revision."""

    model_config = pydantic.ConfigDict(extra="forbid")

    why: str = pydantic.Field("", max_length=500, description="Told with it: pause and abort.")
    revision: str = pydantic.Field("", description="The kept revision or label: rollback.")
    id: str | None = pydantic.Field(
        None, description="Your name for this request: the same id twice is taken once."
    )


class Steered(pydantic.BaseModel):
    """What became of a verb."""

    receipt: shapes.Receipt
    rollout: rows.Summary


class Numbers(pydantic.BaseModel):
    """What both versions did with their requests, moment by moment."""

    recorded: bool = pydantic.Field(description="Whether anybody records them here.")
    items: list[numbers_.Point]


@router.get("", summary="Rollouts, newest first")
async def list_rollouts(
    request: Request,
    before: Annotated[int | None, Query(ge=0, lt=2**63, description="Only older ones.")] = None,
    limit: api.Limit = 100,
) -> shapes.Page[rows.Summary]:
    found, further = await contexts.of(request).engine.read(
        lambda session: door.listed(session, limit, before)
    )
    return shapes.Page(items=found, next=None if further is None else str(further))


@router.get("/{name:path}/numbers", summary="A rollout's requests over time")
async def get_numbers(
    request: Request,
    name: str,
    since: Annotated[datetime | None, Query(description="Only later ones.")] = None,
) -> Numbers:
    context = contexts.of(request)
    stream = await context.engine.read(lambda session: door.find(session, name))
    if context.numbers is None:
        return Numbers(recorded=False, items=[])
    points = context.numbers.recent(_key(stream))
    return Numbers(
        recorded=True, items=[each for each in points if since is None or each.at > _utc(since)]
    )


@router.get("/{name:path}", summary="One rollout with its plan, checks and history")
async def get_rollout(request: Request, name: str) -> detail.Detail:
    context = contexts.of(request)
    now = context.now()
    return await context.engine.read(lambda session: door.look(session, name, now))


@router.post(
    "/{name:path}/{verb}",
    summary="Ask something of a rollout",
    description="The verbs: approve, promote, pause, resume, abort, retry, rollback. One that does"
    " not fit now is a 409 that says why, and what would work.",
    openapi_extra={
        "requestBody": {"content": {"application/json": {"schema": Wish.model_json_schema()}}}
    },
)
async def steer(
    request: Request,
    caller: auth.Operator,
    name: str,
    verb: str,
    idempotency_key: Annotated[str, Header(description="The same as `id` in the body.")] = "",
) -> Steered:
    if verb not in choices.WORDS:
        raise errors.NotFound(
            f"not a verb of rollouts: {verb[:80]}", hint=f"use one of: {', '.join(choices.WORDS)}"
        )
    given = await bodies.read(request, Wish, 'send {"why": …, "revision": …, "id": …}, or {}')
    wish = choices.Wish(verb, caller.name, given.why, given.revision)
    command_id = _command_id(given.id, idempotency_key)
    context = contexts.of(request)
    stream = await context.engine.read(lambda session: door.find(session, name))
    asked = door.request(stream.name, wish, command_id)
    with door.in_place():
        receipt = await context.intake.submit(caller, asked)
    after = await context.engine.read(lambda s: door.look(s, _key(stream), context.now()))
    return Steered(receipt=shapes.Receipt.of(receipt), rollout=after.rollout)


def _command_id(named: str | None, key: str) -> messages.CommandId | None:
    if named is not None and key and named != key:
        raise errors.Rejected(
            f"two ids for one request: {named[:80]}, {key[:80]}",
            hint="send id in the body, or Idempotency-Key in a header",
        )
    either = named or key
    return messages.command_id(either) if either else None


def _key(stream: library.StreamView) -> str:
    return stream.name.partition("/")[2]


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise errors.Rejected(f"a time without a zone: {moment.isoformat()}", hint="end it with Z")
    return moment
