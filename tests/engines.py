"""Fixtures and short words for tests of the engine: both stores, and engines on them."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from fairlead.engine import batch, clock, messages, outbox, projections, service, visibility
from fairlead.engine import machine as machines_
from fairlead.engine.store import postgres, protocol, sqlite
from fairlead.engine.testing import HandWoundClock
from tests import machines
from tools.servers import pgbouncer

PATIENCE = 60.0
LEASE = timedelta(seconds=15)
KINDS = ("sqlite", "postgres")
POOLERS: tuple[pgbouncer.Mode, ...] = ("session", "transaction")
POOLED = tuple(f"tests.contract.test_store{each}" for each in ("", "_leases", "_queues", "_lanes"))
"""The suites that run through a pooler in each of these modes as well."""

_ids = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Home:
    """Where a test's store lives; every store it opens shows the same data."""

    kind: str
    address: str

    def store(self) -> protocol.Store:
        if self.kind == "sqlite":
            return sqlite.SqliteStore(Path(self.address), machines.ORDERED)
        return postgres.PostgresStore(self.address, machines.ORDERED)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Behind the engine's back: to damage rows, or to look at them."""
        if self.kind == "sqlite":
            session = sqlite.SqliteStore(Path(self.address)).open()
            try:
                return session._connection.execute(statement).fetchall()
            finally:
                session.close()
        with psycopg.connect(self.address, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


def _home(kind: str, request: pytest.FixtureRequest) -> Home:
    if kind == "sqlite":
        return Home(kind, str(request.getfixturevalue("tmp_path") / "fairlead.db"))
    address = request.getfixturevalue("postgres_url")
    if kind in POOLERS:
        pooler: pgbouncer.PgBouncer = request.getfixturevalue("poolers")[kind]
        return Home("postgres", pooler.url(urlsplit(address).path[1:]))
    return Home(kind, address)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "bare_home" in metafunc.fixturenames:
        pooled = POOLERS if metafunc.module.__name__ in POOLED else ()
        through = [pytest.param(mode, marks=pytest.mark.ha) for mode in pooled]
        metafunc.parametrize("bare_home", [*KINDS, *through], indirect=True)


@pytest.fixture
def bare_home(request: pytest.FixtureRequest) -> Home:
    """A database without our tables."""
    return _home(request.param, request)


@pytest.fixture
def home(bare_home: Home) -> Home:
    bare_home.store().migrate()
    return bare_home


@pytest.fixture
def sqlite_home(request: pytest.FixtureRequest) -> Home:
    made = _home("sqlite", request)
    made.store().migrate()
    return made


@pytest.fixture
def postgres_home(request: pytest.FixtureRequest) -> Home:
    made = _home("postgres", request)
    made.store().migrate()
    return made


@pytest.fixture
def store(home: Home) -> protocol.Store:
    return home.store()


@pytest.fixture
def session(store: protocol.Store) -> Iterator[protocol.Session]:
    opened = store.open()
    yield opened
    opened.close()


@pytest.fixture
def rival(home: Home) -> Iterator[protocol.Session]:
    """A second session, as another process would have."""
    opened = home.store().open()
    yield opened
    opened.close()


@pytest.fixture
def wall() -> HandWoundClock:
    return HandWoundClock()


@dataclass(frozen=True, slots=True)
class Setup:
    """What one test's engine knows and does."""

    handlers: outbox.Handlers = field(default_factory=dict)
    views: Sequence[projections.Projection] = ()
    known: Sequence[machines_.AnyMachine] = machines.ALL
    in_flight: int = 1024
    perform: bool = True
    queues: outbox.QueueHandlers = field(default_factory=dict)


def engine(
    store: protocol.Store, wall: clock.Clock | None = None, cast: Setup | None = None
) -> service.Engine:
    cast = cast or Setup()
    tuning = service.Tuning(lease=LEASE, in_flight=cast.in_flight)
    parts = service.Parts(
        store,
        cast.known,
        cast.handlers,
        cast.views,
        wall or HandWoundClock(),
        tuning,
        queues=cast.queues,
    )
    return service.Engine(parts, perform=cast.perform)


def name(text: str) -> messages.StreamName:
    return messages.parse_stream(text)


async def tell(
    engine: service.Engine, stream: str, command: object, id_: str = "", *, queue: str = ""
) -> messages.Receipt:
    """Submit under an id of its own, unless one is named."""
    chosen = messages.command_id(id_ or f"test {next(_ids)}")
    async with asyncio.timeout(PATIENCE):
        return await engine.submit(name(stream), command, chosen, queue=queue)


async def state(engine: service.Engine, stream: str) -> Any:
    view = await engine.read(lambda session: visibility.stream(session, name(stream)))
    return view.data


async def effects(engine: service.Engine) -> list[visibility.EffectView]:
    return await engine.read(visibility.effects)


async def dead(engine: service.Engine) -> list[visibility.EffectView]:
    return await engine.read(lambda session: visibility.effects(session, dead=True))


async def events(engine: service.Engine, stream: str) -> list[str]:
    found = await engine.read(lambda session: visibility.events(session, name(stream)))
    return [event.type for event in found]


async def fed(session: protocol.Session, count: int) -> list[visibility.EventView]:
    """The first events, once all are told: transactions of other tests hold the feed back."""
    found: list[visibility.EventView] = []

    async def told() -> bool:
        found[:] = await asyncio.to_thread(visibility.feed, session, visibility.Place(), 1000)
        return len(found) >= count

    await until(told)
    return found


async def until(check: Callable[[], Awaitable[object]], wall: HandWoundClock | None = None) -> None:
    """Look until it is so; a clock is wound a little between two looks."""
    async with asyncio.timeout(PATIENCE):
        while not await check():
            if wall is None:
                await asyncio.sleep(0)  # each look is a trip to a thread: others had their turn
            else:
                wall.advance(timedelta(milliseconds=20))
                # Threads work in real time: winding faster than they can renew costs the lease.
                await asyncio.sleep(0.002)


def handlers(
    perform: Callable[[Any, outbox.EffectContext], Awaitable[object | None]], **how: Any
) -> Mapping[type, outbox.Handler]:
    """One way to carry, the same for all tests that carry."""
    return {machines.Carry: outbox.Handler(perform, **how)}


def serves(*queues: str) -> str:
    """What a worker publishes that carries for these queues; for streams without one if none."""
    known = batch.MachineRegistry(machines_.Machines(machines.ALL))
    return outbox.serves(known, dict.fromkeys(queues or ("",), handlers(_carry)))


async def _carry(_: object, __: outbox.EffectContext) -> None: ...
