"""What every platform and router must keep, so that a rollout loses no request on it.

An adapter joins by giving the fixture `site` one more parameter.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.clients.processes import clean_up
from fairlead.traffic.routes import PRIMARY_ONLY, STANDBY, Route, only_split
from fairlead.traffic.weights import giving
from tests.contract.local import shop_platform
from tests.contract.rollout_ports import Site
from tests.fakes.rollouts import FakePlatform
from tests.unit.areas.rollouts.domain.world import version

pytestmark = pytest.mark.xdist_group("envoy")

COMPARED = Route(joined=True, compared=True)


@pytest.fixture(params=["fake", "local"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    if request.param == "fake":
        platform = FakePlatform()
        yield Site(platform, platform, (version("v1"), version("v2")))
        return
    async with shop_platform.machine(tmp_path) as machine:
        first, second = await shop_platform.kept(machine)
        yield Site(machine, machine, (first.want.version, second.want.version))
    await clean_up(tmp_path / "processes", drain_seconds=2.0)


async def test_nothing_is_seen_where_nothing_was_asked(site: Site) -> None:
    assert [await site.pods(slot) for slot in Slot] == [None, None, None]
    assert await site.shown() is None


async def test_an_asked_version_gets_ready_and_shows_its_order(site: Site) -> None:
    order = await site.ensure(Slot.PRIMARY, site.versions[0], 2)

    async def ready() -> bool:
        pods = await site.pods(Slot.PRIMARY)
        return pods is not None and pods.ready == 2

    await site.until(ready)
    pods = await site.pods(Slot.PRIMARY)
    assert pods is not None
    assert (pods.revision, pods.desired, pods.order) == (site.versions[0].revision, 2, order)


async def test_a_slot_can_grow_shrink_and_change_its_version(site: Site) -> None:
    old, new = site.versions
    for wanted, replicas in ((old, 1), (old, 3), (old, 2), (new, 2)):
        await site.ensure(Slot.PRIMARY, wanted, replicas)

        async def so(revision: str = wanted.revision, count: int = replicas) -> bool:
            pods = await site.pods(Slot.PRIMARY)
            return pods is not None and (pods.revision, pods.ready) == (revision, count)

        await site.until(so)


async def test_a_late_order_of_a_lower_number_changes_nothing(site: Site) -> None:
    old, new = site.versions
    first = await site.ensure(Slot.PRIMARY, old, 1)
    second = await site.ensure(Slot.PRIMARY, new, 1)

    await site.ensure(Slot.PRIMARY, old, 1, first)

    pods = await site.pods(Slot.PRIMARY)
    assert pods is not None
    assert (pods.revision, pods.order) == (new.revision, second)


async def test_an_order_performed_twice_is_as_good_as_once(site: Site) -> None:
    order = await site.ensure(Slot.CANARY, site.versions[1], 2)

    await site.ensure(Slot.CANARY, site.versions[1], 2, order)

    pods = await site.pods(Slot.CANARY)
    assert pods is not None
    assert pods.desired == 2


async def test_a_canary_that_is_gone_stays_gone_whatever_comes_late(site: Site) -> None:
    made = await site.ensure(Slot.CANARY, site.versions[1], 1)
    await site.remove()

    async def gone() -> bool:
        return await site.pods(Slot.CANARY) is None

    await site.until(gone)
    await site.remove()
    await site.ensure(Slot.CANARY, site.versions[1], 1, made)

    assert await gone()


async def test_a_baseline_stands_beside_the_canary_and_leaves_with_it(site: Site) -> None:
    old, new = site.versions
    await site.ensure(Slot.PRIMARY, old, 1)
    await site.ensure(Slot.CANARY, new, 1)
    made = await site.ensure(Slot.BASELINE, old, 1)
    await site.route(PRIMARY_ONLY)
    await site.route(COMPARED)

    async def known() -> bool:
        pods = await site.pods(Slot.BASELINE)
        return pods is not None and (pods.revision, pods.known) == (old.revision, 1)

    await site.until(known)
    order = await site.route(Route(giving(20, 20), joined=True, compared=True))

    async def shown() -> bool:
        seen = await site.shown()
        return seen is not None and (seen.order, seen.weight, seen.drift) == (order, 20, "")

    await site.until(shown)
    for route in (COMPARED, PRIMARY_ONLY):
        await site.route(route)
    await site.remove()
    await site.ensure(Slot.BASELINE, old, 1, made)

    async def gone() -> bool:
        pods = [await site.pods(slot) for slot in Slot]
        return pods[0] is not None and pods[1:] == [None, None]

    await site.until(gone)


async def test_a_route_shows_its_order_and_its_weight(site: Site) -> None:
    await site.ensure(Slot.PRIMARY, site.versions[0], 1)
    await site.ensure(Slot.CANARY, site.versions[1], 1)
    for route in (PRIMARY_ONLY, STANDBY, only_split(10), only_split(100), STANDBY, PRIMARY_ONLY):
        order = await site.route(route)

        async def so(order: int = order, weight: int = route.weight) -> bool:
            shown = await site.shown()
            return shown is not None and (shown.order, shown.weight) == (order, weight)

        await site.until(so)


async def test_a_canary_grows_under_its_weight(site: Site) -> None:
    await site.ensure(Slot.PRIMARY, site.versions[0], 1)
    await site.ensure(Slot.CANARY, site.versions[1], 1)
    await site.route(STANDBY)
    order = await site.route(only_split(50))

    await site.ensure(Slot.CANARY, site.versions[1], 3)

    async def known() -> bool:
        pods, shown = await site.pods(Slot.CANARY), await site.shown()
        grown = pods is not None and (pods.desired, pods.known) == (3, 3)
        return grown and shown is not None and (shown.order, shown.weight) == (order, 50)

    await site.until(known)


async def test_a_late_route_of_a_lower_number_changes_nothing(site: Site) -> None:
    await site.ensure(Slot.PRIMARY, site.versions[0], 1)
    await site.ensure(Slot.CANARY, site.versions[1], 1)
    late = await site.route(only_split(50))
    order = await site.route(STANDBY)

    await site.route(only_split(50), late)

    async def so() -> bool:
        shown = await site.shown()
        return shown is not None and (shown.order, shown.weight) == (order, 0)

    await site.until(so)


async def test_the_mesh_gets_to_know_a_canary_that_has_joined(site: Site) -> None:
    await site.ensure(Slot.PRIMARY, site.versions[0], 1)
    await site.ensure(Slot.CANARY, site.versions[1], 1)
    await site.route(PRIMARY_ONLY)
    await site.route(STANDBY)

    async def known() -> bool:
        pods = await site.pods(Slot.CANARY)
        return pods is not None and pods.known == 1

    await site.until(known)
