"""Children and status written through the cache: only what differs, only what is ours."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from fairlead.errors import Conflict, NotFound
from fairlead.kubernetes import objects
from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.cache.watch import Watches
from fairlead.kubernetes.messages import Condition
from fairlead.kubernetes.objects import Key, Object, Resource, Selection
from fairlead.kubernetes.writes import compare, finalizers, status
from fairlead.kubernetes.writes.apply import Applier
from tests.contract.kubernetes import PATIENCE, QUICK, Api
from tests.contract.kubernetes_samples import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    SERVICES,
    WIDGETS,
    config_map,
    deployment,
    held,
    service,
    widget,
)


@dataclass(frozen=True)
class ChildCaches:
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
async def children_(api: Api) -> AsyncIterator[ChildCaches]:
    parent = await api.client.create(WIDGETS, widget(api.namespace, "parent"))
    watches = Watches(api.client, QUICK)
    made = ChildCaches(api, Applier(api.client), watches, parent)
    for resource in (WIDGETS, CONFIG_MAPS, DEPLOYMENTS, SERVICES):
        made.cache(resource)
    task = asyncio.create_task(watches.run())
    await watches.synced(PATIENCE)
    yield made
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def version(children_: ChildCaches, resource: Resource, name: str) -> str:
    live = await children_.api.client.get(resource, children_.api.key(name))
    return objects.version_of(live)


async def test_a_second_run_writes_nothing(children_: ChildCaches) -> None:
    space = children_.api.namespace
    wanted = deployment(space, "web")
    limits = {"cpu": "1500m", "memory": "1024Mi"}
    wanted["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": limits}
    desired_objects: list[tuple[Resource, Object]] = [
        (DEPLOYMENTS, wanted),
        (SERVICES, service(space, "web")),
        (CONFIG_MAPS, config_map(space, "web", color="red")),
    ]

    first = [
        await children_.applier.ensure(children_.cache(r), w, children_.parent)
        for r, w in desired_objects
    ]
    again = [
        await children_.applier.ensure(children_.cache(r), w, children_.parent)
        for r, w in desired_objects
    ]
    fresh = Applier(children_.api.client)
    after_restart = [
        await fresh.ensure(children_.cache(r), w, children_.parent) for r, w in desired_objects
    ]

    assert [one.changed for one in first] == [True, True, True]
    assert [one.changed for one in again] == [False, False, False]
    assert [one.changed for one in after_restart] == [False, False, False]


async def test_a_hand_edit_is_restored_and_foreign_fields_stay(children_: ChildCaches) -> None:
    cache, key = children_.cache(CONFIG_MAPS), children_.api.key("web")
    desired = config_map(children_.api.namespace, "web", color="red")
    await children_.applier.ensure(cache, desired, children_.parent)
    edit = {"data": {"color": "blue", "note": "mine"}}
    edited = await children_.api.other.patch(CONFIG_MAPS, key, edit)
    await children_.until_seen(CONFIG_MAPS, edited)

    done = await children_.applier.ensure(cache, desired, children_.parent)

    assert done.fields == ("data.color",)
    assert done.object["data"] == {"color": "red", "note": "mine"}


async def test_what_is_no_longer_requested_goes(children_: ChildCaches) -> None:
    cache = children_.cache(CONFIG_MAPS)
    space = children_.api.namespace
    await children_.applier.ensure(
        cache, config_map(space, "web", keep="1", drop="2"), children_.parent
    )

    done = await children_.applier.ensure(
        cache, config_map(space, "web", keep="1"), children_.parent
    )

    assert done.object["data"] == {"keep": "1"}


async def test_a_field_of_the_first_hour_can_still_go_later(children_: ChildCaches) -> None:
    """The object was created, then touched by others, before our first apply to it."""
    cache, key = children_.cache(CONFIG_MAPS), children_.api.key("web")
    space = children_.api.namespace
    first = config_map(space, "web", a="1", b="2", c="3")
    await children_.applier.ensure(cache, first, children_.parent)
    touched = await children_.api.other.apply(CONFIG_MAPS, config_map(space, "web", theirs="9"))
    await children_.until_seen(CONFIG_MAPS, touched)

    second = await children_.applier.ensure(
        cache, config_map(space, "web", a="1", b="2"), children_.parent
    )
    third = await children_.applier.ensure(cache, config_map(space, "web", a="4"), children_.parent)

    assert second.object["data"] == {"a": "1", "b": "2", "theirs": "9"}
    assert third.object["data"] == {"a": "4", "theirs": "9"}
    owners = {(e["manager"], e["operation"]) for e in third.object["metadata"]["managedFields"]}
    assert owners == {("fairlead", "Apply"), ("somebody", "Apply")}
    live = await children_.api.client.get(CONFIG_MAPS, key)
    assert set(live["metadata"]["annotations"]) == {compare.DIGEST}


async def test_a_take_over_that_was_cut_off_is_finished(children_: ChildCaches) -> None:
    cache, key = children_.cache(CONFIG_MAPS), children_.api.key("web")
    space = children_.api.namespace
    await children_.applier.ensure(cache, config_map(space, "web", a="1", b="2"), children_.parent)
    # As if the process had died between the two requests.
    await children_.applier._take_over(cache, key)

    done = await children_.applier.ensure(cache, config_map(space, "web", a="1"), children_.parent)

    assert done.object["data"] == {"a": "1"}


async def test_a_deployment_made_by_create_is_changed_by_apply(children_: ChildCaches) -> None:
    cache, space = children_.cache(DEPLOYMENTS), children_.api.namespace
    wanted = deployment(space, "web")
    wanted["spec"]["template"]["spec"]["containers"].append({"name": "log", "image": "log:1"})
    made = await children_.applier.ensure(cache, wanted, children_.parent)
    await children_.until_seen(DEPLOYMENTS, made.object)

    done = await children_.applier.ensure(
        cache, deployment(space, "web", image="shop:2"), children_.parent
    )

    containers = done.object["spec"]["template"]["spec"]["containers"]
    assert [(c["name"], c["image"]) for c in containers] == [("web", "shop:2")]


async def test_a_child_knows_its_parent(children_: ChildCaches) -> None:
    desired = config_map(children_.api.namespace, "web")

    done = await children_.applier.ensure(children_.cache(CONFIG_MAPS), desired, children_.parent)

    (reference,) = done.object["metadata"]["ownerReferences"]
    assert reference["uid"] == children_.parent["metadata"]["uid"]
    assert reference["controller"] is True


async def test_what_belongs_to_another_is_not_touched(children_: ChildCaches) -> None:
    cache = children_.cache(CONFIG_MAPS)
    other = await children_.api.client.create(WIDGETS, widget(children_.api.namespace, "other"))
    desired = config_map(children_.api.namespace, "web", color="red")
    await children_.applier.ensure(cache, desired, other)
    before = await version(children_, CONFIG_MAPS, "web")

    with pytest.raises(Conflict, match="belongs to another owner"):
        await children_.applier.ensure(cache, desired, children_.parent)

    assert await version(children_, CONFIG_MAPS, "web") == before


async def test_a_stray_is_adopted_only_when_asked(children_: ChildCaches) -> None:
    cache = children_.cache(CONFIG_MAPS)
    desired = config_map(children_.api.namespace, "web", color="red")
    stray = await children_.api.other.create(CONFIG_MAPS, desired)
    await children_.until_seen(CONFIG_MAPS, stray)

    with pytest.raises(Conflict):
        await children_.applier.ensure(cache, desired, children_.parent)
    done = await children_.applier.ensure(cache, desired, children_.parent, adopt=True)

    assert objects.owner_of(done.object) == children_.parent["metadata"]["uid"]


async def test_unwanted_children_are_pruned_and_others_left(children_: ChildCaches) -> None:
    cache, space = children_.cache(CONFIG_MAPS), children_.api.namespace
    other = await children_.api.client.create(WIDGETS, widget(space, "other"))
    for name in ("keep", "drop"):
        await children_.applier.ensure(cache, config_map(space, name), children_.parent)
    await children_.applier.ensure(cache, config_map(space, "foreign"), other)

    gone = await children_.applier.prune(cache, children_.parent, [children_.api.key("keep")])
    again = await children_.applier.prune(cache, children_.parent, [children_.api.key("keep")])

    assert gone == [children_.api.key("drop")]
    assert again == []
    names = {key.name for key in cache.known()}
    assert names >= {"keep", "foreign"}
    assert "drop" not in names


async def test_a_child_on_its_way_out_is_left_alone(children_: ChildCaches) -> None:
    cache = children_.cache(CONFIG_MAPS)
    desired = held(config_map(children_.api.namespace, "web", color="red"), "tests.fairlead.dev/x")
    made = await children_.applier.ensure(cache, desired, children_.parent)
    await children_.applier.delete(cache, made.object)
    before = await version(children_, CONFIG_MAPS, "web")

    desired["data"] = {"color": "blue"}
    done = await children_.applier.ensure(cache, desired, children_.parent)

    assert not done.changed
    assert await version(children_, CONFIG_MAPS, "web") == before
    freed = {"metadata": {"finalizers": None}}
    await children_.api.client.patch(CONFIG_MAPS, children_.api.key("web"), freed)


async def test_deleting_an_object_spares_its_successor(children_: ChildCaches) -> None:
    cache, key = children_.cache(CONFIG_MAPS), children_.api.key("web")
    desired = config_map(children_.api.namespace, "web")
    first = await children_.applier.ensure(cache, desired, children_.parent)
    await children_.api.other.delete(CONFIG_MAPS, key)
    second = await children_.api.other.create(CONFIG_MAPS, desired)

    await children_.applier.delete(cache, first.object)

    live = await children_.api.client.get(CONFIG_MAPS, key)
    assert objects.uid_of(live) == objects.uid_of(second)


async def test_status_is_sent_only_when_it_changed(children_: ChildCaches) -> None:
    cache, key = children_.cache(WIDGETS), children_.api.key("parent")

    first = await status.write(children_.api.client, cache, children_.parent, {"phase": "Afloat"})
    live: Any = cache.get(key)
    again = await status.write(children_.api.client, cache, live, {"phase": "Afloat"})
    cleared = await status.write(children_.api.client, cache, live, {})

    assert (first, again, cleared) == (True, False, True)
    assert not (await children_.api.client.get(WIDGETS, key)).get("status")


async def test_status_does_not_go_to_a_successor(children_: ChildCaches) -> None:
    cache, key = children_.cache(WIDGETS), children_.api.key("parent")
    await children_.api.client.delete(WIDGETS, key)
    await children_.api.client.create(WIDGETS, widget(children_.api.namespace, "parent"))

    with pytest.raises(Conflict):
        await status.write(children_.api.client, cache, children_.parent, {"phase": "Afloat"})


async def test_a_finalizer_holds_and_lets_go(children_: ChildCaches) -> None:
    cache, key = children_.cache(WIDGETS), children_.api.key("parent")
    ours, client = "tests.fairlead.dev/ours", children_.api.client

    put = await finalizers.hold(client, cache, children_.parent, ours)
    again = await finalizers.hold(client, cache, live(cache, key), ours)
    ending = await client.delete(WIDGETS, key)
    cache.wrote(ending)
    late = await finalizers.hold(client, cache, live(cache, key), "tests.fairlead.dev/late")
    freed = await finalizers.release(client, cache, live(cache, key), ours)

    assert (put, again, late, freed) == (True, False, False, True)
    assert key not in cache
    with pytest.raises(NotFound):
        await client.get(WIDGETS, key)


async def test_anothers_finalizer_is_not_lost(children_: ChildCaches) -> None:
    cache, key = children_.cache(WIDGETS), children_.api.key("parent")
    theirs = {"metadata": {"finalizers": ["tests.fairlead.dev/theirs"]}}
    edited = await children_.api.other.patch(WIDGETS, key, theirs)

    with pytest.raises(Conflict):
        await finalizers.hold(
            children_.api.client, cache, children_.parent, "tests.fairlead.dev/ours"
        )
    await children_.until_seen(WIDGETS, edited)
    seen = live(cache, key)
    await finalizers.hold(children_.api.client, cache, seen, "tests.fairlead.dev/ours")

    both = ["tests.fairlead.dev/theirs", "tests.fairlead.dev/ours"]
    assert live(cache, key)["metadata"]["finalizers"] == both
    await children_.api.client.patch(WIDGETS, key, {"metadata": {"finalizers": None}})


def live(cache: Cache, key: Key) -> Object:
    found = cache.get(key)
    assert found is not None
    return found


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    waiting = Condition("Ready", status=False, reason="Waiting")
    known = status.with_conditions([], [waiting], 1, early)

    same = status.with_conditions(
        known, [Condition("Ready", status=False, reason="Stuck", message="why")], 2, late
    )
    ready = status.with_conditions(same, [Condition("Ready", status=True, reason="Done")], 2, late)

    assert same[0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert same[0]["reason"] == "Stuck"
    assert ready[0]["lastTransitionTime"] == "2026-01-02T00:00:00Z"
    assert len(ready) == 1
