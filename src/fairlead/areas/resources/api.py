"""The API of resources: what is reconciled, and where it stands."""

from fastapi import APIRouter, Request

from fairlead.areas.resources import view
from fairlead.web import api, auth, shapes
from fairlead.web import context as contexts

router = APIRouter(prefix="/api/v1/resources", tags=["resources"], responses=api.FAILURES)


@router.get("", summary="Resources that are reconciled, newest first")
@auth.within_scope
async def list_resources(
    request: Request, before: api.Number = None, limit: api.Limit = 100, where: api.Where = ""
) -> shapes.Page[view.Summary]:
    scope = contexts.caller(request).scope
    found, further = await contexts.of(request).engine.read(
        lambda session: view.listed(session, limit, where, scope, before)
    )
    return shapes.Page(items=[*found], next=None if further is None else str(further))


@router.get("/{id:path}", summary="One resource, by its id in the cloud")
@auth.within_scope
async def get_resource(request: Request, id: str) -> view.Summary:  # noqa: A002 - the name in the path
    context, scope = contexts.of(request), contexts.caller(request).scope
    now = context.now()
    return await context.engine.read(lambda session: view.read(session, id, now, scope))
