"""Flags of Unleash: fetched, kept while it is away and beyond a restart, never half changed."""

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fairlead.clients.unleash import Access, Flags

IDS = [f"cluster-{number:04}" for number in range(1000)]


def flexible(rollout: int, **more: Any) -> dict[str, Any]:
    parameters = {"rollout": str(rollout), "stickiness": "userId", "groupId": "gathering"}
    return {"name": "flexibleRollout", "parameters": parameters, "constraints": [], **more}


@dataclass
class Unleash:
    """Answers like Unleash's API for clients, with one flag; counts what it was asked."""

    strategies: list[dict[str, Any]] = field(default_factory=list)
    segments: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200
    failing: int = 0
    """So many answers from now on are a 503."""

    raw: str = ""
    """Sent instead of the flag."""

    url: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)

    async def features(self, request: web.Request) -> web.Response:
        self.asked.append(dict(request.headers))
        if self.failing:
            self.failing -= 1
            return web.Response(status=503)
        if self.status != 200:
            return web.Response(status=self.status)
        if self.raw:
            return web.Response(text=self.raw, content_type="application/json")
        flag = {"name": "gathering", "enabled": True, "strategies": self.strategies}
        body = json.dumps({"version": 2, "features": [flag], "segments": self.segments})
        etag = f'"{hash(body)}"'
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304)
        return web.Response(text=body, content_type="application/json", headers={"ETag": etag})

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Unleash"]:
        app = web.Application()
        app.router.add_get("/api/client/features", self.features)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/api"
        yield self
        await runner.cleanup()


@pytest.fixture
async def unleash() -> AsyncIterator[Unleash]:
    async with Unleash().running() as made:
        yield made


def inside(flags: Flags) -> set[str]:
    return {each for each in IDS if flags.enabled("gathering", each)}


async def test_a_gradual_rollout_lets_its_share_in_and_a_higher_one_keeps_them(
    unleash: Unleash,
) -> None:
    unleash.strategies = [flexible(30)]
    flags = Flags(Access(unleash.url, "default:development.secret"))
    await flags.start(5)
    before = inside(flags)

    unleash.strategies = [flexible(60)]
    await flags.refresh(5)

    assert 250 < len(before) < 350
    assert before < inside(flags)
    assert flags.degraded == ""
    assert unleash.asked[0]["Authorization"] == "default:development.secret"


async def test_constraints_are_evaluated_as_unleash_does(unleash: Unleash) -> None:
    only = {"contextName": "userId", "operator": "IN", "values": ["cluster-0007"]}
    unleash.strategies = [flexible(100, constraints=[only])]
    flags = Flags(Access(unleash.url, ""))

    await flags.start(5)

    assert inside(flags) == {"cluster-0007"}
    assert not flags.enabled("unknown", "cluster-0007")


async def test_one_strategy_is_enough_and_a_segment_narrows_its_own(unleash: Unleash) -> None:
    few = {"contextName": "userId", "operator": "STR_STARTS_WITH", "values": ["cluster-00"]}
    unleash.segments = [{"id": 1, "constraints": [few]}]
    named = {"name": "userWithId", "parameters": {"userIds": "cluster-0900"}, "constraints": []}
    unleash.strategies = [flexible(50, segments=[1]), named]
    flags = Flags(Access(unleash.url, ""))

    await flags.start(5)

    found = inside(flags)
    segment = {each for each in IDS if each.startswith("cluster-00")}
    assert "cluster-0900" in found
    assert found - {"cluster-0900"} < segment
    unleash.strategies = [flexible(50)]
    await flags.refresh(5)
    assert found - {"cluster-0900"} == inside(flags) & segment


async def test_nothing_new_is_not_sent_again(unleash: Unleash) -> None:
    unleash.strategies = [flexible(100)]
    flags = Flags(Access(unleash.url, ""))
    await flags.start(5)

    await flags.refresh(5)

    assert "If-None-Match" in unleash.asked[1]
    assert len(inside(flags)) == 1000
    assert flags.degraded == ""


@pytest.mark.requirement("content 20")
@pytest.mark.parametrize("status", [401, 404, 500])
async def test_the_last_known_flags_stay_in_force_while_unleash_fails(
    unleash: Unleash, status: int
) -> None:
    unleash.strategies = [flexible(100)]
    flags = Flags(Access(unleash.url, ""))
    await flags.start(5)

    unleash.status = status
    await flags.refresh(5)

    assert len(inside(flags)) == 1000
    assert "Unleash does not answer" in flags.degraded


_ODD = (
    [{"nonsense": 1}],
    [7],
    ["gathering"],
    [{"name": "gathering", "enabled": True}],
    [{"name": "gathering", "enabled": True, "strategies": None}],
    [{"name": "gathering", "enabled": "yes", "strategies": []}],
    [{"name": "gathering", "enabled": True, "strategies": [flexible(10), {"name": 7}]}],
)


@pytest.mark.requirement("content 20")
@pytest.mark.parametrize("features", _ODD)
async def test_flags_of_an_odd_shape_change_nothing_and_are_told(
    unleash: Unleash, features: list[Any], tmp_path: Path
) -> None:
    unleash.strategies = [flexible(100)]
    file = tmp_path / "flags.json"
    flags = Flags(Access(unleash.url, "", file=file))
    await flags.start(5)
    kept = file.read_bytes()

    unleash.raw = json.dumps({"version": 2, "features": features})
    await flags.refresh(5)

    assert len(inside(flags)) == 1000
    assert "Unleash does not answer" in flags.degraded
    assert file.read_bytes() == kept
    unleash.raw = ""
    await flags.refresh(5)
    assert flags.degraded == ""


@pytest.mark.requirement("content 20")
async def test_a_start_without_unleash_goes_by_the_file_of_the_last(
    unleash: Unleash, tmp_path: Path
) -> None:
    unleash.strategies = [flexible(100)]
    file = tmp_path / "flags.json"
    await Flags(Access(unleash.url, "", file=file)).start(5)

    again = Flags(Access("http://127.0.0.1:9/api", "", file=file))
    await again.start(0.2)

    assert len(inside(again)) == 1000
    assert again.degraded
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.requirement("content 20")
async def test_a_start_asks_again_within_its_patience(unleash: Unleash, tmp_path: Path) -> None:
    unleash.strategies, unleash.failing = [flexible(100)], 2
    flags = Flags(Access(unleash.url, "", file=tmp_path / "flags.json"))

    await flags.start(60)

    assert len(inside(flags)) == 1000
    assert flags.degraded == ""
    assert len(unleash.asked) == 3


@pytest.mark.requirement("content 20")
@pytest.mark.parametrize(
    "kept", [None, b"", b"[]", b'{"features": 1}', b'{"features": [7]}', b"\xff"]
)
async def test_a_start_without_either_lets_nobody_in(tmp_path: Path, kept: bytes | None) -> None:
    file = tmp_path / "flags.json"
    if kept is not None:
        file.write_bytes(kept)
    flags = Flags(Access("http://127.0.0.1:9/api", "", file=file))

    await flags.start(0.2)

    assert inside(flags) == set()
    assert flags.degraded


async def test_a_file_that_cannot_be_written_costs_no_flags(
    unleash: Unleash, tmp_path: Path
) -> None:
    unleash.strategies = [flexible(100)]
    flags = Flags(Access(unleash.url, "", file=tmp_path / "missing" / "flags.json"))

    await flags.start(5)

    assert len(inside(flags)) == 1000
    assert flags.degraded == ""


def test_the_token_is_not_shown() -> None:
    assert "secret" not in repr(Access("http://unleash/api", "secret"))
