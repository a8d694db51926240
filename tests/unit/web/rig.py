"""A web app on a real engine and a SQLite file, asked without a socket."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from fairlead import bootstrap, catalog, errors, settings
from fairlead.access import intake, tokens
from fairlead.cli import serve_web
from fairlead.engine import outbox, projections, service, visibility
from fairlead.engine.sample import depot, trip
from fairlead.engine.sample.messages import Arrive, DriveLeg
from fairlead.engine.store import protocol
from fairlead.web import app as web
from fairlead.web import context as contexts
from fairlead.web import server
from fairlead.web.layout import Layout

LOOPBACK = server.Bind("127.0.0.1", 8600)
PUBLIC = server.Bind("0.0.0.0", 8600)  # noqa: S104 - nothing listens, the app is only told so
ORDER = {"type": "Order", "data": {"depot": "a", "trips": 1, "legs": 2}, "id": "order-1"}


async def drive(effect: DriveLeg, _: outbox.EffectContext) -> Arrive:
    return Arrive(effect.leg)


async def refuse(_: DriveLeg, __: outbox.EffectContext) -> None:
    raise errors.Rejected("the road is closed", hint="wait for summer")


def _count(row: projections.Row | None, event: visibility.EventView) -> projections.Row:
    return {"events": (row or {"events": 0})["events"] + 1, "last": event.type}


EVENTS = projections.Projection(
    "events_by_stream", 1, lambda event: event.stream, projections.one_by_one(_count)
)
CAST = bootstrap.Installation(
    machines=[depot.DEPOT, trip.TRIP],
    handlers={DriveLeg: outbox.Handler(drive)},
    views=[EVENTS],
    areas=catalog.AREAS,
)
BLOCKED = replace(CAST, handlers={DriveLeg: outbox.Handler(refuse, attempts=1)})


@dataclass(frozen=True, slots=True)
class Site:
    """A running app with everything behind it."""

    app: FastAPI
    client: httpx.AsyncClient
    context: contexts.WebContext
    store: protocol.Store

    @property
    def engine(self) -> service.Engine:
        return self.context.engine

    async def token(self, role: tokens.Role, expires_at: datetime | None = None) -> tokens.Minted:
        request = tokens.TokenRequest(f"a {role.word}", role, expires_at)
        return await self.engine.write(lambda s: tokens.mint(s, request, datetime.now(UTC)))

    async def settled(self, stream: str) -> dict[str, Any]:
        """The stream once it has ended."""
        with self.engine.watch() as signal:
            async with asyncio.timeout(60):
                while True:
                    body = (await self.client.get(f"/api/v1/streams/{stream}")).json()
                    if body.get("ended_at"):
                        return dict(body)
                    await self.engine.wait(signal, timedelta(seconds=0.2))


@contextlib.asynccontextmanager
async def site(
    folder: Path, cast: bootstrap.Installation = CAST, bind: server.Bind = LOOPBACK
) -> AsyncIterator[Site]:
    chosen = settings.Settings(store=settings.StoreSettings(state_dir=folder))
    store = cast.store(chosen.store)
    store.migrate()
    async with cast.engine(chosen, store).running() as engine:
        mounts = serve_web.mounted(cast)
        context = contexts.WebContext(
            *(engine, store, bind, intake.Intake(engine), cast.projection_names),
            services=cast.services,
            layout=Layout(mounts),
        )
        app = web.create(context, mounts)
        transport = httpx.ASGITransport(app, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url=LOOPBACK.url) as client:
            yield Site(app, client, context, store)


def bearer(token: tokens.Minted) -> dict[str, str]:
    return {"Authorization": f"Bearer {token.text}"}


@dataclass(slots=True)
class Wire:
    """One raw ASGI request whose answer is read as it comes; for answers without an end."""

    app: FastAPI
    path: str
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    sent: asyncio.Queue[dict[str, Any]] = field(default_factory=asyncio.Queue)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    taking: asyncio.Event = field(default_factory=asyncio.Event)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["Wire"]:
        self.taking.set()
        headers = {"host": "127.0.0.1:8600", **self.headers}
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1", "method": "GET", "scheme": "http", "path": self.path,
            "raw_path": self.path.encode(), "query_string": self.query.encode(),
            "root_path": "", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8600),
            "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
        }  # fmt: skip
        task = asyncio.create_task(self.app(scope, self._receive, self._send))
        try:
            yield self
        finally:
            self.gone.set()
            async with asyncio.timeout(60):
                await task

    async def start(self) -> dict[str, Any]:
        async with asyncio.timeout(60):
            return await self.sent.get()

    async def until(self, found: Callable[[str], bool]) -> str:
        """All text up to where it holds what is looked for."""
        text = ""
        async with asyncio.timeout(60):
            while not found(text):
                text += (await self.sent.get()).get("body", b"").decode()
        return text

    async def end(self) -> None:
        async with asyncio.timeout(60):
            while (await self.sent.get()).get("more_body", True):
                pass

    async def _receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        await self.taking.wait()
        await self.sent.put(dict(message))


@contextlib.contextmanager
def stopped(engine: service.Engine) -> Iterator[None]:
    """For this long the store does not answer reads."""
    read = engine.read

    async def silent(_: Any) -> Any:
        raise errors.Unavailable("the database did not answer", hint="it is tried again")

    engine.read = silent  # type: ignore[method-assign, assignment]  # a store that is away, in one process
    try:
        yield
    finally:
        engine.read = read  # type: ignore[method-assign]  # and back
