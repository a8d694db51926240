"""A worker that answers to those who watch it."""

from pathlib import Path

import aiohttp

from fairlead.cli import serve_metrics
from fairlead.engine import service
from fairlead.engine.sample import depot, trip
from fairlead.engine.store import sqlite


async def test_a_worker_tells_how_it_is(tmp_path: Path) -> None:
    store = sqlite.SqliteStore(tmp_path / "fairlead.db")
    store.migrate()
    worker = service.Engine(service.Parts(store, [depot.DEPOT, trip.TRIP]))

    async with (
        worker.running() as engine,
        serve_metrics.answering(engine, "127.0.0.1:0") as address,
        aiohttp.ClientSession(address) as asking,
    ):
        async with asking.get("/healthz") as alive, asking.get("/readyz") as ready:
            codes = (alive.status, ready.status)
        async with asking.get("/metrics") as answer:
            figures = await answer.text()

    assert codes == (200, 200)
    assert "fairlead_workers 1.0" in figures
    assert "fairlead_inbox_depth" in figures
