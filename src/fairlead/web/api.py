"""The JSON API: reads of what is kept, and the few things that may be asked of it."""

import dataclasses
from typing import Annotated, Any

import msgspec
import structlog
from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from fairlead import errors
from fairlead.access import intake
from fairlead.engine import clock, filters, messages, projections, visibility
from fairlead.engine import machine as machines
from fairlead.engine.store import protocol
from fairlead.web import auth, bodies, event_json, shapes
from fairlead.web import context as contexts

_log = structlog.get_logger(__name__)
_TOLD = {
    400: "The request is wrong as it stands.",
    401: "No token, or one that is wrong, expired or revoked.",
    403: "The caller's role is too small, or a foreign page asks.",
    404: "It names something that is not there.",
    409: "It clashes with what is recorded.",
    413: "The body is too large.",
    503: "The store did not answer; try again.",
}
FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": shapes.Failure, "description": text} for status, text in _TOLD.items()
}
router = APIRouter(prefix="/api/v1", responses=FAILURES)

Limit = Annotated[int, Query(ge=1, le=500, description="At most so many items.")]
Number = Annotated[int | None, Query(ge=0, lt=2**63)]
Where = Annotated[
    str,
    Query(
        max_length=filters.MOST_TEXT,
        description="Only those with these attributes, such as `phase=Paused and namespace=shop`.",
    ),
]


@router.get("/me", summary="Who the caller is", tags=["api"])
@auth.within_scope
async def me(request: Request) -> shapes.Caller:
    caller = contexts.caller(request)
    return shapes.Caller(
        name=caller.name, role=caller.role.word, token=caller.token, scope=caller.scope
    )


@router.get("/machines", summary="The machines with their words", tags=["machines"])
@auth.within_scope
async def list_machines(request: Request) -> list[shapes.Machine]:
    return [_machine(each) for each in contexts.of(request).engine.registry.machines]


async def _chosen(
    request: Request,
    machine: str | None = None,
    ended: bool | None = None,  # noqa: FBT001 - a query parameter, always named
    where: Where = "",
) -> visibility.StreamFilter:
    """Which streams the caller asks for, of those within the caller's scope."""
    fits = contexts.where(request, where, machine)
    scope = contexts.caller(request).scope
    return visibility.StreamFilter(machine, ended, scope=scope, where=fits)


@router.get("/streams", summary="Streams, newest first", tags=["streams"])
@auth.within_scope
async def list_streams(
    request: Request,
    chosen: Annotated[visibility.StreamFilter, Depends(_chosen)],
    before: Number = None,
    limit: Limit = 100,
) -> shapes.Page[shapes.Stream]:
    which = dataclasses.replace(chosen, before=before, limit=limit)
    found = await contexts.of(request).engine.read(lambda s: visibility.streams(s, which))
    items = [shapes.Stream.of(view) for view in found]
    further = str(items[-1].number) if found.more else None
    return shapes.Page(items=items, next=further)


@router.get(
    "/streams/{machine}/{key:path}/events",
    summary="One stream's events",
    tags=["streams"],
    response_model=shapes.EventPage,
)
@auth.within_scope
async def list_events(
    request: Request,
    machine: str,
    key: str,
    after: Annotated[int, Query(ge=0, lt=2**63, description="Only later ones.")] = 0,
    limit: Limit = 100,
) -> Response:
    name = contexts.stream(request, machine, key)

    def read(session: protocol.Session) -> bytes:
        view = visibility.stream(session, name)
        found = visibility.events(session, name, after, limit, visibility.raw)
        further = str(found[-1].seq) if found.more else None
        return event_json.page(found, further, kept_from=view.kept_from)

    return Response(await contexts.of(request).engine.read(read), media_type=event_json.MEDIA_TYPE)


@router.post(
    "/streams/{machine}/{key:path}/commands",
    summary="Ask something of a stream, in its machine's own words",
    description="Only the verbs of people; a command that is for machines is a 403 that names them."
    " A verb that says who asks says the caller's name.",
    tags=["streams"],
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": shapes.Command.model_json_schema()}},
        }
    },
)
@auth.within_scope
async def submit(request: Request, caller: auth.Operator, machine: str, key: str) -> shapes.Receipt:
    name = messages.stream_name(machine, key)
    hint = 'send {"type": …, "data": {…}, "id": …}'
    command = await bodies.read(request, shapes.Command, hint)
    given = None if command.id is None else messages.command_id(command.id)
    queue = messages.parse_queue(command.queue)
    if queue and caller.scope:
        # Else it could have its work done with the rights of any cluster or machine on the store.
        raise errors.Forbidden(
            f"a token of one project or namespace may not choose a queue: {queue}",
            hint="leave it out, or use a token without a scope",
        )
    wanted = intake.Request(name, command.type, command.data, given, queue)
    return shapes.Receipt.of(await contexts.of(request).intake.ask(caller, wanted))


@router.post(
    "/streams/{machine}/{key:path}/queue",
    summary="Give a stream to another queue, with all it asked for",
    tags=["streams"],
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": shapes.Move.model_json_schema()}},
        }
    },
)
async def move_stream(
    request: Request, caller: auth.Operator, machine: str, key: str
) -> shapes.Moved:
    name = messages.stream_name(machine, key)
    asked = await bodies.read(request, shapes.Move, 'send {"queue": "kubernetes@prod"}')
    engine = contexts.of(request).engine
    moved, effects = await engine.move([name], asked.queue)
    if not moved:
        raise errors.NotFound(f"no such stream: {name}", hint="list them with fairlead get")
    _log.info("stream_moved", stream=name, queue=asked.queue, caller=caller.name)
    return shapes.Moved(stream=name, queue=asked.queue, effects=effects)


@router.get("/streams/{machine}/{key:path}", summary="One stream", tags=["streams"])
@auth.within_scope
async def get_stream(request: Request, machine: str, key: str) -> shapes.Stream:
    name = contexts.stream(request, machine, key)
    view = await contexts.of(request).engine.read(lambda s: visibility.stream(s, name))
    return shapes.Stream.of(view)


@router.get(
    "/feed",
    summary="Events of all streams, in the order of commits",
    tags=["feed"],
    response_model=shapes.Page[shapes.Event],
)
async def read_feed(
    request: Request,
    after: Annotated[str, Query(description="A place in the feed; empty is its start.")] = "",
    limit: Limit = 100,
) -> Response:
    place = visibility.parse_place(after) if after else visibility.Place()

    def read(session: protocol.Session) -> bytes:
        found = visibility.feed(session, place, limit, visibility.raw)
        # Always somewhere to go on from: a feed has no last page.
        return event_json.page(found, str(found[-1].place if found else place))

    return Response(await contexts.of(request).engine.read(read), media_type=event_json.MEDIA_TYPE)


@router.get("/effects", summary="Effects that are not settled", tags=["effects"])
async def list_effects(
    request: Request,
    dead: Annotated[bool | None, Query(description="Only dead ones, or only others.")] = None,
    stream: str | None = None,
    after: Annotated[str, Query(description="An effect's id; empty is the start.")] = "",
    limit: Limit = 100,
) -> shapes.Page[shapes.Effect]:
    name = None if stream is None else messages.parse_stream(stream)
    place = visibility.parse_effect_id(after) if after else visibility.BEGINNING
    found = await contexts.of(request).engine.read(
        lambda s: visibility.effects(s, dead=dead, name=name, after=place, limit=limit)
    )
    items = [shapes.Effect.of(view) for view in found]
    return shapes.Page(items=items, next=items[-1].id if found.more else None)


@router.post(
    "/effects/{effect}/retry", summary="A dead effect starts over", tags=["effects"],
    status_code=204,
)  # fmt: skip
async def retry_effect(request: Request, _: auth.Operator, effect: str) -> None:
    await contexts.of(request).engine.retry(visibility.parse_effect_id(effect))


@router.post(
    "/effects/{effect}/discard", summary="A dead effect is given up", tags=["effects"],
    status_code=204,
)  # fmt: skip
async def discard_effect(request: Request, _: auth.Operator, effect: str) -> None:
    await contexts.of(request).engine.discard(visibility.parse_effect_id(effect))


@router.get("/timers", summary="Timers that have not fired", tags=["timers"])
async def list_timers(
    request: Request,
    dead: Annotated[bool | None, Query(description="Only dead ones, or only others.")] = None,
    limit: Limit = 100,
) -> list[shapes.Timer]:
    found = await contexts.of(request).engine.read(
        lambda s: visibility.timers(s, dead=dead, limit=limit)
    )
    return [shapes.Timer.of(view) for view in found]


_TIMER: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": shapes.TimerName.model_json_schema()}},
    }
}


@router.post(
    "/timers/retry", summary="A dead timer fires anew", tags=["timers"],
    status_code=204, openapi_extra=_TIMER,
)  # fmt: skip
async def retry_timer(request: Request, _: auth.Operator) -> None:
    await contexts.of(request).engine.retry_timer(*await _timer(request))


@router.post(
    "/timers/discard", summary="A dead timer is given up", tags=["timers"],
    status_code=204, openapi_extra=_TIMER,
)  # fmt: skip
async def discard_timer(request: Request, _: auth.Operator) -> None:
    await contexts.of(request).engine.discard_timer(*await _timer(request))


@router.get("/projections/{name}", summary="A projection's rows by key", tags=["projections"])
async def list_rows(
    request: Request, name: str, after: str = "", limit: Limit = 100
) -> shapes.Page[shapes.Row]:
    context = contexts.of(request)
    if name not in context.views:
        known = ", ".join(sorted(context.views)) or "none"
        raise errors.NotFound(f"no such projection: {name[:80]}", hint=f"known: {known}")
    found = await context.engine.read(lambda s: projections.rows(s, name, after, limit))
    items = [shapes.Row(key=key, data=data) for key, data in found]
    return shapes.Page(items=items, next=items[-1].key if found.more else None)


@router.get("/workers", summary="Who is at work", tags=["workers"])
async def list_workers(request: Request) -> list[shapes.Worker]:
    context = contexts.of(request)
    now = clock.to_millis(context.now())
    rows = await context.engine.read(lambda s: s.rows("live_workers", now=now))
    return [
        shapes.Worker(
            fence=fence,
            name=name,
            lease_until=clock.from_millis(until),
            queues=sorted(visibility.queues_in(serves)),
        )
        for fence, name, until, serves in rows
    ]


@router.get("/queues", summary="What waits in each queue, and who serves it", tags=["queues"])
async def list_queues(request: Request) -> list[shapes.Queue]:
    context = contexts.of(request)
    now = context.now()
    found = await context.engine.read(lambda s: visibility.queues(s, now))
    return [shapes.Queue.of(view, now) for view in found]


async def _timer(request: Request) -> tuple[messages.StreamName, str]:
    asked = await bodies.read(request, shapes.TimerName, 'send {"stream": …, "name": …}')
    return messages.parse_stream(asked.stream), asked.name


def _machine(machine: machines.AnyMachine) -> shapes.Machine:
    vocabulary = machine.vocabulary

    def words(union: Any) -> list[shapes.Word]:
        return [_word(each, machine.versions.get(each, 1)) for each in machines.members(union)]

    kinds = machine.attributes.kinds if machine.attributes else {}
    return shapes.Machine(
        name=machine.name,
        effects_in_order=machine.effects_in_order,
        attributes={
            name: list(kind) if isinstance(kind, tuple) else kind.__name__
            for name, kind in kinds.items()
        },
        states=words(vocabulary.states),
        commands=words(vocabulary.commands),
        events=words(vocabulary.events),
        effects=words(vocabulary.effects),
    )


def _word(type_: type, version: int) -> shapes.Word:
    try:
        schema = msgspec.json.schema(type_)
    except TypeError:
        # A field of a kind that JSON Schema has no word for.
        schema = None
    about = (type_.__doc__ or "").partition("\n")[0]
    return shapes.Word(name=type_.__name__, version=version, about=about, json_schema=schema)
