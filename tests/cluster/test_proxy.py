"""The proxy does each of the things that tests of the runtime ask of it."""

import asyncio
import time

import aiohttp
import pytest

from tests.cluster import client
from tests.cluster.conftest import Connect
from tests.cluster.proxy import Fault, Lost, Proxy, SeenRequest, verb_of
from tests.cluster.space import Space
from tools.cluster import control_plane

pytestmark = pytest.mark.cluster


@pytest.fixture
async def through(
    cluster: control_plane.ControlPlane, connect: Connect, proxy: Proxy
) -> client.Client:
    """The administrator, on the far side of the proxy."""
    return await connect(cluster.admin_token, proxy.url)


async def test_without_a_rule_everything_passes_and_is_counted(
    through: client.Client, proxy: Proxy, space: Space
) -> None:
    maps = space.path("configmaps")
    await through.create(maps, _map("a"))
    await through.apply(f"{maps}/b", {"apiVersion": "v1", "kind": "ConfigMap", **_map("b")})
    await through.patch(f"{maps}/a", {"data": {"key": "new"}})
    await through.get(f"{maps}/a")
    listed = await through.get(maps, labelSelector="!absent, !missing")
    await through.delete(f"{maps}/a")

    assert {"a", "b"} <= {one["metadata"]["name"] for one in listed["items"]}
    assert proxy.counts == {
        ("create", maps): 1,
        ("patch", f"{maps}/a"): 1,
        ("patch", f"{maps}/b"): 1,
        ("get", f"{maps}/a"): 1,
        ("list", maps): 1,
        ("delete", f"{maps}/a"): 1,
    }
    assert proxy.count(verb="patch|delete", path=f"{maps}/a") == 2


async def test_rights_are_those_of_the_caller_not_of_the_proxy(
    connect: Connect, proxy: Proxy, space: Space
) -> None:
    stranger = await space.account("stranger")
    through = await connect(stranger.token, proxy.url)

    with pytest.raises(client.ApiError) as refused:
        await through.get(space.path("configmaps"))

    assert refused.value.status == 403
    assert proxy.seen == [SeenRequest("list", space.path("configmaps"), 403)]


@pytest.mark.parametrize("status", [409, 410, 429, 500, 503])
async def test_a_rule_answers_instead_of_the_api_server(
    status: int, through: client.Client, admin: client.Client, proxy: Proxy, space: Space
) -> None:
    maps = space.path("configmaps")
    proxy.inject(Fault(verb="create", path=maps, status=status))

    with pytest.raises(client.ApiError) as refused:
        await through.create(maps, _map("a"))

    assert refused.value.status == status
    assert refused.value.body["kind"] == "Status"
    assert proxy.seen == [SeenRequest("create", maps, status)]
    await _assert_absent(admin, f"{maps}/a")


async def test_a_rule_holds_for_its_verb_its_path_and_its_number_of_times(
    through: client.Client, proxy: Proxy, space: Space
) -> None:
    maps = space.path("configmaps")
    proxy.inject(Fault(verb="create", path=f"{space.path('')}.*maps", times=2, status=500))

    await through.get(maps)
    await through.create(space.path("secrets"), _map("other") | {"data": {}})
    answers = [await _status_of(through, maps, name) for name in ("a", "b", "c")]

    assert answers == [500, 500, 201]


async def test_a_cleared_rule_holds_no_more(
    through: client.Client, proxy: Proxy, space: Space
) -> None:
    maps = space.path("configmaps")
    proxy.inject(Fault(times=None, status=500))
    while_it_holds = [await _status_of(through, maps, "a") for _ in range(3)]

    proxy.clear()

    assert while_it_holds == [500, 500, 500]
    assert await _status_of(through, maps, "a") == 201


async def test_too_many_requests_says_when_to_come_back(
    cluster: control_plane.ControlPlane, proxy: Proxy, space: Space
) -> None:
    proxy.inject(Fault(status=429, retry_after=7))

    async with aiohttp.ClientSession() as bare:
        answer = await bare.get(proxy.url + space.path("configmaps"))

    assert answer.status == 429
    assert answer.headers["Retry-After"] == "7"


async def test_latency_is_added_before_the_answer(
    through: client.Client, proxy: Proxy, space: Space
) -> None:
    proxy.inject(Fault(verb="list", delay=0.2))

    started = time.monotonic()
    await through.get(space.path("configmaps"))

    assert time.monotonic() - started >= 0.2


@pytest.mark.parametrize(("lost", "made"), [(Lost.REQUEST, False), (Lost.ANSWER, True)])
async def test_a_lost_answer_hides_that_the_work_was_done(
    lost: Lost,
    through: client.Client,
    admin: client.Client,
    proxy: Proxy,
    space: Space,
    *,
    made: bool,
) -> None:
    maps = space.path("configmaps")
    proxy.inject(Fault(verb="create", lost=lost))

    with pytest.raises(aiohttp.ClientError):
        await through.create(maps, _map("a"))

    assert proxy.seen == [SeenRequest("create", maps, 0)]
    names = {one["metadata"]["name"] for one in (await admin.get(maps))["items"]}
    assert ("a" in names) is made


async def test_events_of_a_watch_arrive_while_it_is_open(
    through: client.Client, admin: client.Client, proxy: Proxy, space: Space
) -> None:
    maps = space.path("configmaps")
    async with asyncio.timeout(30), through.watch(maps, **await _now(admin, maps)) as events:
        await proxy.until(lambda: proxy.open_watches == [maps])
        await admin.create(maps, _map("a"))

        event = await anext(events)

    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
    await proxy.until(lambda: not proxy.open_watches)


async def test_open_watches_are_cut_at_any_moment(
    through: client.Client, admin: client.Client, proxy: Proxy, space: Space
) -> None:
    maps = space.path("configmaps")
    async with asyncio.timeout(30), through.watch(maps, **await _now(admin, maps)) as events:
        await proxy.until(lambda: proxy.open_watches == [maps])

        cut = (proxy.cut_watches("/nowhere"), proxy.cut_watches(maps))

        with pytest.raises(aiohttp.ClientError):
            await anext(events)
    assert cut == (0, 1)


async def test_a_watch_is_cut_after_a_number_of_events(
    through: client.Client, admin: client.Client, proxy: Proxy, space: Space
) -> None:
    maps = space.path("configmaps")
    since = await _now(admin, maps)
    for name in ("a", "b", "c"):
        await admin.create(maps, _map(name))
    proxy.inject(Fault(verb="watch", path=maps, cut_after=2))

    async with asyncio.timeout(30), through.watch(maps, **since) as events:
        names = [(await anext(events))["object"]["metadata"]["name"] for _ in range(2)]
        with pytest.raises(aiohttp.ClientError):
            await anext(events)

    assert names == ["a", "b"]


async def test_an_expired_watch_ends_with_gone(
    through: client.Client, admin: client.Client, proxy: Proxy, space: Space
) -> None:
    maps = space.path("configmaps")
    async with asyncio.timeout(30), through.watch(maps, **await _now(admin, maps)) as events:
        await proxy.until(lambda: proxy.open_watches == [maps])

        expired = proxy.expire_watches()

        with pytest.raises(client.ApiError) as refused:
            await anext(events)
    assert expired == 1
    assert (refused.value.status, refused.value.body["reason"]) == (410, "Expired")


async def test_waiting_goes_on_through_cut_and_expired_watches(
    through: client.Client, admin: client.Client, proxy: Proxy, space: Space
) -> None:
    maps = space.path("configmaps")
    waiting = asyncio.create_task(through.wait_for(f"{maps}/late", lambda _: True))
    await proxy.until(lambda: proxy.open_watches == [maps])
    proxy.expire_watches()
    await proxy.until(lambda: proxy.count("watch") == 2 and proxy.open_watches == [maps])

    await admin.create(maps, _map("late"))

    assert (await waiting)["metadata"]["name"] == "late"
    assert proxy.count("list", maps) == 2


@pytest.mark.parametrize(
    ("method", "path", "watch", "verb"),
    [
        ("GET", "/api/v1/namespaces", "", "list"),
        ("GET", "/api/v1/namespaces/shop", "", "get"),
        ("GET", "/api/v1/namespaces/shop/pods", "", "list"),
        ("GET", "/api/v1/namespaces/shop/pods/web", "", "get"),
        ("GET", "/apis/apps/v1/deployments", "true", "watch"),
        ("GET", "/apis/apps/v1/deployments", "1", "watch"),
        ("GET", "/apis/apps/v1/deployments", "", "list"),
        ("PUT", "/apis/apps/v1/namespaces/shop/deployments/web/status", "", "update"),
        ("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web", "", "patch"),
        ("DELETE", "/apis/apps/v1/namespaces/shop/deployments", "", "deletecollection"),
        ("DELETE", "/api/v1/namespaces/shop", "", "delete"),
        ("POST", "/api/v1/namespaces/shop/pods", "", "create"),
        ("GET", "/version", "", "get"),
        ("GET", "/apis", "", "get"),
        ("GET", "/api/v1", "", "get"),
    ],
)
def test_the_verb_is_the_one_that_rbac_would_name(
    method: str, path: str, watch: str, verb: str
) -> None:
    assert verb_of(method, path, watch) == verb


def _map(name: str) -> client.Json:
    return {"metadata": {"name": name}}


async def _now(admin: client.Client, where: str) -> dict[str, str]:
    """From here on: a watch that starts with nothing old."""
    return {"resourceVersion": (await admin.get(where))["metadata"]["resourceVersion"]}


async def _status_of(through: client.Client, where: str, name: str) -> int:
    try:
        await through.create(where, _map(name))
    except client.ApiError as refused:
        return refused.status
    return 201


async def _assert_absent(admin: client.Client, where: str) -> None:
    with pytest.raises(client.ApiError) as missing:
        await admin.get(where)
    assert missing.value.status == 404
