"""Flags of a real Unleash: what its server says is what we decide."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fairlead.areas.content.domain import population
from fairlead.clients.unleash import Access, Flags
from tests.contract.unleash import server
from tests.contract.unleash.server import CLIENT, Unleash

pytestmark = [server.NEEDED, pytest.mark.slow]
IDS = [f"cluster-{number:04}" for number in range(1000)]


@pytest.fixture
def unleash(postgres_url: str, tmp_path: Path) -> Iterator[Unleash]:
    with server.running(postgres_url, tmp_path) as made:
        yield made


async def test_a_real_flag_lets_in_whom_its_rule_lets_in(unleash: Unleash) -> None:
    assert urlsplit(unleash.url).path == "/api"
    flag, there = "gathering", "/features/gathering/environments/development"
    unleash.ask("POST", "/features", {"name": flag, "type": "release"})
    parameters = {"rollout": "30", "stickiness": "userId", "groupId": flag}
    strategy = {"name": "flexibleRollout", "parameters": parameters, "constraints": []}
    made = unleash.ask("POST", f"{there}/strategies", strategy)
    unleash.ask("POST", f"{there}/on")
    flags = Flags(Access(unleash.url, CLIENT))
    await flags.start(30)
    assert flags.degraded == ""
    assert inside(flags) == chosen(30)

    change = [{"op": "replace", "path": "/parameters/rollout", "value": "60"}]
    unleash.ask("PATCH", f"{there}/strategies/{made['id']}", change)
    for _ in range(50):
        await flags.refresh(30)
        if inside(flags) != chosen(30):
            break

    assert inside(flags) == chosen(60)
    assert chosen(30) < chosen(60)


async def test_other_strategies_constraints_and_segments_are_heeded_as_its_sdk_heeds_them(
    unleash: Unleash,
) -> None:
    server.make_flag(unleash, "gathering", "50")
    at = "/features/gathering/environments/development/strategies"
    few = {"contextName": "userId", "operator": "STR_STARTS_WITH", "values": ["cluster-00"]}
    segment = unleash.admin.post("/api/admin/segments", json={"name": "few", "constraints": [few]})
    (first,) = unleash.ask("GET", at)
    narrowed = {**first, "segments": [segment.raise_for_status().json()["id"]]}
    unleash.ask("PUT", f"{at}/{first['id']}", narrowed)
    ninety = {"contextName": "userId", "operator": "STR_STARTS_WITH", "values": ["cluster-09"]}
    parameters = {"rollout": "20", "stickiness": "userId", "groupId": "other"}
    second = {"name": "flexibleRollout", "parameters": parameters, "constraints": [ninety]}
    unleash.ask("POST", at, second)
    flags = Flags(Access(unleash.url, CLIENT))
    await flags.start(30)

    found = inside(flags)

    other = {each for each in IDS if population.bucket("other", each) <= 20}
    assert found == {
        each
        for each in IDS
        if (each in chosen(50) and each.startswith("cluster-00"))
        or (each in other and each.startswith("cluster-09"))
    }
    assert found


async def test_a_wrong_token_is_degraded_and_lets_nobody_in(unleash: Unleash) -> None:
    flags = Flags(Access(unleash.url, "default:development.wrong"))

    await flags.start(30)

    assert flags.degraded
    assert not inside(flags)


def inside(flags: Flags) -> set[str]:
    return {each for each in IDS if flags.enabled("gathering", each)}


def chosen(percent: int) -> set[str]:
    buckets = {each: population.bucket("gathering", each) for each in IDS}
    return {each for each, at in buckets.items() if population.enabled(at, Decimal(percent))}
