"""The door for deployments: what `fairlead deploy` calls with a file of kind deployment."""

from typing import Annotated, Any

import pydantic
from fastapi import APIRouter, Depends, Request

from fairlead import errors
from fairlead.access import intake, scopes, tokens
from fairlead.areas.deployments import requests
from fairlead.areas.deployments.domain.spec import deployment_stream
from fairlead.areas.deployments.registry import definitions
from fairlead.areas.deployments.specs.environment import Cluster, Environment
from fairlead.engine.store import protocol
from fairlead.web import api, auth, bodies, shapes
from fairlead.web import context as contexts

router = APIRouter(
    prefix="/api/v1/deployments", tags=["deployments"], responses=api.router.responses
)
# Whoever deploys decides which images run, with the rights of the role that the cluster names.
Deployer = Annotated[intake.Caller, Depends(auth.needs(tokens.Role.DEPLOYER))]


class DeploymentRequested(pydantic.BaseModel):
    """What became of a request for a deployment."""

    name: str = pydantic.Field(description="ENVIRONMENT/APPLICATION/VERSION, and perhaps a number.")
    revision: str = pydantic.Field(description="The version.")
    url: str = pydantic.Field(description="Its stream, for `fairlead events`.")
    receipt: shapes.Receipt


class DeploymentAsDeployed(pydantic.BaseModel):
    """What a deployment was requested with."""

    name: str
    whole: dict[str, Any] = pydantic.Field(description="Its specification.")


@router.post(
    "",
    summary="Bring a version of an application to an environment",
    description="The body is what `fairlead deploy` reads from a file of kind deployment and from"
    " the files that it names: docs/reference/deployments.md has the fields.",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    },
)
@auth.within_scope
async def request_deployment(request: Request, caller: Deployer) -> DeploymentRequested:
    context = contexts.of(request)
    find = context.services.find
    targets = requests.Targets(find(requests.AWS_TARGET), find(requests.MACHINE))

    async def stored(name: str, clustered: bool) -> tuple[Environment, Cluster | None]:  # noqa: FBT001 - what is asked for
        def read(session: protocol.Session) -> tuple[Environment, Cluster | None]:
            if not clustered:
                return definitions.get(session, definitions.ENVIRONMENTS, name).content, None
            environment, _, cluster = definitions.place(session, name)
            return environment, cluster

        return await context.engine.read(read)

    deployer = requests.Deployer(targets, context.intake, stored)
    content = await bodies.plain(request)
    name, receipt = await deployer.deploy(caller, content)
    return DeploymentRequested(
        name=name,
        revision=content["version"],
        url=str(deployment_stream(name)),
        receipt=shapes.Receipt.of(receipt),
    )


@router.get("/{name:path}", summary="What a deployment was requested with")
@auth.within_scope
async def get_deployment(request: Request, caller: Deployer, name: str) -> DeploymentAsDeployed:
    stream = deployment_stream(name)
    known = await contexts.of(request).intake.find(stream)
    if known is None or not scopes.covers(caller.scope, stream):
        raise errors.NotFound(
            f"no such deployment: {name[:80]}", hint="list them: fairlead get deployments"
        )
    return DeploymentAsDeployed(name=name, whole=known.data["spec"] or {})
