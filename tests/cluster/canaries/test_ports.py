"""The ports over Deployments and a VirtualService keep what every platform and router must keep."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from fairlead.areas.rollouts.kubernetes import wiring
from fairlead.areas.rollouts.kubernetes.context import RolloutContexts
from fairlead.areas.rollouts.kubernetes.parsing import version
from fairlead.areas.rollouts.kubernetes.platform import Platform
from fairlead.areas.rollouts.kubernetes.router import Router
from fairlead.kubernetes.cache.watch import Watches
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.controller.controller import Controller, Reach
from fairlead.kubernetes.controller.queue import QueueOptions
from fairlead.kubernetes.controller.registration import ControllerContext
from fairlead.kubernetes.controller.shards import Shard
from fairlead.kubernetes.kinds import stream_key
from fairlead.kubernetes.objects import Key
from fairlead.kubernetes.writes.effects import Performer
from fairlead.kubernetes.writes.events import Recorder
from fairlead.kubernetes.writes.write_lock import WriteLocks
from tests.cluster.canaries.rollout_cluster import RolloutCluster, canary, template
from tests.contract import test_rollout_ports as contract
from tests.contract.rollout_ports import Site

pytestmark = pytest.mark.cluster


class Leader:
    """A term without end."""

    def check(self) -> None:
        """Nobody else is there."""


@pytest.fixture
async def site(rollouts: RolloutCluster) -> AsyncIterator[Site]:
    obj = await rollouts.create(canary(strategy={"steps": [20], "baseline": True}))
    canaries, clock = wiring.canaries(), Clock()
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(rollouts.connection))
        watches, recorder = Watches(client), Recorder(client, "test")
        reach = Reach(rollouts.space.name, Shard(), QueueOptions(), clock)
        controllers = [
            Controller(kind, watches, client, recorder, reach) for kind in canaries.kinds
        ]
        watching = asyncio.create_task(watches.run())
        stack.push_async_callback(_ended, watching)
        await watches.synced(60)
        write_locks = WriteLocks(Leader())
        held = {str(one.kind.api): one.held for one in controllers}
        performer = Performer(client, held, recorder, write_locks, clock.now)
        contexts = RolloutContexts(
            ControllerContext(
                client, controllers, performer, write_locks, clock, Key("default", "key")
            ),
            canaries,
        )
        platform, name = Platform(contexts), stream_key(obj)
        context = contexts.context_of(name)
        assert context is not None
        await platform.serve(context)
        images = [template("shop:1"), template("shop:2")]
        first, second = (version(each, context.snapshot) for each in images)
        for made, each in ((first, images[0]), (second, images[1])):
            canaries.orders.keep_template(context.uid, made.revision, each)
        yield Site(platform, Router(contexts), (first, second), name, patience=20.0)


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


test_nothing_is_seen = contract.test_nothing_is_seen_where_nothing_was_asked
test_an_asked_version = contract.test_an_asked_version_gets_ready_and_shows_its_order
test_a_slot_changes = contract.test_a_slot_can_grow_shrink_and_change_its_version
test_a_late_order = contract.test_a_late_order_of_a_lower_number_changes_nothing
test_twice_is_once = contract.test_an_order_performed_twice_is_as_good_as_once
test_gone_stays_gone = contract.test_a_canary_that_is_gone_stays_gone_whatever_comes_late
test_a_baseline_leaves = contract.test_a_baseline_stands_beside_the_canary_and_leaves_with_it
test_a_route_is_shown = contract.test_a_route_shows_its_order_and_its_weight
test_a_canary_grows = contract.test_a_canary_grows_under_its_weight
test_a_late_route = contract.test_a_late_route_of_a_lower_number_changes_nothing
test_a_canary_is_known = contract.test_the_mesh_gets_to_know_a_canary_that_has_joined
