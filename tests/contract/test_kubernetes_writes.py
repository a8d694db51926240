"""Children and status written through the cache: only what differs, only what is ours."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from fairlead.adapters.kubernetes import compare, finalizers, objects, status
from fairlead.adapters.kubernetes.apply import Applier
from fairlead.adapters.kubernetes.cache import Cache
from fairlead.adapters.kubernetes.objects import Key, Object, Resource, Selection
from fairlead.adapters.kubernetes.watch import Watches
from fairlead.errors import Conflict, NotFound
from tests.contract.kubernetes import PATIENCE, QUICK, Api
from tests.contract.kubernetes_samples import (
    BOATS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    SERVICES,
    boat,
    config_map,
    deployment,
    held,
)


@dataclass(frozen=True)
class Yard:
    """A parent, and caches of what it may own."""

    api: Api
    applier: Applier
    watches: Watches
    parent: Object

    def cache(self, resource: Resource) -> Cache:
        return self.watches.of(resource, Selection(self.api.namespace))

    async def until_seen(self, resource: Resource, obj: Object) -> None:
        """Until the watch has told of this state."""
        cache, key = self.cache(resource), objects.key_of(obj)
        heard = asyncio.Event()
        cache.on_change(lambda _: heard.set())
        async with asyncio.timeout(PATIENCE):
            while cache.version(key) < int(objects.version_of(obj)):
                heard.clear()
                await heard.wait()


@pytest.fixture
async def yard(api: Api) -> AsyncIterator[Yard]:
    parent = await api.client.create(BOATS, boat(api.namespace, "parent"))
    watches = Watches(api.client, QUICK)
    made = Yard(api, Applier(api.client), watches, parent)
    for resource in (BOATS, CONFIG_MAPS, DEPLOYMENTS, SERVICES):
        made.cache(resource)
    task = asyncio.create_task(watches.run())
    await watches.synced(PATIENCE)
    yield made
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def service(namespace: str, name: str) -> Object:
    port = {"port": 80, "targetPort": 8080}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"selector": {"app": name}, "ports": [port]},
    }


async def version(yard: Yard, resource: Resource, name: str) -> str:
    live = await yard.api.client.get(resource, yard.api.key(name))
    return objects.version_of(live)


async def test_a_second_run_writes_nothing(yard: Yard) -> None:
    space = yard.api.namespace
    wanted = deployment(space, "web")
    limits = {"cpu": "1500m", "memory": "1024Mi"}
    wanted["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": limits}
    wishes: list[tuple[Resource, Object]] = [
        (DEPLOYMENTS, wanted),
        (SERVICES, service(space, "web")),
        (CONFIG_MAPS, config_map(space, "web", color="red")),
    ]

    first = [await yard.applier.ensure(yard.cache(r), w, yard.parent) for r, w in wishes]
    again = [await yard.applier.ensure(yard.cache(r), w, yard.parent) for r, w in wishes]
    fresh = Applier(yard.api.client)
    after_restart = [await fresh.ensure(yard.cache(r), w, yard.parent) for r, w in wishes]

    assert [one.changed for one in first] == [True, True, True]
    assert [one.changed for one in again] == [False, False, False]
    assert [one.changed for one in after_restart] == [False, False, False]


async def test_a_hand_edit_is_taken_back_and_foreign_fields_stay(yard: Yard) -> None:
    cache, key = yard.cache(CONFIG_MAPS), yard.api.key("web")
    wish = config_map(yard.api.namespace, "web", color="red")
    await yard.applier.ensure(cache, wish, yard.parent)
    edit = {"data": {"color": "blue", "note": "mine"}}
    edited = await yard.api.other.patch(CONFIG_MAPS, key, edit)
    await yard.until_seen(CONFIG_MAPS, edited)

    done = await yard.applier.ensure(cache, wish, yard.parent)

    assert done.fields == ("data.color",)
    assert done.object["data"] == {"color": "red", "note": "mine"}


async def test_what_is_no_longer_wished_for_goes(yard: Yard) -> None:
    cache = yard.cache(CONFIG_MAPS)
    space = yard.api.namespace
    await yard.applier.ensure(cache, config_map(space, "web", keep="1", drop="2"), yard.parent)

    done = await yard.applier.ensure(cache, config_map(space, "web", keep="1"), yard.parent)

    assert done.object["data"] == {"keep": "1"}


async def test_a_field_of_the_first_hour_can_still_go_later(yard: Yard) -> None:
    """The object was created, then touched by others, before our first apply to it."""
    cache, key = yard.cache(CONFIG_MAPS), yard.api.key("web")
    space = yard.api.namespace
    first = config_map(space, "web", a="1", b="2", c="3")
    await yard.applier.ensure(cache, first, yard.parent)
    touched = await yard.api.other.apply(CONFIG_MAPS, config_map(space, "web", theirs="9"))
    await yard.until_seen(CONFIG_MAPS, touched)

    second = await yard.applier.ensure(cache, config_map(space, "web", a="1", b="2"), yard.parent)
    third = await yard.applier.ensure(cache, config_map(space, "web", a="4"), yard.parent)

    assert second.object["data"] == {"a": "1", "b": "2", "theirs": "9"}
    assert third.object["data"] == {"a": "4", "theirs": "9"}
    owners = {(e["manager"], e["operation"]) for e in third.object["metadata"]["managedFields"]}
    assert owners == {("fairlead", "Apply"), ("somebody", "Apply")}
    live = await yard.api.client.get(CONFIG_MAPS, key)
    assert set(live["metadata"]["annotations"]) == {compare.DIGEST}


async def test_a_take_over_that_was_cut_off_is_finished(yard: Yard) -> None:
    cache, key = yard.cache(CONFIG_MAPS), yard.api.key("web")
    space = yard.api.namespace
    await yard.applier.ensure(cache, config_map(space, "web", a="1", b="2"), yard.parent)
    # As if the process had died between the two requests.
    await yard.applier._take_over(cache, key)

    done = await yard.applier.ensure(cache, config_map(space, "web", a="1"), yard.parent)

    assert done.object["data"] == {"a": "1"}


async def test_a_deployment_made_by_create_is_changed_by_apply(yard: Yard) -> None:
    cache, space = yard.cache(DEPLOYMENTS), yard.api.namespace
    wanted = deployment(space, "web")
    wanted["spec"]["template"]["spec"]["containers"].append({"name": "log", "image": "log:1"})
    made = await yard.applier.ensure(cache, wanted, yard.parent)
    await yard.until_seen(DEPLOYMENTS, made.object)

    done = await yard.applier.ensure(cache, deployment(space, "web", image="shop:2"), yard.parent)

    containers = done.object["spec"]["template"]["spec"]["containers"]
    assert [(c["name"], c["image"]) for c in containers] == [("web", "shop:2")]


async def test_a_child_knows_its_parent(yard: Yard) -> None:
    wish = config_map(yard.api.namespace, "web")

    done = await yard.applier.ensure(yard.cache(CONFIG_MAPS), wish, yard.parent)

    (reference,) = done.object["metadata"]["ownerReferences"]
    assert reference["uid"] == yard.parent["metadata"]["uid"]
    assert reference["controller"] is True


async def test_what_belongs_to_another_is_not_touched(yard: Yard) -> None:
    cache = yard.cache(CONFIG_MAPS)
    other = await yard.api.client.create(BOATS, boat(yard.api.namespace, "other"))
    wish = config_map(yard.api.namespace, "web", color="red")
    await yard.applier.ensure(cache, wish, other)
    before = await version(yard, CONFIG_MAPS, "web")

    with pytest.raises(Conflict, match="belongs to somebody else"):
        await yard.applier.ensure(cache, wish, yard.parent)

    assert await version(yard, CONFIG_MAPS, "web") == before


async def test_a_stray_is_adopted_only_when_asked(yard: Yard) -> None:
    cache = yard.cache(CONFIG_MAPS)
    wish = config_map(yard.api.namespace, "web", color="red")
    stray = await yard.api.other.create(CONFIG_MAPS, wish)
    await yard.until_seen(CONFIG_MAPS, stray)

    with pytest.raises(Conflict):
        await yard.applier.ensure(cache, wish, yard.parent)
    done = await yard.applier.ensure(cache, wish, yard.parent, adopt=True)

    assert objects.owner_of(done.object) == yard.parent["metadata"]["uid"]


async def test_unwanted_children_are_pruned_and_others_left(yard: Yard) -> None:
    cache, space = yard.cache(CONFIG_MAPS), yard.api.namespace
    other = await yard.api.client.create(BOATS, boat(space, "other"))
    for name in ("keep", "drop"):
        await yard.applier.ensure(cache, config_map(space, name), yard.parent)
    await yard.applier.ensure(cache, config_map(space, "foreign"), other)

    gone = await yard.applier.prune(cache, yard.parent, [yard.api.key("keep")])
    again = await yard.applier.prune(cache, yard.parent, [yard.api.key("keep")])

    assert gone == [yard.api.key("drop")]
    assert again == []
    names = {key.name for key in cache.known()}
    assert names >= {"keep", "foreign"}
    assert "drop" not in names


async def test_a_child_on_its_way_out_is_left_alone(yard: Yard) -> None:
    cache = yard.cache(CONFIG_MAPS)
    wish = held(config_map(yard.api.namespace, "web", color="red"), "tests.fairlead.dev/x")
    made = await yard.applier.ensure(cache, wish, yard.parent)
    await yard.applier.delete(cache, made.object)
    before = await version(yard, CONFIG_MAPS, "web")

    wish["data"] = {"color": "blue"}
    done = await yard.applier.ensure(cache, wish, yard.parent)

    assert not done.changed
    assert await version(yard, CONFIG_MAPS, "web") == before
    freed = {"metadata": {"finalizers": None}}
    await yard.api.client.patch(CONFIG_MAPS, yard.api.key("web"), freed)


async def test_deleting_an_object_spares_its_successor(yard: Yard) -> None:
    cache, key = yard.cache(CONFIG_MAPS), yard.api.key("web")
    wish = config_map(yard.api.namespace, "web")
    first = await yard.applier.ensure(cache, wish, yard.parent)
    await yard.api.other.delete(CONFIG_MAPS, key)
    second = await yard.api.other.create(CONFIG_MAPS, wish)

    await yard.applier.delete(cache, first.object)

    live = await yard.api.client.get(CONFIG_MAPS, key)
    assert objects.uid_of(live) == objects.uid_of(second)


async def test_status_is_sent_only_when_it_changed(yard: Yard) -> None:
    cache, key = yard.cache(BOATS), yard.api.key("parent")

    first = await status.write(yard.api.client, cache, yard.parent, {"phase": "Afloat"})
    live: Any = cache.get(key)
    again = await status.write(yard.api.client, cache, live, {"phase": "Afloat"})
    cleared = await status.write(yard.api.client, cache, live, {})

    assert (first, again, cleared) == (True, False, True)
    assert not (await yard.api.client.get(BOATS, key)).get("status")


async def test_status_does_not_go_to_a_successor(yard: Yard) -> None:
    cache, key = yard.cache(BOATS), yard.api.key("parent")
    await yard.api.client.delete(BOATS, key)
    await yard.api.client.create(BOATS, boat(yard.api.namespace, "parent"))

    with pytest.raises(Conflict):
        await status.write(yard.api.client, cache, yard.parent, {"phase": "Afloat"})


async def test_a_finalizer_holds_and_lets_go(yard: Yard) -> None:
    cache, key = yard.cache(BOATS), yard.api.key("parent")
    ours, client = "tests.fairlead.dev/ours", yard.api.client

    put = await finalizers.hold(client, cache, yard.parent, ours)
    again = await finalizers.hold(client, cache, live(cache, key), ours)
    ending = await client.delete(BOATS, key)
    cache.wrote(ending)
    late = await finalizers.hold(client, cache, live(cache, key), "tests.fairlead.dev/late")
    freed = await finalizers.release(client, cache, live(cache, key), ours)

    assert (put, again, late, freed) == (True, False, False, True)
    assert key not in cache
    with pytest.raises(NotFound):
        await client.get(BOATS, key)


async def test_anothers_finalizer_is_not_lost(yard: Yard) -> None:
    cache, key = yard.cache(BOATS), yard.api.key("parent")
    theirs = {"metadata": {"finalizers": ["tests.fairlead.dev/theirs"]}}
    edited = await yard.api.other.patch(BOATS, key, theirs)

    with pytest.raises(Conflict):
        await finalizers.hold(yard.api.client, cache, yard.parent, "tests.fairlead.dev/ours")
    await yard.until_seen(BOATS, edited)
    seen = live(cache, key)
    await finalizers.hold(yard.api.client, cache, seen, "tests.fairlead.dev/ours")

    both = ["tests.fairlead.dev/theirs", "tests.fairlead.dev/ours"]
    assert live(cache, key)["metadata"]["finalizers"] == both
    await yard.api.client.patch(BOATS, key, {"metadata": {"finalizers": None}})


def live(cache: Cache, key: Key) -> Object:
    found = cache.get(key)
    assert found is not None
    return found


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    waiting = status.Condition("Ready", status=False, reason="Waiting")
    known = status.with_conditions([], [waiting], 1, early)

    same = status.with_conditions(
        known, [status.Condition("Ready", status=False, reason="Stuck", message="why")], 2, late
    )
    ready = status.with_conditions(
        same, [status.Condition("Ready", status=True, reason="Done")], 2, late
    )

    assert same[0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert same[0]["reason"] == "Stuck"
    assert ready[0]["lastTransitionTime"] == "2026-01-02T00:00:00Z"
    assert len(ready) == 1
