"""A few typed calls to a Kubernetes API server, for the tests' own hands.

Not the client that Fairlead gadgets: what tests look with must not be what they look at.
"""

import asyncio
import contextlib
import io
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, cast

import aiohttp

Json = dict[str, Any]

_ANSWER_SECONDS = 30.0
_LINE_BYTES = 2**24
_GONE = 410


class ApiError(Exception):
    """The API server said no."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(f"{status} {body.get('reason', '')}: {body.get('message', '')}")
        self.status = status
        self.body = body


def path(api: str, resource: str, namespace: str = "", name: str = "") -> str:
    """The address of a collection or an object: path("apps/v1", "deployments", "shop", "web")."""
    root = f"/apis/{api}" if "/" in api else f"/api/{api}"
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{scope}/{resource}" + (f"/{name}" if name else "")


def dumped(body: list[Json]) -> bytes:
    """A JSON patch, which is a list and not an object."""
    return json.dumps(body).encode()


@contextlib.asynccontextmanager
async def connect(url: str, token: str, trust: ssl.SSLContext | None) -> AsyncIterator["Client"]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connector = aiohttp.TCPConnector(ssl=trust or False, limit=0)
    async with aiohttp.ClientSession(
        url,
        headers=headers,
        connector=connector,
        read_bufsize=_LINE_BYTES,
        timeout=aiohttp.ClientTimeout(total=_ANSWER_SECONDS),
    ) as session:
        yield Client(session)


class Client:
    """One user of one API server."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def get(self, where: str, **query: str) -> Json:
        return await self.send("GET", where, query=query)

    async def create(self, where: str, body: Json | bytes) -> Json:
        """An object as a dictionary, or as the bytes of a YAML document."""
        kind = "application/yaml" if isinstance(body, bytes) else "application/json"
        return await self.send("POST", where, body, kind)

    async def apply(self, where: str, body: Json, manager: str = "test") -> Json:
        kind = "application/apply-patch+yaml"
        return await self.send("PATCH", where, body, kind, {"fieldManager": manager})

    async def patch(self, where: str, body: Json) -> Json:
        return await self.send("PATCH", where, body, "application/merge-patch+json")

    async def replace(self, where: str, body: Json) -> Json:
        return await self.send("PUT", where, body)

    async def delete(self, where: str, propagation: str = "Background") -> Json:
        return await self.send("DELETE", where, {"propagationPolicy": propagation})

    async def send(
        self,
        method: str,
        where: str,
        body: Json | bytes | None = None,
        kind: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> Json:
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        # As a stream, because aiohttp warns of larger bytes and warnings are errors here.
        data = None if content is None else io.BytesIO(content)
        headers = {} if data is None else {"Content-Type": kind}
        async with self._session.request(
            method, where, data=data, params=query, headers=headers
        ) as answer:
            content = await answer.read()
            found = (
                cast("Json", json.loads(content)) if answer.content_type.endswith("json") else {}
            )
            if not answer.ok:
                raise ApiError(answer.status, found or {"message": content.decode()})
            return found

    @contextlib.asynccontextmanager
    async def watch(self, where: str, **query: str) -> AsyncIterator[AsyncIterator[Json]]:
        """Events as they come, until the server ends the watch; an ERROR event is raised."""
        asked = {**query, "watch": "true"}
        forever = aiohttp.ClientTimeout(total=None, sock_read=None)
        async with self._session.get(where, params=asked, timeout=forever) as answer:
            if not answer.ok:
                raise ApiError(answer.status, await answer.json())
            async with contextlib.aclosing(_events(answer)) as events:
                yield events

    async def wait_for(
        self, where: str, condition: Callable[[Json], bool], seconds: float = 120.0
    ) -> Json:
        """The object once it fulfils the condition; told by a watch, not by asking again."""
        return await self._wait(where, lambda found: bool(found) and condition(found), seconds)

    async def wait_until_gone(self, where: str, seconds: float = 120.0) -> None:
        await self._wait(where, lambda found: not found, seconds)

    async def _wait(self, where: str, fulfilled: Callable[[Json], bool], seconds: float) -> Json:
        last: Json = {}
        try:
            async with (
                asyncio.timeout(seconds),
                contextlib.aclosing(self._states(where)) as states,
            ):
                async for last in states:
                    if fulfilled(last):
                        break
        except TimeoutError:
            raise AssertionError(f"not so after {seconds} s: {where} is {last}") from None
        return last

    async def _states(self, where: str) -> AsyncGenerator[Json, None]:
        """What the object is now and after every change; empty while it is not there."""
        collection, name = where.rsplit("/", 1)
        chosen = {"fieldSelector": f"metadata.name={name}"}
        while True:
            listed = await self.get(collection, **chosen)
            yield listed["items"][0] if listed["items"] else {}
            since = {"resourceVersion": listed["metadata"]["resourceVersion"]}
            try:
                async with self.watch(collection, **chosen, **since) as events:
                    async for event in events:
                        yield {} if event["type"] == "DELETED" else event["object"]
            except ApiError as refused:
                if refused.status != _GONE:
                    raise


async def _events(answer: aiohttp.ClientResponse) -> AsyncGenerator[Json, None]:
    async for line in answer.content:
        event = json.loads(line)
        if event["type"] == "ERROR":
            raise ApiError(event["object"].get("code", 0), event["object"])
        yield event


def _decoded(answer: aiohttp.ClientResponse, content: bytes) -> Json:
    # Health checks and proxies answer in plain text.
    is_json = answer.content_type.endswith("json")
    return cast("Json", json.loads(content)) if is_json else {}
