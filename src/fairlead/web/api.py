"""The JSON API: reads of what is kept, and the few things that may be asked of it."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request

from fairlead import errors
from fairlead.engine import clock, library, messages, projections
from fairlead.engine import machine as machines
from fairlead.intents import intake
from fairlead.web import auth, bodies, shapes
from fairlead.web import context as contexts

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


@router.get("/me", summary="Who the caller is", tags=["api"])
async def me(request: Request) -> shapes.Caller:
    caller = contexts.caller(request)
    return shapes.Caller(name=caller.name, role=caller.role.word, token=caller.token)


@router.get("/machines", summary="The machines with their words", tags=["machines"])
async def list_machines(request: Request) -> list[shapes.Machine]:
    return [_machine(each) for each in contexts.of(request).engine.repertoire.machines]


@router.get("/streams", summary="Streams, newest first", tags=["streams"])
async def list_streams(
    request: Request,
    machine: str | None = None,
    ended: bool | None = None,  # noqa: FBT001 - a query parameter, always named
    before: Number = None,
    limit: Limit = 100,
) -> shapes.Page[shapes.Stream]:
    which = library.StreamFilter(machine, ended, before, limit + 1)
    found = await contexts.of(request).engine.read(lambda s: library.streams(s, which))
    items = [shapes.Stream.of(view) for view in found[:limit]]
    further = str(items[-1].number) if len(found) > limit else None
    return shapes.Page(items=items, next=further)


@router.get("/streams/{machine}/{key:path}/events", summary="One stream's events", tags=["streams"])
async def list_events(
    request: Request,
    machine: str,
    key: str,
    after: Annotated[int, Query(ge=0, lt=2**63, description="Only later ones.")] = 0,
    limit: Limit = 100,
) -> shapes.Page[shapes.Event]:
    name = messages.stream_name(machine, key)
    engine = contexts.of(request).engine
    found = await engine.read(lambda s: library.events(s, name, after, limit + 1))
    if not found:
        # No events after this one, or no such stream at all: the latter is an error.
        await engine.read(lambda s: library.stream(s, name))
    items = [shapes.Event.of(view) for view in found[:limit]]
    return shapes.Page(items=items, next=str(items[-1].seq) if len(found) > limit else None)


@router.post(
    "/streams/{machine}/{key:path}/commands",
    summary="Give a command to a stream",
    tags=["streams"],
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": shapes.Command.model_json_schema()}},
        }
    },
)
async def submit(request: Request, caller: auth.Operator, machine: str, key: str) -> shapes.Receipt:
    name = messages.stream_name(machine, key)
    hint = 'send {"type": …, "data": {…}, "id": …}'
    command = await bodies.read(request, shapes.Command, hint)
    given = None if command.id is None else messages.command_id(command.id)
    wanted = intake.Request(name, command.type, command.data, given)
    return shapes.Receipt.of(await contexts.of(request).intake.submit(caller, wanted))


@router.get("/streams/{machine}/{key:path}", summary="One stream", tags=["streams"])
async def get_stream(request: Request, machine: str, key: str) -> shapes.Stream:
    name = messages.stream_name(machine, key)
    view = await contexts.of(request).engine.read(lambda s: library.stream(s, name))
    return shapes.Stream.of(view)


@router.get("/feed", summary="Events of all streams, in the order of commits", tags=["feed"])
async def read_feed(
    request: Request,
    after: Annotated[str, Query(description="A place in the feed; empty is its start.")] = "",
    limit: Limit = 100,
) -> shapes.Page[shapes.Event]:
    place = library.parse_place(after) if after else library.Place()
    found = await contexts.of(request).engine.read(lambda s: library.feed(s, place, limit))
    items = [shapes.Event.of(view) for view in found]
    # Always somewhere to go on from: a feed has no last page.
    return shapes.Page(items=items, next=items[-1].place if items else str(place))


@router.get("/effects", summary="Effects that are not settled", tags=["effects"])
async def list_effects(
    request: Request,
    dead: Annotated[bool | None, Query(description="Only dead ones, or only others.")] = None,
    stream: str | None = None,
    after: Annotated[str, Query(description="An effect's id; empty is the start.")] = "",
    limit: Limit = 100,
) -> shapes.Page[shapes.Effect]:
    name = None if stream is None else messages.parse_stream(stream)
    place = library.parse_effect_id(after) if after else library.BEGINNING
    found = await contexts.of(request).engine.read(
        lambda s: library.effects(s, dead=dead, name=name, after=place, limit=limit + 1)
    )
    items = [shapes.Effect.of(view) for view in found[:limit]]
    return shapes.Page(items=items, next=items[-1].id if len(found) > limit else None)


@router.post(
    "/effects/{effect}/retry", summary="A dead effect starts over", tags=["effects"],
    status_code=204,
)  # fmt: skip
async def retry_effect(request: Request, _: auth.Operator, effect: str) -> None:
    await contexts.of(request).engine.retry(library.parse_effect_id(effect))


@router.post(
    "/effects/{effect}/discard", summary="A dead effect is given up", tags=["effects"],
    status_code=204,
)  # fmt: skip
async def discard_effect(request: Request, _: auth.Operator, effect: str) -> None:
    await contexts.of(request).engine.discard(library.parse_effect_id(effect))


@router.get("/projections/{name}", summary="A projection's rows by key", tags=["projections"])
async def list_rows(
    request: Request, name: str, after: str = "", limit: Limit = 100
) -> shapes.Page[shapes.Row]:
    context = contexts.of(request)
    if name not in context.views:
        known = ", ".join(sorted(context.views)) or "none"
        raise errors.NotFound(f"no such projection: {name[:80]}", hint=f"known: {known}")
    found = await context.engine.read(lambda s: projections.rows(s, name, after, limit + 1))
    items = [shapes.Row(key=key, data=data) for key, data in found[:limit]]
    return shapes.Page(items=items, next=items[-1].key if len(found) > limit else None)


@router.get("/workers", summary="Who is at work", tags=["workers"])
async def list_workers(request: Request) -> list[shapes.Worker]:
    context = contexts.of(request)
    now = clock.to_millis(context.now())
    rows = await context.engine.read(lambda s: s.rows("live_workers", now=now))
    return [
        shapes.Worker(fence=fence, name=name, lease_until=clock.from_millis(until))
        for fence, name, until in rows
    ]


def _machine(machine: machines.AnyMachine) -> shapes.Machine:
    vocabulary = machine.vocabulary

    def words(union: Any) -> list[shapes.Word]:
        return [_word(each, machine.versions.get(each, 1)) for each in machines.members(union)]

    return shapes.Machine(
        name=machine.name,
        effects_in_order=machine.effects_in_order,
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
