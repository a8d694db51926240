"""The client: one call, one request, over plain dicts.

Calls name a `Resource` and a `Key`. Failures come out as ours (answers.py); what may be
repeated without harm is repeated by the transport, everything else is for the caller.
"""

import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Mapping
from types import TracebackType
from typing import Literal, Self

import msgspec

from fairlead.kubernetes import api_errors, objects
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.client.transport import Call, ClientOptions, Transport
from fairlead.kubernetes.objects import EVERYTHING, Key, Object, Resource, Selection

PatchType = Literal["merge", "json", "apply"]
Propagation = Literal["Background", "Foreground", "Orphan"]

_PATCH_TYPES: Mapping[PatchType, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
# The server ends a watch by itself; only a server that does not is cut off by us.
_WATCH_GRACE = 15.0


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """A piece of a list, each object still in the bytes it came in."""

    items: list[msgspec.Raw]
    resource_version: str
    next: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Preconditions:
    """What must still be true of an object for it to be deleted."""

    uid: str = ""
    resource_version: str = ""

    def fields(self) -> dict[str, str]:
        named = {"uid": self.uid, "resourceVersion": self.resource_version}
        return {name: value for name, value in named.items() if value}


class WatchEvent(msgspec.Struct):
    """One line of a watch: what happened, and the object as bytes."""

    type: str
    object: msgspec.Raw


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _ListBody(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class Client:
    """Talks to one API server as one identity. Use as an async context manager."""

    def __init__(
        self,
        connection: Connection,
        *,
        manager: str = "fairlead",
        options: ClientOptions | None = None,
    ) -> None:
        self.manager = manager
        self._transport = Transport(connection, options or ClientOptions())

    async def __aenter__(self) -> Self:
        await self._transport.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._transport.close()

    async def get(self, resource: Resource, key: Key, subresource: str = "") -> Object:
        path = resource.path(key, subresource)
        return await self._object(Call("get", "GET", path, resource, repeatable=True))

    async def page(
        self,
        resource: Resource,
        selection: Selection = EVERYTHING,
        token: str = "",
        limit: int | None = None,
    ) -> Page:
        """One page of a list; `token` is the `next` of the page before. Limit 0: all at once."""
        size = self._transport.options.limits.page if limit is None else limit
        query = selection.query() | ({"limit": str(size)} if size else {})
        if token:
            query["continue"] = token
        path = resource.collection(selection.namespace)
        call = Call("list", "GET", path, resource, query, repeatable=True)
        answer = await self._transport.send(call)
        try:
            body = msgspec.json.decode(answer, type=_ListBody)
        except msgspec.MsgspecError as error:
            raise _unreadable(call) from error
        return Page(body.items or [], body.metadata.resource_version, body.metadata.continue_)

    async def each(
        self, resource: Resource, selection: Selection = EVERYTHING
    ) -> AsyncGenerator[Object]:
        """All objects, page by page. Items of a list carry no kind; here they get theirs."""
        token = ""
        while True:
            page = await self.page(resource, selection, token)
            for item in page.items:
                yield named(resource, msgspec.json.decode(item))
            token = page.next
            if not token:
                return

    async def create(self, resource: Resource, obj: Object) -> Object:
        path = resource.collection(objects.key_of(obj).namespace)
        query = {"fieldManager": self.manager}
        return await self._object(Call("create", "POST", path, resource, query, _encode(obj)))

    async def replace(self, resource: Resource, obj: Object, subresource: str = "") -> Object:
        """Write the whole object; with its resourceVersion, only over what was read."""
        path = resource.path(objects.key_of(obj), subresource)
        call = Call(
            *("update", "PUT", path, resource, {"fieldManager": self.manager}, _encode(obj)),
            # A lost answer to a versioned write would come back as a conflict with ourselves.
            repeatable=not objects.version_of(obj),
        )
        return await self._object(call)

    async def patch(
        self,
        resource: Resource,
        key: Key,
        change: Object | list[Object],
        *,
        kind: PatchType = "merge",
        subresource: str = "",
    ) -> Object:
        """Change parts: a merge patch, or a list of JSON patch operations."""
        path = resource.path(key, subresource)
        versioned = isinstance(change, list) or bool(objects.version_of(change))
        call = Call(
            *("patch", "PATCH", path, resource, {"fieldManager": self.manager}, _encode(change)),
            content_type=_PATCH_TYPES[kind],
            repeatable=not versioned,
        )
        return await self._object(call)

    async def rehearse(self, resource: Resource, key: Key, change: Object) -> Object:
        """What the object would be by a merge patch: a dry run, which writes nothing."""
        query = {"fieldManager": self.manager, "dryRun": "All"}
        call = Call(
            *("patch", "PATCH", resource.path(key), resource, query, _encode(change)),
            content_type=_PATCH_TYPES["merge"],
            repeatable=True,
        )
        return await self._object(call)

    async def apply(
        self,
        resource: Resource,
        obj: Object,
        *,
        force: bool = False,
        subresource: str = "",
        manager: str = "",
    ) -> Object:
        """Server-side apply: the object's fields become ours; others' fields stay."""
        path = resource.path(objects.key_of(obj), subresource)
        query = {"fieldManager": manager or self.manager, "force": "true" if force else "false"}
        call = Call(
            *("patch", "PATCH", path, resource, query, _encode(named(resource, obj))),
            content_type=_PATCH_TYPES["apply"],
            repeatable=not objects.version_of(obj),
        )
        return await self._object(call)

    async def delete(
        self,
        resource: Resource,
        key: Key,
        preconditions: Preconditions | None = None,
        propagation: Propagation = "Background",
    ) -> Object:
        """Ask for an end; what comes back is the object while finalizers hold it, or a Status."""
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        options["propagationPolicy"] = propagation
        fields = preconditions.fields() if preconditions else {}
        if fields:
            options["preconditions"] = fields
        call = Call("delete", "DELETE", resource.path(key), resource, body=_encode(options))
        # A repeat must not hit a successor of the same name, so it needs the UID.
        return await self._object(dataclasses.replace(call, repeatable="uid" in fields))

    async def watch(
        self, resource: Resource, selection: Selection, version: str, seconds: int
    ) -> AsyncGenerator[WatchEvent]:
        """Changes since `version`, with bookmarks, until the server ends it after `seconds`."""
        query = selection.query() | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
        }
        path = resource.collection(selection.namespace)
        call = Call("watch", "GET", path, resource, query, repeatable=True)
        stream = self._transport.lines(call, seconds + _WATCH_GRACE)
        async with contextlib.aclosing(stream) as lines:
            async for line in lines:
                yield _event(line, call)

    async def _object(self, call: Call) -> Object:
        try:
            return msgspec.json.decode(await self._transport.send(call), type=Object)
        except msgspec.MsgspecError as error:
            raise _unreadable(call) from error


def named(resource: Resource, obj: Object) -> Object:
    """The object with its kind; the API server leaves it out of list items."""
    return {"apiVersion": resource.api_version, "kind": resource.kind} | obj


def _encode(value: Object | list[Object]) -> bytes:
    return msgspec.json.encode(value)


def _event(line: bytes, call: Call) -> WatchEvent:
    try:
        event = msgspec.json.decode(line, type=WatchEvent)
        if event.type != "ERROR":
            return event
        status = msgspec.json.decode(event.object, type=Object)
    except msgspec.MsgspecError as error:
        raise _unreadable(call) from error
    said = api_errors.StatusError(int(status.get("code") or 500), status)
    raise api_errors.error_for(said, call.what) from said


def _unreadable(call: Call) -> api_errors.Busy:
    return api_errors.Busy(
        f"cannot read the API server's answer: {call.what}",
        hint="check for a proxy that changes answers",
    )
