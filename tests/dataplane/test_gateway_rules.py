"""Single routes on a real gateway: flips under load, headers, cookies, copies, and their delays."""

import asyncio
import re
import statistics
import time
from collections.abc import Callable

import aiohttp
import pytest

from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.domain.plan.spec import Version
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes.providers import gateway_api
from fairlead.cli.demo.load import Load
from fairlead.traffic.routes import STANDBY, Affinity, Match, Route, Where, only_split
from fairlead.traffic.weights import giving
from fairlead.values import Percent
from tests.cluster import client
from tests.dataplane import gateway as gateways
from tests.dataplane.conftest import NAMESPACE, Dataplane
from tests.dataplane.platform import DataplanePlatform

pytestmark = pytest.mark.dataplane
URL = f"http://127.0.0.1:{gateways.PORT}/"
STATS = f"http://127.0.0.1:{gateways.ADMIN_PORT}/stats?filter=prod.*upstream_rq_total"
LOAD = 300.0
FLIPS = 16


class Bench:
    """Version 1 in the primary's slot, version 2 in the canary's, and routes by hand."""

    def __init__(self, data_plane: Dataplane, dataplane_platform: DataplanePlatform) -> None:
        self.data_plane = data_plane
        self.dataplane_platform = dataplane_platform
        self.order = 10

    async def stand(self) -> None:
        for order, (slot, name) in enumerate(((Slot.PRIMARY, "v1"), (Slot.CANARY, "v2")), 1):
            version = Version(name, name, "", name)
            wanted = messages.EnsureVersion("shop", order, slot, version, 2, 2)
            await self.dataplane_platform.ensure(wanted)
        async with asyncio.timeout(60):
            while not await self._all_known():  # noqa: ASYNC110 - the data_plane sends no event
                await asyncio.sleep(0.2)

    async def route(self, route: Route) -> None:
        """Written, and seen as shown."""
        self.order += 1
        await self.dataplane_platform.route(messages.SetRoute("shop", self.order, route))
        async with asyncio.timeout(30):
            while True:
                shown = await self.dataplane_platform.shown("shop")
                if shown is not None and shown.order == self.order:
                    return
                await asyncio.sleep(0.05)

    async def ask(self, **headers: str) -> tuple[str, str]:
        """The version that answers, and the cookie it hands out."""
        jar = aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(cookie_jar=jar) as session:  # noqa: SIM117 - reads better
            async with session.get(URL, headers=headers) as answer:
                await answer.read()
                given = answer.headers.get("Set-Cookie", "").partition(";")[0]
                return answer.headers.get("X-Version", ""), given

    async def _all_known(self) -> bool:
        return all(
            one is not None and one.known == 2 for one in await self.dataplane_platform.pods("shop")
        )


@pytest.fixture(params=["weighted clusters", "one cluster"])
async def bench(request: pytest.FixtureRequest, data_plane: Dataplane) -> Bench:
    await data_plane.gateway.open(NAMESPACE, merge=request.param == "weighted clusters")
    desired = {"route": {"parentRefs": [{"name": "public"}]}, "delay": 0.5}
    dataplane_platform = DataplanePlatform(
        data_plane.admin, NAMESPACE, gateway_api.GatewayApi(), desired
    )
    await dataplane_platform.open()
    made = Bench(data_plane, dataplane_platform)
    await made.stand()
    await made.route(STANDBY)
    return made


async def test_flips_of_all_traffic_lose_no_request(
    bench: Bench, tell: Callable[[str], None]
) -> None:
    async with Load(URL, per_second=LOAD).running() as load:
        for turn in range(FLIPS):
            await bench.route(only_split(100 if turn % 2 == 0 else 0))
    without = await _without_the_route_beside(bench)

    tell(f"{FLIPS} flips: {load.tally.sent} sent, {load.tally.lost} lost; without our second "
         f"route {without.tally.sent} sent, {without.tally.lost} lost")  # fmt: skip
    assert load.tally.of("v1") > 0 < load.tally.of("v2")
    assert load.tally.failed == 0


async def _without_the_route_beside(bench: Bench) -> Load:
    """The same flips as somebody would do them by hand; only told, for a proxy may be lucky."""
    routes = client.path("gateway.networking.k8s.io/v1", "httproutes", NAMESPACE)
    await bench.data_plane.admin.delete(f"{routes}/shop-fairlead")
    async with Load(URL, per_second=LOAD).running() as load:
        for turn in range(FLIPS):
            refs = [
                {"name": "shop", "port": 80, "weight": 100 * (turn % 2)},
                {"name": "shop-canary", "port": 80, "weight": 100 * (1 - turn % 2)},
            ]
            body = {"spec": {"rules": [{"backendRefs": refs}]}}
            await bench.data_plane.admin.patch(f"{routes}/shop", body)
            await asyncio.sleep(0.6)
    return load


async def test_requests_are_picked_kept_and_copied(
    bench: Bench, tell: Callable[[str], None]
) -> None:
    await bench.route(Route(joined=True, matches=(Match(Where.HEADER, "X-Beta", "yes"),)))
    by_header = {(await bench.ask(**{"X-Beta": "yes"}))[0] for _ in range(20)}
    others = {(await bench.ask())[0] for _ in range(20)}

    await bench.route(Route(joined=True, matches=(Match(Where.COOKIE, "group", "b"),)))
    by_cookie = {(await bench.ask(Cookie="a=1; group=b"))[0] for _ in range(20)}

    await bench.route(Route(giving(30), joined=True, affinity=Affinity("stay")))
    met = [await bench.ask() for _ in range(100)]
    cookie = next(given for version, given in met if version == "v2")
    stayed = {(await bench.ask(Cookie=cookie))[0] for _ in range(40)}

    await bench.route(Route(joined=True, mirror=Percent(100)))
    before = await _counted()
    mirrored = await Load(URL).send(200)
    copies = await _counted() - before - mirrored.sent

    meetings = [version for version, _ in met].count("v2")
    tell(f"copies of 200: {copies}; of 100 at 30 % met the canary: {meetings}")
    assert (by_header, others, by_cookie) == ({"v2"}, {"v1"}, {"v2"})
    assert cookie.startswith("stay=r")
    assert {given for version, given in met if version == "v1"} == {""}
    assert stayed == {"v2"}
    assert mirrored.of("v1") == 200
    assert copies >= 190


async def test_a_write_takes_effect_long_before_it_counts_as_shown(
    bench: Bench, tell: Callable[[str], None]
) -> None:
    delays = []
    for turn in range(10):
        bench.order += 1
        weight = 100 if turn % 2 == 0 else 0
        await bench.dataplane_platform.route(
            messages.SetRoute("shop", bench.order, only_split(weight))
        )
        started = time.monotonic()
        while (await bench.ask())[0] != ("v2" if weight else "v1"):
            assert time.monotonic() < started + 20
        delays.append((time.monotonic() - started) * 1000)
        await bench.route(only_split(weight))

    tell(f"ms until a write took effect: median {statistics.median(delays):.0f}, "
         f"least {min(delays):.0f}, most {max(delays):.0f}")  # fmt: skip
    assert max(delays) < gateway_api.DELAY * 1000


async def _counted() -> int:
    """Requests that the gateway sent to backends of ours, copies among them."""
    async with aiohttp.ClientSession() as session, session.get(STATS) as answer:
        text = await answer.text()
    return sum(int(number) for number in re.findall(r"upstream_rq_total: (\d+)", text))
