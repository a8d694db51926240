"""A command line to type on, and a store with something in it."""

import asyncio
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
import structlog

from fairlead import bootstrap, catalog, errors
from fairlead.cli import app
from fairlead.console.context import CliContext
from fairlead.engine import messages, outbox, projections, service, visibility
from fairlead.engine.sample import depot, trip
from fairlead.engine.sample.messages import Arrive, DriveLeg, Order
from fairlead.engine.store import protocol, sqlite

DEPOT = messages.stream_name("depot", "north")


@dataclass(frozen=True, slots=True)
class Ran:
    """What one command line came to."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def quiet_after() -> Iterator[None]:
    """A command sends log lines to its own standard error, which ends with its test."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of this test's own, named by the environment."""
    folder = tmp_path / "state"
    for variable in ("FAIRLEAD_DATABASE_URL", "FAIRLEAD_SERVER", "FAIRLEAD_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(folder))
    return folder


@pytest.fixture
def run(
    state_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Types a command line in this process; the machines are the samples."""

    def type_in(*arguments: str, answer: str = "") -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        capsys.readouterr()
        code = app.run(arguments, CliContext(installation=sample))
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return type_in


@pytest.fixture
def filled(state_dir: Path) -> Path:
    """Three trips of three legs; the second lies on a closed road, the others are home."""
    asyncio.run(_fill(state_dir / "fairlead.db"))
    return state_dir


def sample() -> bootstrap.Installation:
    view = projections.Projection("trips", 1, key=_trip, fold=projections.one_by_one(_count))
    return bootstrap.Installation(
        machines=(depot.DEPOT, trip.TRIP), views=(view,), areas=catalog.AREAS
    )


async def _fill(file: Path) -> None:
    store = sqlite.SqliteStore(file)
    store.migrate()
    parts = service.Parts(
        store,
        (depot.DEPOT, trip.TRIP),
        {DriveLeg: outbox.Handler(_drive)},
        # A stop waits for what is under way, so the failed leg is written down as dead.
        tuning=service.Tuning(drain=timedelta(seconds=10)),
    )
    async with service.Engine(parts).running() as engine:
        with engine.watch() as signal:
            await engine.submit(DEPOT, Order("north", 3, legs=3), messages.command_id("order 1"))
            async with asyncio.timeout(30):
                while (await engine.read(_home)) < 2:
                    await signal.wait()
                    signal.clear()


async def _drive(leg: DriveLeg, context: outbox.EffectContext) -> Arrive:
    if context.stream == "trip/north-2" and leg.leg == 2:
        raise errors.Rejected("the road is \x1b[31mclosed", hint="wait for spring")
    return Arrive(leg.leg)


def _home(session: protocol.Session) -> int:
    events = visibility.events(session, DEPOT)
    return sum(1 for event in events if event.type == "Returned")


def _trip(event: visibility.EventView) -> str | None:
    return event.stream if event.stream.startswith("trip/") else None


def _count(row: projections.Row | None, _event: visibility.EventView) -> projections.Row:
    return {"events": (row or {"events": 0})["events"] + 1}
