"""What whoever remembers numbers of a rollout must keep: the fake of the web tests, and Envoy.

The page draws these points as they come, so their order and what is missing in them is a promise.
"""

import contextlib
import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

import pytest

from fairlead.areas.rollouts import workloads
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.local import LocalPlatform
from fairlead.areas.rollouts.local.envoy_stats import EnvoyStats
from fairlead.areas.rollouts.traffic_stats import Numbers, Point
from fairlead.cli.demo.load import Load
from fairlead.clients.processes import clean_up
from fairlead.traffic.routes import PRIMARY_ONLY, STANDBY, Route, only_split
from tests.contract.local import shop_platform
from tests.contract.local.shop_versions import free_port, until_timed
from tests.contract.rollout_ports import Site
from tests.fakes import fleet

pytestmark = pytest.mark.xdist_group("envoy")

EVER_FAILING = ("--errors", "1")


class Traffic(Protocol):
    """Requests on their way to a rollout whose canary always fails, and who counts them."""

    @property
    def numbers(self) -> Numbers: ...

    async def pass_by(self, requests: int, weight: int) -> None:
        """So many requests while the canary has this weight; then a moment is counted."""
        ...


class FakeTraffic:
    """What the fake is told."""

    def __init__(self) -> None:
        self.numbers = fleet.Counted()
        self._at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

    async def pass_by(self, requests: int, weight: int) -> None:
        self._at += dt.timedelta(seconds=1)
        canary = requests * weight // 100
        for slot, count, its in (
            (Slot.PRIMARY, requests - canary, 100 - weight),
            (Slot.CANARY, canary, weight),
        ):
            failed = count if slot is Slot.CANARY else 0
            times = (5.0, 9.0) if count else (None, None)
            point = Point(self._at, slot, slot.value, its, count, failed, *times)
            self.numbers.add("shop", point)


class EnvoyTraffic:
    """A real Envoy before two versions of the shop."""

    def __init__(self, machine: LocalPlatform, site: Site, port: int) -> None:
        self.numbers = EnvoyStats(machine.workloads, lambda: dt.datetime.now(dt.UTC))
        self._proxy = machine.workloads["shop"].proxy
        self._site = site
        self._url = f"http://127.0.0.1:{port}/"
        self._weight = 0

    async def open(self) -> None:
        for slot, version in zip((Slot.PRIMARY, Slot.CANARY), self._site.versions, strict=True):
            await self._site.ensure(slot, version, 1)
            await self._ready(slot)
            await self._shown(PRIMARY_ONLY if slot is Slot.PRIMARY else STANDBY)
        await self.numbers.sample("shop")

    async def pass_by(self, requests: int, weight: int) -> None:
        if weight != self._weight:
            await self._shown(only_split(weight))
            self._weight = weight
        if requests:
            await Load(self._url).send(requests)
        await until_timed(self._proxy)
        await self.numbers.sample("shop")

    async def _ready(self, slot: Slot) -> None:
        async def so() -> bool:
            pods = await self._site.pods(slot)
            return pods is not None and pods.ready == 1

        await self._site.until(so)

    async def _shown(self, route: Route) -> None:
        order = await self._site.route(route)

        async def so() -> bool:
            seen = await self._site.shown()
            return seen is not None and seen.order == order

        await self._site.until(so)


@contextlib.asynccontextmanager
async def envoy_traffic(folder: Path) -> AsyncIterator[EnvoyTraffic]:
    port = free_port()
    async with shop_platform.machine(folder) as machine:
        papers = (
            shop_platform.document("v1", port),
            shop_platform.document("v2", port, EVER_FAILING),
        )
        desired_objects = [workloads.read(paper) for paper in papers]
        for desired in desired_objects:
            await machine.keep(desired)
        versions = (desired_objects[0].want.version, desired_objects[1].want.version)
        traffic = EnvoyTraffic(machine, Site(machine, machine, versions), port)
        await traffic.open()
        yield traffic
    await clean_up(folder / "processes", drain_seconds=2.0)


@pytest.fixture(params=["fake", "envoy"])
async def traffic(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Traffic]:
    if request.param == "fake":
        yield FakeTraffic()
        return
    async with envoy_traffic(tmp_path) as made:
        yield made


def of(slot: Slot, traffic: Traffic) -> list[Point]:
    return [point for point in traffic.numbers.recent("shop") if point.slot is slot]


async def test_nobody_has_numbers_of_what_nobody_measures(traffic: Traffic) -> None:
    await traffic.pass_by(10, 0)

    assert list(traffic.numbers.recent("till")) == []


async def test_each_moment_tells_of_itself_alone_and_the_oldest_comes_first(
    traffic: Traffic,
) -> None:
    for requests in (10, 30):
        await traffic.pass_by(requests, 0)

    points = of(Slot.PRIMARY, traffic)
    assert [point.requests for point in points] == [10, 30]
    assert points[0].at < points[1].at


async def test_both_slots_are_told_apart_with_their_weights_and_failures(traffic: Traffic) -> None:
    await traffic.pass_by(100, 50)

    (primary,), (canary,) = of(Slot.PRIMARY, traffic), of(Slot.CANARY, traffic)
    assert (primary.weight, canary.weight) == (50, 50)
    assert primary.requests + canary.requests == 100
    assert canary.requests > 0
    assert (primary.failed, canary.failed) == (0, canary.requests)
    assert (primary.success, canary.success) == (100.0, 0.0)
    assert primary.revision != canary.revision


async def test_times_are_there_where_requests_were_and_only_there(traffic: Traffic) -> None:
    await traffic.pass_by(20, 0)
    await traffic.pass_by(0, 0)

    busy, quiet = of(Slot.PRIMARY, traffic)
    assert busy.p50_ms is not None
    assert busy.p99_ms is not None
    assert 0 < busy.p50_ms <= busy.p99_ms
    assert (quiet.requests, quiet.success, quiet.p50_ms, quiet.p99_ms) == (0, None, None, None)


async def test_an_answer_does_not_change_in_the_hand_of_who_asked(traffic: Traffic) -> None:
    await traffic.pass_by(10, 0)
    first = traffic.numbers.recent("shop")
    told = list(first)

    await traffic.pass_by(10, 0)

    assert list(first) == told
    assert list(traffic.numbers.recent("shop"))[: len(told)] == told
