"""The operator on a real cluster: engine and reconcilers together, with its own rights."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Object
from tests.cluster import client
from tests.cluster.conftest import Outage
from tests.cluster.proxy import Fault, Lost, Proxy
from tests.cluster.space import Space
from tests.operator.sample_kind import KIND, bundle
from tests.operator.workers import RunningOperator, working

pytestmark = pytest.mark.cluster

NAMES = ("north", "south")


@pytest.fixture
async def through_proxy(operator: Connection, proxy: Proxy) -> Connection:
    return Connection(proxy.url, operator.credentials)


@dataclass
class Watched:
    """An operator that has done all it has to, behind a proxy that has seen nothing yet."""

    running: RunningOperator
    proxy: Proxy


@pytest.fixture
async def watched(  # noqa: PLR0917 - fixtures are asked for by argument
    admin: client.Client,
    bundles: str,
    space: Space,
    through_proxy: Connection,
    proxy: Proxy,
    tmp_path: Path,
) -> AsyncIterator[Watched]:
    await launch(admin, bundles, space)
    async with working(through_proxy, space.name, tmp_path) as running:
        await running.until_done()
        proxy.seen.clear()
        yield Watched(running, proxy)


async def launch(admin: client.Client, bundles: str, space: Space, *names: str) -> None:
    for name in names or NAMES:
        await admin.create(bundles, bundle(space.name, name))


async def load(admin: client.Client, bundles: str, cargo: str) -> None:
    for name in NAMES:
        await admin.patch(f"{bundles}/{name}", {"spec": {"cargo": cargo}})


async def cargoes(admin: client.Client, space: Space) -> list[str]:
    found = await admin.get(space.path("configmaps"))
    return [one["data"]["cargo"] for one in found["items"] if "cargo" in one.get("data", {})]


async def carrying(
    admin: client.Client, space: Space, running: RunningOperator, cargo: str
) -> None:
    """Until the server holds it: the caches may be behind the hand that changed the objects."""
    for name in NAMES:
        for number in range(3):
            path = space.path("configmaps", f"{name}-{number}")
            await admin.wait_for(path, lambda found: found["data"]["cargo"] == cargo, 60)
    await running.until_done()


def condition(obj: Object, type_: str) -> tuple[str, str]:
    found = (obj.get("status") or {}).get("conditions") or ()
    return next(((one["status"], one["reason"]) for one in found if one["type"] == type_), ("", ""))


def is_ready(obj: Object) -> bool:
    return condition(obj, "Ready")[0] == "True"


async def test_an_object_gets_its_children_and_status_in_four_writes(
    admin: client.Client, bundles: str, space: Space, operator: Connection, tmp_path: Path
) -> None:
    await launch(admin, bundles, space)

    async with working(operator, space.name, tmp_path) as running:
        await running.until_done()

    assert await cargoes(admin, space) == ["tea"] * 6
    assert running.writes == 8
    # Once, at the start: the namespace whose UID names the cluster.
    assert running.requests["get"] == 1


async def test_at_rest_nothing_is_asked_but_the_watches(
    admin: client.Client,
    bundles: str,
    space: Space,
    through_proxy: Connection,
    *,
    proxy: Proxy,
    tmp_path: Path,
) -> None:
    """The benchmark does the same with 5,000 objects and a minute, and fails where this does."""
    await launch(admin, bundles, space, *(f"f-{number}" for number in range(100)))

    async with working(through_proxy, space.name, tmp_path) as running:
        await running.until_done()
        before, watching = len(proxy.seen), proxy.open_watches
        running.reconcile_all()
        await running.settled()
        await asyncio.sleep(2)
        asked = proxy.seen[before:]
        still = proxy.open_watches

    assert asked == []
    assert still == watching
    assert len(watching) == 2


async def test_a_second_pass_and_a_restart_write_nothing(
    admin: client.Client, bundles: str, space: Space, operator: Connection, tmp_path: Path
) -> None:
    await launch(admin, bundles, space)
    async with working(operator, space.name, tmp_path) as running:
        await running.until_done()
        before = running.requests.copy()
        running.reconcile_all()
        await running.settled()
        again = running.requests - before

    async with working(operator, space.name, tmp_path) as restarted:
        await restarted.until_done()
    async with working(operator, space.name, tmp_path / "empty") as adopting:
        await adopting.until_done()

    assert again.total() == 0
    assert restarted.writes == 0
    assert adopting.writes == 0


async def test_a_change_that_is_no_level_costs_no_request_and_no_commit(
    admin: client.Client, bundles: str, space: Space, watched: Watched
) -> None:
    running, engine = watched.running, watched.running.operator.engine
    assert engine is not None
    commits = engine.counts.commits
    noted = {"metadata": {"annotations": {"note": "seen"}}}
    await admin.create(space.path("configmaps"), {"metadata": {"name": "driftwood"}})
    for name in NAMES:
        await admin.patch(f"{bundles}/{name}", noted)
    await running.until(lambda: all("annotations" in one["metadata"] for one in running.bundles))
    await running.settled()
    asked = [one for one in watched.proxy.seen if one.verb != "watch"]

    assert asked == []
    assert engine.counts.commits == commits


async def test_an_empty_store_goes_on_from_the_status(
    admin: client.Client, bundles: str, space: Space, operator: Connection, tmp_path: Path
) -> None:
    await launch(admin, bundles, space)
    async with working(operator, space.name, tmp_path) as running:
        await running.until_done()
        await load(admin, bundles, "silk")
        await carrying(admin, space, running, "silk")

    await load(admin, bundles, "salt")
    async with working(operator, space.name, tmp_path / "empty") as running:
        await carrying(admin, space, running, "salt")

    found = await admin.get(f"{bundles}/north")
    assert found["status"]["voyages"] == 3


async def test_a_hand_edit_is_restored_and_a_deleted_child_comes_again(
    admin: client.Client, bundles: str, space: Space, operator: Connection, tmp_path: Path
) -> None:
    await launch(admin, bundles, space, "north")
    async with working(operator, space.name, tmp_path) as running:
        await running.until_done()
        edited, deleted = (space.path("configmaps", f"north-{n}") for n in (0, 1))
        first = await admin.get(deleted)
        await admin.patch(edited, {"data": {"cargo": "rats", "extra": "more rats"}})
        await admin.wait_for(edited, lambda found: found["data"]["cargo"] == "tea")
        await admin.delete(deleted)
        await admin.wait_for(
            deleted, lambda found: found["metadata"]["uid"] != first["metadata"]["uid"]
        )
        await running.until_done()

    assert await cargoes(admin, space) == ["tea"] * 3


@pytest.mark.usefixtures("controllers")
async def test_nothing_is_written_after_the_deletion(
    admin: client.Client, bundles: str, space: Space, watched: Watched
) -> None:
    running = watched.running
    await admin.delete(f"{bundles}/north")
    for number in range(3):
        await admin.wait_until_gone(space.path("configmaps", f"north-{number}"), 60)
    await running.until(lambda: len(running.bundles) == 1)
    await running.until_done()

    assert watched.proxy.count("create|update|patch") == 0
    assert await cargoes(admin, space) == ["tea"] * 3


@pytest.mark.usefixtures("controllers")
async def test_a_successor_under_the_same_name_begins_anew(
    admin: client.Client, bundles: str, space: Space, operator: Connection, tmp_path: Path
) -> None:
    await launch(admin, bundles, space, "north")
    async with working(operator, space.name, tmp_path) as running:
        await running.until_done()
        first = await admin.get(f"{bundles}/north")
        await admin.delete(f"{bundles}/north")
        await launch(admin, bundles, space, "north")
        second = await admin.wait_for(f"{bundles}/north", is_ready, 60)
        await running.until_done()

    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert second["status"]["voyages"] == 1
    assert await cargoes(admin, space) == ["tea"] * 3


async def test_a_held_object_is_let_go(
    admin: client.Client, bundles: str, space: Space, operator: Connection, tmp_path: Path
) -> None:
    await admin.create(bundles, bundle(space.name, "north", hold=True))
    async with working(operator, space.name, tmp_path) as running:
        held = await admin.wait_for(
            f"{bundles}/north", lambda obj: bool(obj["metadata"].get("finalizers"))
        )
        await running.until_done()
        await admin.delete(f"{bundles}/north")
        await admin.wait_until_gone(f"{bundles}/north")

    assert held["metadata"]["finalizers"] == [KIND.finalizer]


@pytest.mark.parametrize("crash", [False, True], ids=["asked", "killed"])
async def test_a_restarted_api_server_is_waited_for(
    admin: client.Client,
    bundles: str,
    space: Space,
    operator: Connection,
    outage: Outage,
    *,
    crash: bool,
    tmp_path: Path,
) -> None:
    await launch(admin, bundles, space)
    async with working(operator, space.name, tmp_path) as running:
        await running.until_done()
        async with outage(crash=crash):
            pass
        await load(admin, bundles, "silk")
        await carrying(admin, space, running, "silk")

    assert await cargoes(admin, space) == ["silk"] * 6


@pytest.mark.parametrize(
    "fault",
    [
        Fault("create|patch", times=5, status=409),
        Fault("create|patch|list|watch", times=8, status=429, retry_after=1),
        Fault(".*", times=12, status=500),
        Fault("create|patch", times=6, lost=Lost.REQUEST),
        Fault("create|patch", times=6, lost=Lost.ANSWER),
        Fault("watch", times=6, cut_after=1),
        Fault("list|watch", times=4, status=410),
    ],
    ids=["409", "429", "500", "lost-request", "lost-answer", "cut", "410"],
)
async def test_faults_on_the_way_are_got_over(
    admin: client.Client,
    bundles: str,
    space: Space,
    through_proxy: Connection,
    *,
    proxy: Proxy,
    fault: Fault,
    tmp_path: Path,
) -> None:
    await launch(admin, bundles, space)
    proxy.inject(fault)

    async with working(through_proxy, space.name, tmp_path) as running:
        await running.until_done()
        proxy.expire_watches()
        await load(admin, bundles, "silk")
        await carrying(admin, space, running, "silk")
        before = running.writes
        running.reconcile_all()
        await running.settled()
        again = running.writes - before

    assert await cargoes(admin, space) == ["silk"] * 6
    assert again == 0
