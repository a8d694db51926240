"""Alive, ready and measured; each told also when the store is away."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from prometheus_client import parser

from fairlead import errors
from fairlead.web import health
from tests.unit.web import rig


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    async with rig.site(tmp_path) as running:
        yield running


async def test_a_migrated_store_is_ready(site: rig.Site) -> None:
    answer = await site.client.get("/readyz")

    assert answer.status_code == 200
    assert answer.json() == {"ready": True, "reasons": [], "age_seconds": ANY}


async def test_readiness_is_told_at_once_while_the_store_takes_its_time(
    site: rig.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.client.get("/readyz")
    slow, asked = threading.Event(), threading.Event()

    def wait() -> list[str]:
        asked.set()
        slow.wait(20)
        return []

    monkeypatch.setattr(site.store, "pending_migrations", wait)
    await asyncio.to_thread(asked.wait, 10)
    async with asyncio.timeout(0.5):
        answers = [await site.client.get("/readyz") for _ in range(3)]
    slow.set()

    assert [answer.status_code for answer in answers] == [200] * 3
    ages = [answer.json()["age_seconds"] for answer in answers]
    assert ages == sorted(ages)
    assert ages[0] > 0.5


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (errors.Unavailable("host db1 is down", hint=""), "the store is not reachable"),
        (errors.Conflict("0009", hint=""), "the store was migrated by a newer fairlead"),
        (errors.Corrupt("page 7", hint=""), "the store cannot be read"),
    ],
)
async def test_a_store_that_fails_is_not_ready_and_says_why(
    site: rig.Site, monkeypatch: pytest.MonkeyPatch, error: errors.FairleadError, reason: str
) -> None:
    def fail() -> Any:
        raise error

    monkeypatch.setattr(site.store, "pending_migrations", fail)

    answer = await site.client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json() == {"ready": False, "reasons": [reason], "age_seconds": ANY}


async def test_a_pending_migration_is_not_ready(
    site: rig.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site.store, "pending_migrations", lambda: ["0002_next"])

    answer = await site.client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["reasons"] == ["a migration is pending: 0002_next"]


async def test_a_stop_takes_readiness_back(site: rig.Site) -> None:
    site.context.closing.set()

    assert (await site.client.get("/readyz")).json()["reasons"] == ["stopping"]
    assert (await site.client.get("/healthz")).status_code == 200


async def test_metrics_count_what_happened(site: rig.Site) -> None:
    await site.client.post("/api/v1/streams/depot/a/commands", json=rig.ORDER)
    await site.settled("depot/a")

    figures = parsed((await site.client.get("/metrics")).text)

    assert figures["fairlead_events_total", ()] == 8
    assert figures["fairlead_store_up", ()] == 1
    assert figures["fairlead_workers", ()] == 1
    assert figures["fairlead_dead_letters", ()] == 0
    assert figures["fairlead_outbox_effects", ()] == 0
    labels = (
        ("method", "POST"),
        ("route", "/api/v1/streams/{machine}/{key:path}/commands"),
        ("status", "200"),
    )
    assert figures["fairlead_requests_total", labels] == 1


async def test_names_of_streams_do_not_become_labels(site: rig.Site) -> None:
    for number in range(20):
        await site.client.get(f"/api/v1/streams/depot/none-{number}")
        await site.client.request("BREW", f"/none-{number}")

    text = (await site.client.get("/metrics")).text

    assert "none-" not in text
    assert "BREW" not in text


async def test_metrics_are_told_while_the_store_is_away(
    site: rig.Site,
) -> None:
    watch = health.Watch(site.context)

    with rig.stopped(site.engine):
        figures = parsed((await watch.scraped()).decode())

    assert figures["fairlead_store_up", ()] == 0
    assert ("fairlead_workers", ()) not in figures
    assert ("fairlead_commits_total", ()) in figures


async def test_a_second_scrape_does_not_ask_the_store_again(site: rig.Site) -> None:
    watch = health.Watch(site.context)
    await watch.scraped()

    with rig.stopped(site.engine):
        figures = parsed((await watch.scraped()).decode())

    assert figures["fairlead_store_up", ()] == 1


def parsed(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }
