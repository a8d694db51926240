"""How a call travels: its turn, its tries, its identity, and what failures become."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from fairlead.errors import Conflict, Rejected, Unauthorised, Unavailable
from fairlead.kubernetes import api_errors
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client, Preconditions
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.client.limits import Limits
from fairlead.kubernetes.client.pool import Unconnected
from fairlead.kubernetes.client.transport import ClientOptions
from fairlead.kubernetes.objects import EVERYTHING, Key
from tests.contract.kubernetes_samples import CONFIG_MAPS, SECRETS, config_map
from tests.fakes.kubernetes.hand_clock import RushingClock
from tests.fakes.kubernetes.server import Fault, Server

A = Key("default", "a")
LEVEL = {"X-Kubernetes-PF-PriorityLevel-UID": "workload-low"}


class World:
    """A fake server, a client to it, and a clock that jumps."""

    def __init__(self, server: Server, client: Client, clock: RushingClock) -> None:
        self.server = server
        self.client = client
        self.clock = clock


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with Server().running() as server, opened(server) as world:
        yield world


@contextlib.asynccontextmanager
async def opened(
    server: Server, source: credentials.Credentials | None = None, **bounds: Any
) -> AsyncIterator[World]:
    clock = RushingClock()
    options = ClientOptions(Limits(**bounds), clock.clock(), chance=lambda: 1.0)
    connection = Connection(server.url, source or credentials.Fixed())
    async with Client(connection, options=options) as client:
        yield World(server, client, clock)


async def test_reading_is_tried_again_with_growing_waits(world: World) -> None:
    world.server.faults.append(Fault(503, times=3))

    page = await world.client.page(CONFIG_MAPS)

    assert page.items == []
    assert world.clock.slept == [0.2, 0.4, 0.8]


async def test_tries_end(world: World) -> None:
    world.server.faults.append(Fault(500, times=100))

    with pytest.raises(Unavailable) as failed:
        await world.client.get(CONFIG_MAPS, A)

    assert len(world.server.requests) == 5
    assert isinstance(failed.value.__cause__, api_errors.StatusError)


async def test_create_is_not_repeated_when_it_may_have_worked(world: World) -> None:
    world.server.faults.append(Fault(500, times=1))

    with pytest.raises(api_errors.Busy):
        await world.client.create(CONFIG_MAPS, config_map("default", "a"))

    assert len(world.server.requests) == 1


async def test_create_is_repeated_when_it_was_turned_away(world: World) -> None:
    world.server.faults.append(Fault(429, times=2, headers={"Retry-After": "3"}))

    await world.client.create(CONFIG_MAPS, config_map("default", "a"))

    assert len(world.server.requests) == 3
    assert world.clock.seconds >= 6


async def test_versioned_replace_is_not_repeated(world: World) -> None:
    made = await world.client.create(CONFIG_MAPS, config_map("default", "a"))
    world.server.faults.append(Fault(503))

    with pytest.raises(api_errors.Busy):
        await world.client.replace(CONFIG_MAPS, made)


async def test_delete_is_repeated_only_with_a_uid(world: World) -> None:
    made = await world.client.create(CONFIG_MAPS, config_map("default", "a"))
    world.server.faults.append(Fault(503, times=2))

    with pytest.raises(api_errors.Busy):
        await world.client.delete(CONFIG_MAPS, A)
    await world.client.delete(CONFIG_MAPS, A, Preconditions(uid=made["metadata"]["uid"]))

    assert [r.method for r in world.server.requests] == ["POST", "DELETE", "DELETE", "DELETE"]


async def test_retry_after_is_told_to_the_caller(world: World) -> None:
    headers = {"Retry-After": "7"}
    world.server.faults.append(Fault(503, times=1, headers=headers))

    with pytest.raises(api_errors.Busy) as failed:
        await world.client.create(CONFIG_MAPS, config_map("default", "a"))

    assert failed.value.retry_after == 7


async def test_a_busy_level_holds_back_its_own_flow_only(world: World) -> None:
    busy = Fault(429, times=1, headers={**LEVEL, "Retry-After": "5"})
    busy.only = lambda request: "configmaps" in request.path
    world.server.faults.append(busy)

    async with opened(world.server, attempts=1) as once:
        with pytest.raises(api_errors.Busy):
            await once.client.page(CONFIG_MAPS)
        await once.client.page(SECRETS)
        waited_for_secrets = once.clock.seconds
        await once.client.page(CONFIG_MAPS)

    assert waited_for_secrets == 0
    assert once.clock.seconds == 5


async def test_our_own_rate_is_kept(world: World) -> None:
    async with opened(world.server, rate=10, burst=2) as slow:
        for _ in range(6):
            await slow.client.page(CONFIG_MAPS)

    assert slow.clock.seconds == pytest.approx(0.4)


class Rotating:
    """Gives the next token once the one before was refused."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    async def current(self) -> credentials.Identity:
        return credentials.Identity(token=self.tokens[0])

    def refused(self, identity: credentials.Identity) -> bool:
        self.tokens.remove(identity.token)
        return bool(self.tokens)


async def test_an_ended_token_is_replaced_once(world: World) -> None:
    world.server.tokens = {"fresh"}
    async with opened(world.server, Rotating("stale", "fresh")) as rotating:
        page = await rotating.client.page(CONFIG_MAPS)

    assert page.items == []
    assert rotating.clock.slept == []


async def test_an_unknown_caller_is_told_so(world: World) -> None:
    world.server.tokens = {"other"}

    with pytest.raises(Unauthorised, match="rejected our credentials"):
        await world.client.page(CONFIG_MAPS)

    assert len(world.server.requests) == 1


async def test_a_forbidden_call_names_verb_and_resource(world: World) -> None:
    world.server.forbidden.add(("POST", "configmaps"))

    with pytest.raises(Unauthorised, match=r"not allowed to create .*/configmaps") as refused:
        await world.client.create(CONFIG_MAPS, config_map("default", "a"))

    assert "RBAC" in refused.value.hint


async def test_what_the_server_says_of_secrets_is_not_repeated() -> None:
    async def quote(request: web.Request) -> web.Response:
        causes = [{"field": "data.key", "reason": "Bad", "message": "hunter2"}]
        body = {"kind": "Status", "message": "hunter2", "details": {"causes": causes}}
        return web.json_response(body, status=422)

    async with serving(quote) as url, Client(Connection(url, credentials.Fixed())) as client:
        with pytest.raises(Rejected, match=r"data.key") as refused:
            await client.get(SECRETS, A)

    assert "hunter2" not in f"{refused.value}{refused.value.__cause__}"


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    clock = RushingClock()
    options = ClientOptions(Limits(attempts=2), clock.clock())
    connection = Connection("http://127.0.0.1:9", credentials.Fixed())
    async with Client(connection, options=options) as client:
        with pytest.raises(Unavailable) as failed:
            await client.create(CONFIG_MAPS, config_map("default", "a"))

    assert isinstance(failed.value.__cause__, Unconnected)
    assert len(clock.slept) == 1


async def test_a_silent_server_is_given_up() -> None:
    release = asyncio.Event()

    async def silent(request: web.Request) -> web.Response:
        await release.wait()
        return web.Response()

    options = ClientOptions(Limits(attempts=1, timeout=0.05))
    async with serving(silent) as url:
        async with Client(Connection(url, credentials.Fixed()), options=options) as client:
            with pytest.raises(Unavailable):
                await client.get(CONFIG_MAPS, A)
        release.set()


async def test_a_redirect_does_not_get_our_token() -> None:
    followed: list[str] = []

    async def redirect(request: web.Request) -> web.Response:
        followed.append(request.path)
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    async with serving(redirect) as url, Client(Connection(url, credentials.Fixed())) as client:
        with pytest.raises(Rejected):
            await client.get(CONFIG_MAPS, A)

    assert followed == ["/api/v1/namespaces/default/configmaps/a"]


async def test_a_cut_list_is_read_again() -> None:
    answers_given: list[int] = []

    async def cut_first(request: web.Request) -> web.StreamResponse:
        answers_given.append(1)
        if len(answers_given) > 1:
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"metadata"')
        assert request.transport is not None
        request.transport.close()
        return response

    options = ClientOptions(clock=RushingClock().clock())
    async with (
        serving(cut_first) as url,
        Client(Connection(url, credentials.Fixed()), options=options) as client,
    ):
        page = await client.page(CONFIG_MAPS)

    assert page.resource_version == "1"


async def test_an_answer_from_somebody_else_is_unavailable_not_a_crash() -> None:
    async def page(request: web.Request) -> web.Response:
        return web.Response(text="<html>captive portal</html>")

    async with serving(page) as url, Client(Connection(url, credentials.Fixed())) as client:
        with pytest.raises(Unavailable, match="cannot read"):
            await client.get(CONFIG_MAPS, A)
        with pytest.raises(Unavailable, match="cannot read"):
            await client.page(CONFIG_MAPS)
        with pytest.raises(Unavailable):
            async for _ in client.watch(CONFIG_MAPS, EVERYTHING, "1", 1):
                pass


async def test_a_megabyte_in_one_watch_line_arrives(world: World) -> None:
    big = config_map("default", "a", blob="x" * 900_000)
    await world.client.create(CONFIG_MAPS, big)

    async for event in world.client.watch(CONFIG_MAPS, EVERYTHING, "0", 1):
        if event.type == "ADDED":
            assert len(bytes(event.object)) > 900_000
            return
    pytest.fail("the big object did not come")


async def test_a_large_object_is_sent_and_read(world: World) -> None:
    big = config_map("default", "a", blob="x" * 1_400_000)

    await world.client.create(CONFIG_MAPS, big)

    found = await world.client.get(CONFIG_MAPS, A)
    assert len(found["data"]["blob"]) == 1_400_000


@pytest.mark.parametrize("name", ["..", "a/b", "%2e", ""])
async def test_a_name_cannot_climb_to_another_path(world: World, name: str) -> None:
    with pytest.raises(Rejected, match="not a name"):
        await world.client.get(CONFIG_MAPS, Key("default", name))

    assert world.server.requests == []


async def test_a_conflict_keeps_the_servers_words(world: World) -> None:
    made = await world.client.create(CONFIG_MAPS, config_map("default", "a"))
    await world.client.patch(CONFIG_MAPS, A, {"data": {"x": "y"}})

    with pytest.raises(Conflict) as clash:
        await world.client.replace(CONFIG_MAPS, made)

    said = clash.value.__cause__
    assert isinstance(said, api_errors.StatusError)
    assert said.reason == "Conflict"


@contextlib.asynccontextmanager
async def serving(handler: Any) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def test_no_more_requests_at_once_than_allowed() -> None:
    arrived, go = asyncio.Semaphore(0), asyncio.Event()
    now: list[int] = []

    async def answer(_: web.Request) -> web.Response:
        now.append(1)
        arrived.release()
        await go.wait()
        return web.json_response({"metadata": {"name": "a"}})

    async with serving(answer) as url:
        options = ClientOptions(Limits(at_once=2))
        async with Client(Connection(url, credentials.Fixed()), options=options) as client:
            asked = [asyncio.create_task(client.get(CONFIG_MAPS, A)) for _ in range(5)]
            await arrived.acquire()
            await arrived.acquire()
            # Everybody had a turn: whoever could send has sent.
            await asyncio.wait(asked, timeout=0.05)
            together = len(now)
            go.set()
            await asyncio.gather(*asked)

    assert together == 2
    assert len(now) == 5
