"""The API of verbs: what people ask of a stack or a deployment, in their own name."""

import msgspec
import pydantic
from fastapi import APIRouter, Request

from fairlead.access import intake
from fairlead.areas.deployments import verbs
from fairlead.areas.deployments.domain.declared_verbs import OF_MACHINES
from fairlead.engine import messages
from fairlead.web import api, auth, bodies, shapes
from fairlead.web import context as contexts

router = APIRouter(prefix="/api/v1", responses=api.FAILURES)


class DeploymentAction(pydantic.BaseModel):
    """What goes with a verb; all of it may be left out."""

    model_config = pydantic.ConfigDict(extra="forbid")

    why: str = pydantic.Field("", max_length=500, description="The reason, for the history.")
    revision: str = pydantic.Field("", max_length=80, description="Not used here.")
    id: str | None = pydantic.Field(
        None, description="Your name for this request: the same id twice is taken once."
    )


class DeploymentSteered(pydantic.BaseModel):
    """What became of a verb."""

    receipt: shapes.Receipt


def _mount(machine: str, known: tuple[str, ...]) -> None:
    @router.post(
        f"/{machine}s/{{name:path}}/{{verb}}",
        name=f"steer_{machine}",
        summary=f"Ask something of a {machine}",
        description=f"The verbs: {', '.join(known)}. One that does not fit now is refused.",
        tags=[f"{machine}s"],
        openapi_extra={
            "requestBody": {
                "content": {"application/json": {"schema": DeploymentAction.model_json_schema()}}
            }
        },
    )
    @auth.within_scope
    async def steer(
        request: Request, caller: auth.Operator, name: str, verb: str
    ) -> DeploymentSteered:
        stream = contexts.stream(request, machine, name)
        given = await bodies.read(request, DeploymentAction, 'send {"why": …, "id": …}, or {}')
        context = contexts.of(request)
        asked = verbs.command(machine, verb, caller.name, given.why)
        verbs.check_known(machine, name, await context.intake.find(stream))
        named = messages.command_id(given.id) if given.id else None
        data = msgspec.to_builtins(asked)
        wanted = intake.Request(stream, type(asked).__name__, data, named)
        receipt = await context.intake.submit(caller, wanted)
        return DeploymentSteered(receipt=shapes.Receipt.of(receipt))


for _machine, _known in OF_MACHINES.items():
    _mount(_machine, _known)
