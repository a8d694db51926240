"""The API for people who deploy: a push target, and the commit, branch or tag of it."""

import hashlib
from typing import Annotated

import msgspec
import pydantic
from fastapi import APIRouter, Depends, Request

from fairlead import errors
from fairlead.access import intake, tokens
from fairlead.areas.deployments.domain.trigger.messages import Source, Start, Target, trigger_stream
from fairlead.areas.deployments.registry import definitions
from fairlead.areas.deployments.specs import build
from fairlead.areas.deployments.triggers.providers import PROVIDERS
from fairlead.engine import messages
from fairlead.web import api, auth, bodies, shapes
from fairlead.web import context as contexts

router = APIRouter(prefix="/api/v1/triggers", tags=["triggers"], responses=api.FAILURES)
Deployer = Annotated[intake.Caller, Depends(auth.needs(tokens.Role.DEPLOYER))]
_REF = r"^[^\x00-\x20\x7f~^:?*\[\\]+$"


class StartRequest(pydantic.BaseModel):
    """What to deploy: exactly one of commit, branch and tag."""

    model_config = pydantic.ConfigDict(extra="forbid")

    target: str = pydantic.Field(description="A push target: ENVIRONMENT/APPLICATION.")
    commit: str = pydantic.Field("", pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})?$")
    branch: str = pydantic.Field("", max_length=250, pattern=f"{_REF}|^$")
    tag: str = pydantic.Field("", max_length=250, pattern=f"{_REF}|^$")
    flags: list[str] = pydantic.Field([], description="Such as quick or db_only.")
    id: str | None = pydantic.Field(
        None, description="Your name for this request: the same id twice is taken once."
    )


class StartReceipt(pydantic.BaseModel):
    """What became of the request."""

    trigger: str
    receipt: shapes.Receipt


@router.post(
    "",
    summary="Deploy a commit, branch or tag",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": StartRequest.model_json_schema()}},
        }
    },
)
@auth.within_scope
async def start_trigger(request: Request, caller: Deployer) -> StartReceipt:
    context = contexts.of(request)
    asked = await bodies.read(request, StartRequest, 'send {"target": …, "commit": …}')
    if sum(map(bool, (asked.commit, asked.branch, asked.tag))) != 1:
        raise errors.Rejected(
            "needs exactly one of commit, branch and tag", hint="say which version is meant"
        )
    # Whoever may not ask there need not know what there is.
    contexts.stream(request, definitions.PUSH_TARGETS.name, asked.target)
    found = await context.engine.read(
        lambda session: definitions.get(session, definitions.PUSH_TARGETS, asked.target)
    )
    target = found.content
    await context.engine.read(
        lambda session: definitions.get(session, definitions.ENVIRONMENTS, target.environment)
    )
    ref = f"refs/heads/{asked.branch}" if asked.branch else f"refs/tags/{asked.tag}"
    ref = "" if asked.commit else ref
    named = intake.fresh_id() if asked.id is None else messages.command_id(asked.id)
    digest = hashlib.blake2b(f"{caller.token} {named}".encode(), digest_size=8).hexdigest()
    reports = PROVIDERS[target.provider].reports
    start = Start(
        f"{target.name}/{digest}",
        Source(target.provider, target.repository, ref, asked.commit, reports),
        (Target(target.environment, target.application, target.path),),
        f"started for {asked.branch or asked.tag or asked.commit[:12]}",
        caller.name,
        tuple(build.flag(each) for each in asked.flags),
    )
    stream = trigger_stream(start.trigger)
    command = intake.Request(stream, "Start", msgspec.to_builtins(start), named)
    receipt = await context.intake.submit(caller, command)
    return StartReceipt(trigger=start.trigger, receipt=shapes.Receipt.of(receipt))
