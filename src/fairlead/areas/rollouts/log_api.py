"""The logs of a workload's programs, for programs and on a page.

They may hold what no viewer is to see, so both take the role operator.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from fairlead import errors
from fairlead.areas.rollouts import detail, requests
from fairlead.areas.rollouts.domain import names
from fairlead.areas.rollouts.workload_logs import (
    MOST_LINES,
    WORKLOAD_LOGS,
    LogPage,
    LogRequest,
    revision,
)
from fairlead.web import api, auth
from fairlead.web import context as contexts

router = APIRouter(prefix="/api/v1/rollouts", tags=["rollouts"], responses=api.FAILURES)
pages = APIRouter(include_in_schema=False)
_ON_THE_PAGE = 300


def _asked(
    version: Annotated[str, Query(description="Also of stopped ones; else what runs.")] = "",
    tail: Annotated[int, Query(ge=1, le=MOST_LINES, description="Lines of each process.")] = 100,
    after: Annotated[str, Query(max_length=10_000)] = "",
) -> LogRequest:
    return LogRequest("", version, tail, after)


@router.get(
    "/{name:path}/logs",
    summary="What the programs of a workload on this machine wrote",
    description="`next` of an answer, given as `after`, is answered with what was written since.",
)
@auth.within_scope
async def get_logs(
    request: Request,
    _: auth.Operator,
    name: str,
    asked: Annotated[LogRequest, Depends(_asked)],
) -> LogPage:
    return await _read(request, await _told(request, name), asked)


@pages.get("/rollouts/{name:path}/logs")
@auth.within_scope
async def show_logs(request: Request, _: auth.Operator, name: str, version: str = "") -> Response:
    told = await _told(request, name)
    page = await _read(request, told, LogRequest("", version, _ON_THE_PAGE))
    return contexts.page(
        request, "rollouts/logs.html", one=told.rollout, lines=page.lines, version=version
    )


async def _told(request: Request, name: str) -> detail.Detail:
    context, scope = contexts.of(request), contexts.caller(request).scope
    now = context.now()
    return await context.engine.read(lambda session: requests.read(session, name, now, scope))


async def _read(request: Request, told: detail.Detail, asked: LogRequest) -> LogPage:
    logs = contexts.of(request).services.find(WORKLOAD_LOGS)
    name = told.rollout.name
    if logs is None or names.is_of_cluster(name):
        raise errors.NotFound(
            f"no logs are kept here of: {told.rollout.title}",
            hint="on Kubernetes, kubectl logs shows those of its pods",
        )
    chosen = revision(told, asked.revision)
    return await logs.read(LogRequest(name, chosen, asked.tail, asked.after))
