"""The API of what is stored: list, read, write and remove, the same way for every kind."""

from typing import Annotated, Any

import msgspec
import pydantic
from fastapi import APIRouter, Query, Request

from fairlead.access import intake
from fairlead.areas.deployments.registry import definitions
from fairlead.areas.deployments.registry.definitions import Entry, Kind
from fairlead.engine import messages
from fairlead.web import api, auth, bodies, shapes
from fairlead.web import context as contexts

router = APIRouter(prefix="/api/v1", responses=api.FAILURES)


class StoredDefinition(pydantic.BaseModel):
    """Something stored, as it stands."""

    name: str
    version: int = pydantic.Field(description="Grows with each edit.")
    by: str = pydantic.Field(description="Who wrote this version.")
    whole: dict[str, Any] = pydantic.Field(description="The fields of its file, with defaults.")


class StoredReceipt(pydantic.BaseModel):
    """What became of a file that was handed in."""

    name: str
    revision: str = pydantic.Field(description="The version that is stored now.")
    url: str
    receipt: shapes.Receipt


class RemovedReceipt(pydantic.BaseModel):
    """What became of a removal."""

    receipt: shapes.Receipt


class Removal(pydantic.BaseModel):
    """What goes with a removal; all of it may be left out."""

    why: str = ""
    revision: str = ""
    id: str | None = None


Expects = Annotated[
    int | None, Query(ge=0, description="The version that was edited; another one is a 409.")
]
_FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


def _shown(found: Entry[Any]) -> StoredDefinition:
    whole = msgspec.to_builtins(found.content)
    return StoredDefinition(name=found.name, version=found.version, by=found.by, whole=whole)


async def put(
    request: Request, kind: Kind[Any], content: Any, expects: int | None
) -> tuple[str, messages.Receipt]:
    """Store what a caller sent, under the name that it gives itself."""
    context, caller = contexts.of(request), contexts.caller(request)
    definitions.check_caller(kind, caller)
    read = kind.read(content)
    key = kind.key(read)
    await context.engine.read(lambda s: definitions.check_references(s, read))
    data = {"content": msgspec.to_builtins(read), "by": caller.name, "expects": expects}
    asked = intake.Request(kind.stream(key), "Store", data)
    return key, await context.intake.submit(caller, asked)


def _read(kind: Kind[Any], words: str) -> None:
    @router.get(
        f"/{kind.plural}",
        name=f"list_{words}",
        summary=f"All {kind.plural} that are stored",
        tags=[kind.plural],
    )
    @auth.within_scope
    async def list_(
        request: Request, limit: api.Limit = 100, where: api.Where = ""
    ) -> list[StoredDefinition]:
        scope = contexts.caller(request).scope
        found = await contexts.of(request).engine.read(
            lambda session: definitions.listed(session, kind, where, scope, limit)
        )
        return [_shown(each) for each in found]

    @router.get(
        f"/{kind.plural}/{{name:path}}",
        name=f"get_{words}",
        summary=f"One {kind.name} as it stands",
        tags=[kind.plural],
    )
    @auth.within_scope
    async def get(request: Request, name: str) -> StoredDefinition:
        contexts.stream(request, kind.name, name)
        engine = contexts.of(request).engine
        return _shown(await engine.read(lambda s: definitions.get(s, kind, name)))


def _write(kind: Kind[Any], words: str) -> None:
    @router.post(
        f"/{kind.plural}",
        name=f"store_{words}",
        summary=f"Write one of the {kind.plural}, or a new version of it",
        tags=[kind.plural],
        openapi_extra=_FILE,
    )
    @auth.within_scope
    async def store(request: Request, expects: Expects = None) -> StoredReceipt:
        definitions.check_caller(kind, contexts.caller(request))
        key, receipt = await put(request, kind, await bodies.plain(request), expects)
        engine = contexts.of(request).engine
        now = await engine.read(lambda s: definitions.get(s, kind, key))
        return StoredReceipt(
            name=key,
            revision=f"version {now.version}",
            url=f"/api/v1/{kind.plural}/{key}",
            receipt=shapes.Receipt.of(receipt),
        )

    @router.post(
        f"/{kind.plural}/{{name:path}}/remove",
        name=f"remove_{words}",
        summary=f"Forget one of the {kind.plural}",
        tags=[kind.plural],
    )
    @auth.within_scope
    async def remove(request: Request, name: str) -> RemovedReceipt:
        context, caller = contexts.of(request), contexts.caller(request)
        definitions.check_caller(kind, caller)
        stream = contexts.stream(request, kind.name, name)
        given = await bodies.read(request, Removal, "send {}")
        await context.engine.read(lambda s: definitions.check_removable(s, kind, name))
        named = None if given.id is None else messages.command_id(given.id)
        asked = intake.Request(stream, "Remove", {"by": caller.name}, named)
        return RemovedReceipt(receipt=shapes.Receipt.of(await context.intake.submit(caller, asked)))


for _kind in definitions.KINDS.values():
    _read(_kind, _kind.plural.replace("-", "_"))
    _write(_kind, _kind.plural.replace("-", "_"))
