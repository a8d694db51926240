"""The ports over Deployments and a VirtualService keep what every platform and router must keep."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from fairlead.adapters.canaries import wiring
from fairlead.adapters.canaries.desk import Desk
from fairlead.adapters.canaries.platform import Platform
from fairlead.adapters.canaries.reading import version
from fairlead.adapters.canaries.router import Router
from fairlead.adapters.kubernetes.client import Client
from fairlead.adapters.kubernetes.clock import Clock
from fairlead.adapters.kubernetes.crew import Gear
from fairlead.adapters.kubernetes.events import Recorder
from fairlead.adapters.kubernetes.queue import Pace
from fairlead.adapters.kubernetes.shards import Shard
from fairlead.adapters.kubernetes.station import Reach, Station
from fairlead.adapters.kubernetes.turns import Turns
from fairlead.adapters.kubernetes.watch import Watches
from fairlead.intents.kubernetes import stream_key
from tests.cluster.canaries.scene import Scene, canary, template
from tests.contract import test_rollout_ports as contract
from tests.contract.rollout_ports import Site

pytestmark = pytest.mark.cluster


class Leader:
    """A term without end."""

    def check(self) -> None:
        """Nobody else is there."""


@pytest.fixture
async def site(scene: Scene) -> AsyncIterator[Site]:
    obj = await scene.create(canary(strategy={"steps": [20], "baseline": True}))
    canaries, clock = wiring.canaries(), Clock()
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(scene.connection))
        watches, recorder = Watches(client), Recorder(client, "test")
        reach = Reach(scene.space.name, Shard(), Pace(), clock)
        stations = [Station(kind, watches, client, recorder, reach) for kind in canaries.kinds]
        watching = asyncio.create_task(watches.run())
        stack.push_async_callback(_ended, watching)
        await watches.synced(60)
        desk = Desk(Gear(client, stations, recorder, Turns(Leader()), clock), canaries)
        platform, name = Platform(desk), stream_key(obj)
        case = desk.look(name)
        assert case is not None
        await platform.serve(case)
        images = [template("shop:1"), template("shop:2")]
        first, second = (version(each, case.around) for each in images)
        for made, each in ((first, images[0]), (second, images[1])):
            canaries.ledger.keep_template(case.uid, made.revision, each)
        yield Site(platform, Router(desk), (first, second), name, patience=20.0)


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


test_nothing_is_seen = contract.test_nothing_is_seen_where_nothing_was_asked
test_an_asked_version = contract.test_an_asked_version_gets_ready_and_shows_its_order
test_a_slot_changes = contract.test_a_slot_can_grow_shrink_and_change_its_version
test_a_late_errand = contract.test_a_late_errand_of_a_lower_order_changes_nothing
test_twice_is_once = contract.test_an_errand_performed_twice_is_as_good_as_once
test_gone_stays_gone = contract.test_a_canary_that_is_gone_stays_gone_whatever_comes_late
test_a_baseline_leaves = contract.test_a_baseline_stands_beside_the_canary_and_leaves_with_it
test_a_route_is_shown = contract.test_a_route_shows_its_order_and_its_share
test_a_late_route = contract.test_a_late_route_of_a_lower_order_changes_nothing
test_a_canary_is_known = contract.test_the_mesh_gets_to_know_a_canary_that_has_joined
