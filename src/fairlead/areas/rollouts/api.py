"""The API of rollouts: see them, and steer them with the verbs that people use."""

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import pydantic
from fastapi import APIRouter, Header, Query, Request

from fairlead import errors
from fairlead.access import intake, tokens
from fairlead.areas.rollouts import detail, history, projection, requests, run_samples
from fairlead.areas.rollouts import traffic_stats as numbers_
from fairlead.areas.rollouts.domain import actions
from fairlead.areas.rollouts.domain.declared_verbs import VERBS
from fairlead.engine import messages
from fairlead.web import api, auth, bodies, shapes
from fairlead.web import context as contexts

router = APIRouter(prefix="/api/v1/rollouts", tags=["rollouts"], responses=api.FAILURES)
_REASONED = " and ".join(name for name, verb in VERBS.items() if verb.takes_reason)
_REVISED = " and ".join(name for name, verb in VERBS.items() if verb.takes_revision)


class Action(pydantic.BaseModel):
    """What goes with a verb; all of it may be left out."""

    model_config = pydantic.ConfigDict(extra="forbid")

    why: str = pydantic.Field("", max_length=500, description=f"The reason, for {_REASONED}.")
    revision: str = pydantic.Field(
        "", description=f"The kept revision or label; empty is the last good one: {_REVISED}."
    )
    id: str | None = pydantic.Field(
        None, description="Your name for this request: the same id twice is taken once."
    )


class Steered(pydantic.BaseModel):
    """What became of a verb."""

    receipt: shapes.Receipt
    rollout: projection.Summary


@dataclass(frozen=True, slots=True)
class Moment(numbers_.Point):
    """A point with the version and the run that it was measured for."""

    version: str = ""
    run: int | None = None
    """None between two runs."""


class TrafficNumbers(pydantic.BaseModel):
    """What each version did with its requests, moment by moment."""

    recorded: bool = pydantic.Field(description="Whether anybody records them here.")
    items: list[Moment]


@router.get("", summary="Rollouts, newest first")
@auth.within_scope
async def list_rollouts(
    request: Request,
    before: Annotated[int | None, Query(ge=0, lt=2**63, description="Only older ones.")] = None,
    limit: api.Limit = 100,
    where: api.Where = "",
) -> shapes.Page[projection.Summary]:
    scope = contexts.caller(request).scope
    found, further = await contexts.of(request).engine.read(
        lambda session: requests.listed(session, limit, before, scope, where)
    )
    return shapes.Page(items=found, next=None if further is None else str(further))


@router.get("/{name:path}/numbers", summary="A rollout's requests over time")
@auth.within_scope
async def get_numbers(
    request: Request,
    name: str,
    since: Annotated[datetime | None, Query(description="Only later ones.")] = None,
) -> TrafficNumbers:
    context, scope = contexts.of(request), contexts.caller(request).scope
    now, after = context.now(), _utc(since) if since is not None else None
    told = await context.engine.read(lambda session: requests.read(session, name, now, scope))
    recorded = context.services.find(numbers_.TRAFFIC_STATS)
    if recorded is None:
        return TrafficNumbers(recorded=False, items=[])
    points = recorded.recent(told.rollout.name)
    return TrafficNumbers(
        recorded=True,
        items=[_moment(each, told.runs) for each in points if after is None or each.at > after],
    )


@router.get("/{name:path}", summary="One rollout with its plan, checks and history")
@auth.within_scope
async def get_rollout(request: Request, name: str) -> detail.Detail:
    context, scope = contexts.of(request), contexts.caller(request).scope
    now = context.now()
    return await context.engine.read(lambda session: requests.read(session, name, now, scope))


@router.post(
    "/{name:path}/{verb}",
    summary="Ask something of a rollout",
    description=f"The verbs: {', '.join(VERBS)}. One that does"
    " not fit now is a 409 that says why, and what would work.",
    openapi_extra={
        "requestBody": {"content": {"application/json": {"schema": Action.model_json_schema()}}}
    },
)
@auth.within_scope
async def steer(
    request: Request,
    caller: auth.Operator,
    name: str,
    verb: str,
    idempotency_key: Annotated[str, Header(description="The same as `id` in the body.")] = "",
) -> Steered:
    if verb not in VERBS:
        raise errors.NotFound(f"unknown verb: {verb[:80]}", hint=f"use one of: {', '.join(VERBS)}")
    if VERBS[verb].deletes:
        # Whoever may not start programs here does not end them for good either.
        intake.authorise(caller, tokens.Role.DEPLOYER)
    given = await bodies.read(request, Action, 'send {"why": …, "revision": …, "id": …}, or {}')
    action = actions.ActionRequest(verb, caller.name, given.why, given.revision)
    command_id = _command_id(given.id, idempotency_key)
    context, scope = contexts.of(request), contexts.caller(request).scope
    stream = await context.engine.read(lambda session: requests.find(session, name, scope))
    asked = requests.request(stream.name, action, command_id)
    with requests.in_place():
        receipt = await context.intake.submit(caller, asked)
    after = await context.engine.read(lambda s: requests.told(s, stream.name, context.now()))
    return Steered(receipt=shapes.Receipt.of(receipt), rollout=after.rollout)


def _command_id(named: str | None, key: str) -> messages.CommandId | None:
    if named is not None and key and named != key:
        raise errors.Rejected(
            f"two ids for one request: {named[:80]}, {key[:80]}",
            hint="send id in the body, or Idempotency-Key in a header",
        )
    either = named or key
    return messages.command_id(either) if either else None


def _moment(point: numbers_.Point, runs: history.Runs) -> Moment:
    run = run_samples.run_of(point, runs)
    version = run_samples.label_of(point.revision, runs)
    number = run.number if run else None
    return Moment(**dataclasses.asdict(point), version=version, run=number)


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise errors.Rejected(f"a time without a zone: {moment.isoformat()}", hint="end it with Z")
    return moment
