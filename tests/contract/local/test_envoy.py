"""A real Envoy splits as told, refuses what is bad, and loses nothing on the way."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from multidict import CIMultiDict

from fairlead import errors
from fairlead.clients.envoy import (
    ByCookie,
    ByHeader,
    CookieIs,
    HeaderIs,
    Mirror,
    Rule,
    Site,
    Table,
    Version,
    Weight,
    between,
)
from fairlead.clients.processes import Phase
from tests.contract.local.shop_versions import (
    PATIENCE,
    ReleaseHarness,
    four_deviations,
    free_port,
    release_harness,
    shared,
    until_timed,
)

pytestmark = pytest.mark.xdist_group("envoy")
Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]


async def version_for(url: str, **headers: str) -> str:
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as answer:
        return answer.headers["X-Version"]


async def test_requests_are_split_by_weight(harness: ReleaseHarness) -> None:
    versions = (await harness.run("v1"), await harness.run("v2"))

    for percent in (10, 50, 100, 0):
        await harness.share(versions, v2=percent, v1=100 - percent)
        tally = await harness.load().send(2000)

        assert (tally.sent, tally.failed) == (2000, 0)
        assert abs(tally.of("v2") - 20 * percent) <= four_deviations(2000, percent)


@pytest.mark.parametrize(
    ("sent", "handed_on"),
    [
        (["fairlead_session_8600=secret"], None),
        (["a=1; fairlead_session_8600=secret; b=x=y"], "a=1; b=x=y"),
        (["fairlead_session_8600=secret;a=1"], "a=1"),
        (["a=1", "fairlead_session_8600=secret"], "a=1"),
        (["a=fairlead_session; b=2"], "a=fairlead_session; b=2"),
        (["a=1;b=2"], "a=1;b=2"),
    ],
)
async def test_a_cookie_of_the_control_plane_reaches_no_workload(
    harness: ReleaseHarness, sent: list[str], handed_on: str | None
) -> None:
    heard: list[str | None] = []

    async def workload(request: web.BaseRequest) -> web.Response:
        heard.append(request.headers.get("Cookie"))
        return web.Response()

    async with listening(workload) as port:
        version = Version("v1", (port,))
        await harness.share((version,), v1=100)
        headers = [("Cookie", each) for each in sent]
        async with (
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.get(harness.url, headers=CIMultiDict(headers)) as answer,
        ):
            status = answer.status

    assert (status, heard) == (200, [handed_on])


@contextlib.asynccontextmanager
async def listening(workload: Handler) -> AsyncIterator[int]:
    """A workload of the test's own, on a free port of this machine."""
    runner = web.ServerRunner(web.Server(workload))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def test_versions_come_and_go_under_load_without_a_failed_request(
    harness: ReleaseHarness,
) -> None:
    v1 = await harness.run("v1")
    await harness.share((v1,), v1=100)

    async with harness.load(per_second=300).running() as load:
        await load.at_least(50)
        for name in ("v2", "v3"):
            newcomer = await harness.run(name)
            for percent in (10, 50, 100, 0, 30):
                await harness.share((v1, newcomer), **{name: percent, "v1": 100 - percent})
                await load.at_least(30)
            await harness.share((v1,), v1=100)
            await harness.supervisor.stop(name)
            await load.at_least(30)

    assert load.tally.failed == 0, load.tally
    assert min(load.tally.of("v2"), load.tally.of("v3")) > 30


async def test_ports_of_a_version_change_under_load_without_a_failed_request(
    harness: ReleaseHarness,
) -> None:
    first, second = await harness.run("v1"), await harness.run("v1-more")
    both = Version("v1", (*first.ports, *second.ports))
    await harness.share((first,), v1=100)

    async with harness.load(per_second=300).running() as load:
        for _ in range(3):
            for ports in (both.ports, second.ports, both.ports, first.ports):
                await harness.share((Version("v1", ports),), v1=100)
                await load.at_least(30)

    assert load.tally.failed == 0, load.tally
    assert load.tally.of("v1-more") > 30


async def test_a_request_that_hangs_does_not_hold_up_a_rollback(harness: ReleaseHarness) -> None:
    begun, over = asyncio.Event(), asyncio.Event()

    async def slow(_: web.BaseRequest) -> web.Response:
        begun.set()
        await over.wait()
        return web.Response(headers={"X-Version": "v2"})

    v1 = await harness.run("v1")
    async with listening(slow) as port:
        versions = (v1, Version("v2", (port,)))
        await harness.share(versions, v2=100, v1=0)
        hanging = asyncio.create_task(version_for(harness.url))
        await begun.wait()

        removing = asyncio.create_task(harness.share((v1,), v1=100))
        await asyncio.sleep(0)
        await harness.share(versions, v1=100, v2=0)

        assert not removing.done()
        assert not hanging.done()
        assert await version_for(harness.url) == "v1"
        over.set()
        assert await hanging == "v2"
        await removing
        await harness.share(versions, v1=0, v2=100)
        assert await version_for(harness.url) == "v2"


async def test_a_refused_route_leaves_the_old_ones_in_use(harness: ReleaseHarness) -> None:
    v1 = await harness.run("v1")
    await harness.share((v1,), v1=100)
    bad = Rule((Weight("v1", 100),), match=(HeaderIs("x-user", "(", regex=True),))

    with pytest.raises(errors.Rejected) as refused:
        await harness.proxy.apply(Table((v1,), (Site("shop", (bad,)),)))

    assert "envoy refused the new routes" in refused.value.message
    assert "missing )" in refused.value.message
    assert (await harness.load().send(50)).of("v1") == 50
    await kill_envoy(harness)
    assert (await harness.load().send(50)).of("v1") == 50


async def test_a_killed_envoy_comes_back_with_the_last_split(harness: ReleaseHarness) -> None:
    versions = (await harness.run("v1"), await harness.run("v2"))
    await harness.share(versions, v2=50, v1=50)

    await kill_envoy(harness)
    tally = await harness.load().send(1000)

    assert tally.failed == 0
    assert abs(tally.of("v2") - 500) <= four_deviations(1000, 50)
    await harness.share(versions, v2=0, v1=100)
    assert (await harness.load().send(200)).of("v1") == 200


async def test_a_change_while_envoy_is_dead_is_refused_and_can_be_repeated(
    harness: ReleaseHarness,
) -> None:
    versions = (await harness.run("v1"), await harness.run("v2"))
    await harness.share(versions, v2=0, v1=100)
    async with kept_down(harness):
        with pytest.raises(errors.Unavailable, match="does not answer on its admin socket"):
            await harness.share(versions, v2=100, v1=0)
    await until_back(harness)
    await harness.share(versions, v2=100, v1=0)

    assert (await harness.load().send(100)).of("v2") == 100


@pytest.mark.slow
async def test_a_new_control_plane_drops_no_request_and_no_process(place: Path) -> None:
    port = free_port()
    async with release_harness(place, port) as first:
        versions = (await first.run("v1"), await first.run("v2"))
        await first.share(versions, v2=10, v1=90)
        before = first.supervisor.instances()
        load = first.load(per_second=200)

    async with load.running():
        await load.at_least(50)
        for percent in (50, 100, 0):
            async with release_harness(place, port) as next_one:
                await next_one.share(versions, v2=percent, v1=100 - percent)
                await load.at_least(50)
                for instance in before:
                    await next_one.supervisor.ready(instance.name)
                after = next_one.supervisor.instances()
            await load.at_least(50)

    assert load.tally.failed == 0, load.tally
    assert after == before


async def test_an_interrupted_change_is_undone_by_the_next_control_plane(place: Path) -> None:
    port = free_port()
    async with release_harness(place, port) as first:
        v1 = await first.run("v1")
        await first.share((v1,), v1=100)
    routes = place / "envoy/xds/routes/routes.json"
    # As if we had died between the rename and Envoy's answer, which would be a no.
    (place / "envoy/routes.last.json").write_bytes(routes.read_bytes())
    routes.write_text('{"resources": [{"nonsense": 1}]}')

    async with release_harness(place, port) as second:
        await kill_envoy(second)

        assert (await second.load().send(50)).of("v1") == 50


async def test_an_envoy_that_hears_nobody_is_replaced(place: Path) -> None:
    port = free_port()
    async with release_harness(place, port) as first:
        v1 = await first.run("v1")
        await first.share((v1,), v1=100)
        deaf = envoy_pid(first)
    (place / "envoy/admin.sock").unlink()

    async with release_harness(place, port) as second:
        await second.share((v1,), v1=100)

        assert envoy_pid(second) != deaf
        assert (await second.load().send(20)).of("v1") == 20


async def test_slow_and_failing_versions_show_in_the_numbers(harness: ReleaseHarness) -> None:
    good = await harness.run("v1")
    failing = await harness.run("v2", "--errors", "0.05")
    slow = await harness.run("v3", "--delay-ms", "120")
    idle = await harness.run("v4")
    versions = (good, failing, slow, idle)
    await harness.share(versions, v1=40, v2=40, v3=20, v4=0)
    await harness.load().send(20)
    before = await harness.proxy.read()

    tally = await harness.load().send(1500)
    await until_timed(harness.proxy)
    numbers = between(before, await harness.proxy.read())

    assert {name: found.requests for name, found in numbers.items()} == {
        name: tally.of(name) for name in ("v1", "v2", "v3", "v4")
    }
    assert numbers["v1"].success_rate == 100.0
    assert numbers["v2"].failures == tally.answers["v2", 500]
    assert numbers["v2"].success_rate == pytest.approx(95.0, abs=4.0)
    slow_p99, good_p50 = numbers["v3"].p99_ms, numbers["v1"].p50_ms
    assert slow_p99 is not None
    assert good_p50 is not None
    assert slow_p99 >= 120 > good_p50
    assert (numbers["v4"].requests, numbers["v4"].success_rate, numbers["v4"].p99_ms) == (
        0,
        None,
        None,
    )


async def test_headers_and_cookies_choose_a_version(harness: ReleaseHarness) -> None:
    versions = (await harness.run("v1"), await harness.run("v2"))
    to_v2 = (Weight("v2", 100),)
    rules = (
        Rule(to_v2, match=(HeaderIs("x-beta", "yes"),)),
        Rule(to_v2, match=(HeaderIs("user-agent", ".*Firefox.*", regex=True),)),
        Rule(to_v2, match=(CookieIs("group", "in.side"),)),
        Rule((Weight("v1", 100),)),
    )
    await harness.proxy.apply(Table(versions, (Site("shop", rules),)))

    chosen = {
        "header": await version_for(harness.url, **{"x-beta": "yes"}),
        "other header": await version_for(harness.url, **{"x-beta": "no"}),
        "regex": await version_for(harness.url, **{"User-Agent": "a Firefox b"}),
        "cookie": await version_for(harness.url, Cookie="a=1; group=in.side; b=2"),
        "cookie alike": await version_for(harness.url, Cookie="group=inXside"),
        "cookie ending alike": await version_for(harness.url, Cookie="othergroup=in.side"),
        "none": await version_for(harness.url),
    }

    assert [name for name, version in chosen.items() if version == "v2"] == [
        "header",
        "regex",
        "cookie",
    ]


async def test_sites_part_by_host_name(harness: ReleaseHarness) -> None:
    versions = (await harness.run("v1"), await harness.run("v2"))
    sites = (
        Site("shop", (Rule((Weight("v1", 100),)),), ("shop.example",)),
        Site("rest", (Rule((Weight("v2", 100),)),)),
    )
    await harness.proxy.apply(Table(versions, sites))

    assert await version_for(harness.url, Host="shop.example:80") == "v1"
    assert await version_for(harness.url, Host="other.example") == "v2"


async def test_a_mirrored_version_gets_copies_and_nobody_hears_it(harness: ReleaseHarness) -> None:
    v1, v2 = await harness.run("v1"), await harness.run("v2", "--errors", "1")
    rule = Rule((Weight("v1", 100),), mirror=Mirror("v2"))
    await harness.proxy.apply(Table((v1, v2), (Site("shop", (rule,)),)))
    before = await harness.proxy.read()

    tally = await harness.load().send(300)

    assert (tally.of("v1"), tally.failed) == (300, 0)
    async with asyncio.timeout(PATIENCE):
        while between(before, await harness.proxy.read())["v2"].failures < 300:  # noqa: ASYNC110 - copies end when they like
            await asyncio.sleep(0.02)


async def test_a_browser_stays_with_its_version_while_the_weight_grows(
    harness: ReleaseHarness,
) -> None:
    versions = (await harness.run("v1"), await harness.run("v2"))
    jar = aiohttp.CookieJar(unsafe=True)
    seen: dict[int, set[str]] = {}
    async with aiohttp.ClientSession(cookie_jar=jar) as browser:
        for percent in (50, 80, 100):
            rule = Rule(
                (Weight("v2", percent), Weight("v1", 100 - percent)), affinity=ByCookie("stay")
            )
            await harness.proxy.apply(Table(versions, (Site("shop", (rule,)),)))
            seen[percent] = set()
            for _ in range(30):
                async with browser.get(harness.url) as answer:
                    seen[percent].add(answer.headers["X-Version"])

    assert len(seen[50]) == len(seen[80]) == 1
    assert seen[100] == {"v2"}
    assert "v2" not in seen[50] or seen[80] == {"v2"}


async def test_users_named_by_a_header_never_leave_a_growing_version(
    harness: ReleaseHarness,
) -> None:
    versions = (await harness.run("v1"), await harness.run("v2"))
    inside: dict[int, set[str]] = {}
    for percent in (20, 60):
        weights = (Weight("v2", percent), Weight("v1", 100 - percent))
        rule = Rule(weights, affinity=ByHeader("x-user"))
        await harness.proxy.apply(Table(versions, (Site("shop", (rule,)),)))
        inside[percent] = {
            user
            for user in map(str, range(100))
            if await version_for(harness.url, **{"x-user": user}) == "v2"
        }

    assert inside[20] < inside[60]
    assert abs(len(inside[60]) - 60) <= four_deviations(100, 60)


async def test_a_version_is_known_after_its_first_good_health_answer(
    harness: ReleaseHarness,
) -> None:
    v1 = await harness.run("v1")
    asked = Version("v1", v1.ports, health_path="/healthz")

    await harness.share((asked,), v1=100)

    assert (await harness.load().send(50)).of("v1") == 50


async def test_a_taken_port_is_said_at_once(place: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()

        taken = other.getsockname()[1]

        with pytest.raises(errors.Conflict, match=f"port already taken: {taken}"):
            async with release_harness(place, taken):
                pass
        with pytest.raises(errors.Conflict, match=f"port already taken: {taken}"):
            async with release_harness(place, free_port(), metrics_port=taken):
                pass


async def test_a_deep_state_folder_is_no_obstacle(place: Path) -> None:
    deep = place.joinpath(*["a-rather-long-name-of-a-folder"] * 4)
    async with release_harness(deep, free_port()) as harness:
        v1 = await harness.run("v1")
        await harness.share((v1,), v1=100)
        tally = await harness.load().send(20)
        await harness.supervisor.stop("v1")
        await harness.proxy.stop()

    assert tally.of("v1") == 20


async def test_only_the_numbers_can_be_read_from_outside(place: Path) -> None:
    metrics = free_port()
    async with release_harness(place, free_port(), metrics), aiohttp.ClientSession() as session:
        statuses = []
        for path in ("/stats/prometheus", "/quitquitquit", "/config_dump"):
            async with session.get(f"http://127.0.0.1:{metrics}{path}") as answer:
                statuses.append(answer.status)

    assert statuses == [200, 404, 404]


async def test_the_same_table_again_is_no_change(harness: ReleaseHarness) -> None:
    v1 = await harness.run("v1")
    await harness.share((v1,), v1=100)
    routes = harness.proxy.folder / "xds/routes/routes.json"
    stamp = routes.stat().st_mtime_ns

    await harness.proxy.apply(shared((v1,), v1=100))

    assert routes.stat().st_mtime_ns == stamp


@contextlib.asynccontextmanager
async def kept_down(harness: ReleaseHarness) -> AsyncIterator[None]:
    """The supervisor starts it again at once; on a disk that is slow it would be back in time."""

    async def kill() -> None:
        while True:
            pid = harness.supervisor.instance("envoy").pid
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await harness.supervisor.changed("envoy")

    os.kill(envoy_pid(harness), signal.SIGKILL)
    killing = asyncio.create_task(kill())
    try:
        yield
    finally:
        killing.cancel()


async def kill_envoy(harness: ReleaseHarness) -> None:
    os.kill(envoy_pid(harness), signal.SIGKILL)
    await until_back(harness)


def envoy_pid(harness: ReleaseHarness) -> int:
    pid = harness.supervisor.instance("envoy").pid
    assert pid is not None
    return pid


async def until_back(harness: ReleaseHarness) -> None:
    while harness.supervisor.instance("envoy").phase is Phase.HEALTHY:
        await harness.supervisor.changed("envoy")
    await harness.supervisor.ready("envoy")
