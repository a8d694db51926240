"""Workloads on this machine: kept over restarts, changed under load, honest about trouble."""

import dataclasses
import datetime as dt
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.analysis.conditions import Answered, Silent, Unanswered
from fairlead.areas.rollouts import workloads
from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.domain.observation import Pods
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.local import LocalPlatform
from fairlead.areas.rollouts.local.envoy_stats import EnvoyStats
from fairlead.checks.spec import Check
from fairlead.checks.subject import Subject, Version
from fairlead.cli.demo.load import Load
from fairlead.clients.processes import identity
from fairlead.traffic.routes import PRIMARY_ONLY, STANDBY, Match, Route, Where, only_split
from tests.contract.local import shop_platform
from tests.contract.local.shop_versions import four_deviations, free_port, until_timed
from tests.contract.rollout_ports import Site

pytestmark = pytest.mark.xdist_group("envoy")
CRASHES = ["python3", "-c", "import sys; sys.exit('no configuration')"]


@dataclasses.dataclass(frozen=True)
class LocalSite(Site):
    """A site on this machine, with its address."""

    machine: LocalPlatform = dataclasses.field(kw_only=True)
    port: int = dataclasses.field(kw_only=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def live(self, replicas: int = 1) -> None:
        """The first version carries everything."""
        await self.ensure(Slot.PRIMARY, self.versions[0], replicas)
        await self.ready(Slot.PRIMARY, replicas)
        await self.route(PRIMARY_ONLY)

    async def joined(self, replicas: int = 1) -> None:
        await self.ensure(Slot.CANARY, self.versions[1], replicas)
        await self.ready(Slot.CANARY, replicas)
        await self.route(STANDBY)

    async def ready(self, slot: Slot, replicas: int) -> None:
        async def so() -> bool:
            pods = await self.pods(slot)
            return pods is not None and pods.ready == replicas

        await self.until(so)

    def pids(self) -> dict[str, int | None]:
        return {each.name: each.pid for each in self.machine._supervisor.instances()}


@pytest.fixture
async def target(place: Path) -> AsyncIterator[LocalSite]:
    port = free_port()
    async with shop_platform.machine(place) as machine:
        yield await made(machine, port)


async def made(machine: LocalPlatform, port: int) -> LocalSite:
    first, second = await shop_platform.kept(machine, port)
    return LocalSite(machine, machine, (first.want.version, second.want.version),
                  machine=machine, port=port)  # fmt: skip


async def test_a_new_control_plane_finds_processes_route_and_orders(place: Path) -> None:
    port = free_port()
    async with shop_platform.machine(place) as machine:
        before = await made(machine, port)
        await before.live(replicas=2)
        await before.joined()
        order = await before.route(only_split(30))
        pids = before.pids()

    load = Load(f"http://127.0.0.1:{port}/")
    async with load.running(), shop_platform.machine(place) as machine:
        after = await made(machine, port)
        await after.ready(Slot.PRIMARY, 2)
        await after.route(only_split(90), order - 1)
        shown, canary = await after.shown(), await after.pods(Slot.CANARY)
        await load.at_least(50)
        same = after.pids() == pids

    assert shown is not None
    assert (shown.order, shown.weight) == (order, 30)
    assert canary is not None
    assert (canary.ready, canary.known, canary.order) == (1, 1, 3)
    assert same
    assert load.tally.failed == 0


async def test_a_control_plane_that_died_after_writing_its_request_fulfils_it_later(
    place: Path,
) -> None:
    port = free_port()
    async with shop_platform.machine(place) as machine:
        before = await made(machine, port)
        await before.live()
        # What a crash leaves: the file says more than was done.
        workload = machine.workloads["shop"]
        await before.ensure(Slot.CANARY, before.versions[1], 1)
        workload._write(route=only_split(100), route_order=99)

    async with shop_platform.machine(place) as machine:
        after = await made(machine, port)

        async def so() -> bool:
            shown = await after.shown()
            return shown is not None and (shown.order, shown.weight) == (99, 100)

        await after.until(so)
        # The request was not a rollout's, which would have waited for this first.
        await after.ready(Slot.CANARY, 1)
        assert (await Load(after.url).send(20)).of("v2") == 20


async def test_versions_grow_move_and_leave_under_load_without_a_lost_request(
    target: LocalSite,
) -> None:
    await target.live(replicas=2)
    async with Load(target.url, per_second=400).running() as load:
        await target.joined(replicas=2)
        for weight in (10, 50, 100):
            await target.route(only_split(weight))
            await load.at_least(60)
        await target.ensure(Slot.PRIMARY, target.versions[1], 1)
        await target.ready(Slot.PRIMARY, 1)
        await target.route(only_split(0))
        await target.ensure(Slot.PRIMARY, target.versions[1], 3)
        await target.ready(Slot.PRIMARY, 3)
        await load.at_least(60)
        await target.ensure(Slot.PRIMARY, target.versions[1], 1)
        await target.route(PRIMARY_ONLY)
        await target.remove()

        async def gone() -> bool:
            return await target.pods(Slot.CANARY) is None

        await target.until(gone)
        await load.at_least(60)

    assert load.tally.failed == 0
    assert sorted(name.partition(".")[2].partition("-")[0] for name in target.pids()) == [
        "envoy",
        "primary",
    ]


async def test_a_process_that_is_killed_costs_no_request_where_another_stands(
    target: LocalSite,
) -> None:
    await target.live(replicas=2)
    victim = next(pid for name, pid in target.pids().items() if name.endswith(".0"))
    assert victim is not None
    async with Load(target.url, per_second=200).running() as load:
        await load.at_least(20)
        os.kill(victim, signal.SIGKILL)
        await load.at_least(200)
        await target.ready(Slot.PRIMARY, 2)

    # What was under way in the killed process is lost with it; nothing that came later is.
    assert load.tally.failed <= 8


async def test_an_envoy_that_is_killed_comes_back_with_its_route(target: LocalSite) -> None:
    await target.live()
    await target.joined()
    order = await target.route(only_split(100))
    pid = target.pids()["shop.envoy"]
    assert pid is not None

    os.kill(pid, signal.SIGKILL)

    async def back() -> bool:
        shown = await target.shown()
        return shown is not None and target.pids()["shop.envoy"] not in (None, pid)

    await target.until(back)
    assert (await Load(target.url).send(20)).of("v2") == 20
    shown = await target.shown()
    assert shown is not None
    assert (shown.order, shown.weight) == (order, 100)


async def test_requests_are_shared_by_weight_match_and_mirror(target: LocalSite) -> None:
    await target.live()
    await target.joined()
    await target.route(only_split(30))
    shared = (await Load(target.url).send(600)).of("v2")
    await target.route(Route(joined=True, matches=(Match(Where.HEADER, "x-beta", "yes"),)))
    plain = (await Load(target.url).send(20)).of("v2")
    beta = (await Load(target.url, headers={"x-beta": "yes"}).send(20)).of("v2")

    assert abs(shared - 180) <= four_deviations(600, 30)
    assert (plain, beta) == (0, 20)


async def test_a_program_that_crashes_says_so_in_its_own_words(place: Path) -> None:
    words = shop_platform.document("v1", free_port()) | {"program": {"command": CRASHES}}
    async with shop_platform.machine(place) as machine:
        desired = workloads.read(words)
        await machine.keep(desired)
        site = Site(machine, machine, (desired.want.version, desired.want.version))
        await site.ensure(Slot.PRIMARY, desired.want.version, 1)

        found: list[Pods | None] = []

        async def told() -> bool:
            pods = await site.pods(Slot.PRIMARY)
            found.append(pods)
            return pods is not None and pods.trouble.startswith("crash looping")

        await site.until(told)

    pods = found[-1]
    assert pods is not None
    assert pods.ready == 0
    assert pods.trouble == "crash looping: ended with code 1, saying: no configuration"


async def test_a_port_that_somebody_else_has_is_refused_at_once(place: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        async with shop_platform.machine(place) as machine:
            with pytest.raises(errors.Conflict, match=f"port already taken: {taken}"):
                await machine.keep(workloads.read(shop_platform.document("v1", taken)))

            assert machine.workloads == {}


async def test_a_port_cannot_change_under_a_workload(target: LocalSite) -> None:
    other = workloads.read(shop_platform.document("v3", free_port()))

    with pytest.raises(errors.Conflict, match="already listens on another port"):
        await target.machine.keep(other)


async def test_a_revision_that_nobody_kept_is_refused(target: LocalSite) -> None:
    unknown = dataclasses.replace(target.versions[0], revision="ffffffffff")

    with pytest.raises(errors.Rejected, match="no longer kept"):
        await target.ensure(Slot.PRIMARY, unknown, 1)


async def test_a_workload_that_is_let_go_leaves_nothing_and_can_come_back(
    target: LocalSite, place: Path
) -> None:
    await target.live()
    await target.machine.let_go(messages.ReleaseResources("shop", 10))
    late = await target.ensure(Slot.PRIMARY, target.versions[0], 1)

    assert target.pids() == {}
    assert list(identity.marked(str(place / "processes"))) == []
    again = await made(target.machine, target.port)
    assert await again.pods(Slot.PRIMARY) is None
    await again.live()
    assert late
    assert (await Load(again.url).send(10)).of("v1") == 10


async def test_metrics_tell_of_the_canary_since_it_has_its_weight(target: LocalSite) -> None:
    sampler = EnvoyStats(target.machine.workloads, lambda: dt.datetime.now(dt.UTC))
    check = Check("success", "request-success-rate", low=99)
    await target.live()
    await target.joined()
    v1, v2 = (Version(each.revision, str(each)) for each in target.versions)
    about = Subject("shop", 1, v1, v2, 50, dt.datetime.now(dt.UTC))
    await sampler.sample("shop")
    silence = await sampler.ask(check, about)
    await target.route(only_split(50))
    await Load(target.url).send(100)
    success = await sampler.ask(check, about)
    await until_timed(target.machine.workloads["shop"].proxy)
    slow = await sampler.ask(dataclasses.replace(check, query="request-duration"), about)
    await sampler.sample("shop")
    other = await sampler.ask(dataclasses.replace(check, query="up"), about)

    assert isinstance(silence, Silent)
    assert isinstance(success, Answered)
    assert success.value == 100.0
    assert success.requests is not None
    assert (success.requests.failed, success.requests.total > 20) == (0, True)
    assert isinstance(slow, Answered)
    assert slow.value > 0
    assert isinstance(other, Unanswered)
    assert sum(point.requests for point in sampler.recent("shop")) == 100
    assert {point.weight for point in sampler.recent("shop")} >= {50}
