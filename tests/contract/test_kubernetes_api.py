"""What we rely on of a Kubernetes API server: one suite for the fake and for the real one."""

import asyncio

import msgspec
import pytest

from fairlead.errors import Conflict, NotFound, Rejected, Unauthorised
from fairlead.kubernetes import api_errors
from fairlead.kubernetes.client.client import Preconditions, WatchEvent
from fairlead.kubernetes.objects import Key, Resource, Selection, is_deleting
from tests.contract.kubernetes import (
    PATIENCE,
    Api,
    collect,
    collector_knows,
    gone,
    names,
    until,
)
from tests.contract.kubernetes_samples import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    WIDGETS,
    config_map,
    deployment,
    held,
    labelled,
    namespace,
    owned,
    widget,
)


async def test_create_gives_identity_version_and_time(api: Api) -> None:
    made = await api.client.create(CONFIG_MAPS, config_map(api.namespace, "a", color="red"))

    meta = made["metadata"]
    assert meta["uid"]
    assert meta["resourceVersion"]
    assert meta["creationTimestamp"]
    assert "generation" not in meta
    assert await api.client.get(CONFIG_MAPS, api.key("a")) == made


async def test_create_of_a_taken_name_is_told_apart_from_other_conflicts(api: Api) -> None:
    await api.client.create(CONFIG_MAPS, config_map(api.namespace, "a"))

    with pytest.raises(api_errors.AlreadyExists):
        await api.client.create(CONFIG_MAPS, config_map(api.namespace, "a"))


async def test_generated_names_differ(api: Api) -> None:
    template = config_map(api.namespace, "")
    template["metadata"] = {"namespace": api.namespace, "generateName": "made-"}

    first = await api.client.create(CONFIG_MAPS, template)
    second = await api.client.create(CONFIG_MAPS, template)

    assert first["metadata"]["name"].startswith("made-")
    assert first["metadata"]["name"] != second["metadata"]["name"]


async def test_missing_object_kind_and_namespace_are_not_found(api: Api) -> None:
    with pytest.raises(NotFound):
        await api.client.get(CONFIG_MAPS, api.key("nobody"))
    with pytest.raises(NotFound):
        await api.client.get(Resource("no.such", "v1", "things", "Thing"), api.key("a"))
    with pytest.raises(NotFound):
        await api.client.create(CONFIG_MAPS, config_map("no-such-namespace", "a"))


async def test_replace_with_an_old_version_is_a_conflict(api: Api) -> None:
    first = await api.client.create(CONFIG_MAPS, config_map(api.namespace, "a", n="1"))
    second = await api.client.replace(CONFIG_MAPS, {**first, "data": {"n": "2"}})

    with pytest.raises(Conflict):
        await api.client.replace(CONFIG_MAPS, {**first, "data": {"n": "3"}})

    assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
    assert (await api.client.get(CONFIG_MAPS, api.key("a")))["data"] == {"n": "2"}


async def test_replace_of_a_custom_object_needs_a_version(api: Api) -> None:
    await api.client.create(WIDGETS, widget(api.namespace, "a"))

    with pytest.raises(Rejected, match=r"metadata.resourceVersion"):
        await api.client.replace(WIDGETS, widget(api.namespace, "a", length=13))


async def test_a_write_that_changes_nothing_keeps_the_version(api: Api) -> None:
    made = await api.client.create(WIDGETS, widget(api.namespace, "a"))

    again = await api.client.replace(WIDGETS, made)
    patched = await api.client.patch(WIDGETS, api.key("a"), {"spec": {"length": 12}})

    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert patched["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@pytest.mark.parametrize("resource", [WIDGETS, DEPLOYMENTS], ids=str)
async def test_generation_follows_the_spec_alone(api: Api, resource: Resource) -> None:
    sample = widget if resource == WIDGETS else deployment
    change = {"length": 13} if resource == WIDGETS else {"replicas": 3}
    made = await api.client.create(resource, sample(api.namespace, "a"))
    key = api.key("a")

    labelled_one = await api.client.patch(resource, key, {"metadata": {"labels": {"x": "y"}}})
    status = {"phase": "Afloat"} if resource == WIDGETS else {"observedGeneration": 1}
    told = await api.client.patch(resource, key, {"status": status}, subresource="status")
    changed = await api.client.patch(resource, key, {"spec": change})

    assert made["metadata"]["generation"] == 1
    assert labelled_one["metadata"]["generation"] == 1
    assert told["metadata"]["generation"] == 1
    assert changed["metadata"]["generation"] == 2


async def test_status_has_a_road_of_its_own(api: Api) -> None:
    made = await api.client.create(
        WIDGETS, {**widget(api.namespace, "a"), "status": {"phase": "x"}}
    )
    key = api.key("a")

    by_main = await api.client.patch(WIDGETS, key, {"status": {"phase": "Lost"}})
    by_status = await api.client.patch(
        WIDGETS, key, {"status": {"phase": "Afloat"}, "spec": {"length": 99}}, subresource="status"
    )

    assert "status" not in made
    assert "status" not in by_main
    assert by_status["status"] == {"phase": "Afloat"}
    assert by_status["spec"]["length"] == 12


async def test_a_kind_without_status_has_no_status_road(api: Api) -> None:
    await api.client.create(CONFIG_MAPS, config_map(api.namespace, "a"))

    with pytest.raises(NotFound):
        await api.client.patch(
            CONFIG_MAPS, api.key("a"), {"status": {"phase": "x"}}, subresource="status"
        )


async def test_schema_defaults_prunes_and_refuses_with_field_and_reason(api: Api) -> None:
    made = await api.client.create(WIDGETS, widget(api.namespace, "a", unknown="x"))

    with pytest.raises(Rejected, match=r"spec.length: .*less than or equal to 400") as refused:
        await api.client.create(WIDGETS, widget(api.namespace, "b", length=4000))
    with pytest.raises(Rejected, match=r"spec.rig: Unsupported value"):
        await api.client.create(WIDGETS, widget(api.namespace, "b", rig="raft"))
    with pytest.raises(Rejected, match=r"spec.length: Required value"):
        await api.client.create(WIDGETS, {**widget(api.namespace, "b"), "spec": {}})

    assert made["spec"] == {"length": 12, "sails": 2}
    said = refused.value.__cause__
    assert isinstance(said, api_errors.StatusError)
    assert [cause.field for cause in said.causes] == ["spec.length"]


async def test_json_patch_tests_before_it_changes(api: Api) -> None:
    await api.client.create(CONFIG_MAPS, config_map(api.namespace, "a", n="1"))
    test = {"op": "test", "path": "/data/n", "value": "1"}
    change = {"op": "replace", "path": "/data/n", "value": "2"}

    changed = await api.client.patch(CONFIG_MAPS, api.key("a"), [test, change], kind="json")
    with pytest.raises(Rejected):
        await api.client.patch(CONFIG_MAPS, api.key("a"), [test, change], kind="json")

    assert changed["data"] == {"n": "2"}


async def test_a_dry_run_answers_what_would_be_and_writes_nothing(api: Api) -> None:
    made = await api.client.create(CONFIG_MAPS, config_map(api.namespace, "a", color="red"))

    change = {"data": {"color": "blue"}}
    asked = await api.client.rehearse(CONFIG_MAPS, api.key("a"), change)

    assert asked["data"] == {"color": "blue"}
    assert await api.client.get(CONFIG_MAPS, api.key("a")) == made


async def test_merge_patch_with_an_old_version_is_a_conflict(api: Api) -> None:
    made = await api.client.create(CONFIG_MAPS, config_map(api.namespace, "a", n="1"))
    guarded = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}}

    first = await api.client.patch(CONFIG_MAPS, api.key("a"), {**guarded, "data": {"n": None}})
    with pytest.raises(Conflict):
        await api.client.patch(CONFIG_MAPS, api.key("a"), {**guarded, "data": {"n": "3"}})

    assert not first.get("data")


async def test_delete_checks_uid_and_version(api: Api) -> None:
    made = await api.client.create(CONFIG_MAPS, config_map(api.namespace, "a"))
    key, uid = api.key("a"), made["metadata"]["uid"]

    with pytest.raises(Conflict):
        await api.client.delete(CONFIG_MAPS, key, Preconditions(uid="another"))
    with pytest.raises(Conflict):
        await api.client.delete(CONFIG_MAPS, key, Preconditions(resource_version="1"))
    await api.client.delete(CONFIG_MAPS, key, Preconditions(uid=uid))

    with pytest.raises(NotFound):
        await api.client.get(CONFIG_MAPS, key)


async def test_finalizers_hold_a_deleted_object_until_they_are_gone(api: Api) -> None:
    key = api.key("a")
    made = await api.client.create(
        WIDGETS, held(widget(api.namespace, "a"), "tests.fairlead.dev/x")
    )

    left = await api.client.delete(WIDGETS, key)
    again = await api.client.delete(WIDGETS, key)
    with pytest.raises(Rejected, match=r"finalizers"):
        await api.client.patch(
            WIDGETS,
            key,
            {"metadata": {"finalizers": ["tests.fairlead.dev/x", "tests.fairlead.dev/y"]}},
        )
    released = await api.client.patch(WIDGETS, key, {"metadata": {"finalizers": []}})

    assert left["metadata"]["deletionTimestamp"]
    assert left["metadata"]["generation"] == made["metadata"]["generation"] + 1
    assert again["metadata"]["deletionTimestamp"] == left["metadata"]["deletionTimestamp"]
    assert released["metadata"]["uid"] == made["metadata"]["uid"]
    with pytest.raises(NotFound):
        await api.client.get(WIDGETS, key)


@pytest.mark.usefixtures("controllers")
async def test_children_go_when_their_last_owner_goes(api: Api) -> None:
    first = await api.client.create(WIDGETS, widget(api.namespace, "first"))
    second = await api.client.create(WIDGETS, widget(api.namespace, "second"))
    await api.client.create(CONFIG_MAPS, owned(config_map(api.namespace, "one"), first))
    await api.client.create(CONFIG_MAPS, owned(config_map(api.namespace, "both"), first, second))

    await api.client.delete(WIDGETS, api.key("first"))
    await gone(api, CONFIG_MAPS, "one")

    assert (await api.client.get(CONFIG_MAPS, api.key("both")))["metadata"]["uid"]
    await api.client.delete(WIDGETS, api.key("second"))
    await gone(api, CONFIG_MAPS, "both")


@pytest.mark.usefixtures("controllers")
async def test_foreground_deletion_waits_for_the_children(api: Api) -> None:
    parent = await api.client.create(WIDGETS, widget(api.namespace, "parent"))
    child = held(owned(config_map(api.namespace, "child"), parent), "tests.fairlead.dev/x")
    await api.client.create(CONFIG_MAPS, child)
    await collector_knows(api)

    left = await api.client.delete(WIDGETS, api.key("parent"), propagation="Foreground")

    assert "foregroundDeletion" in left["metadata"]["finalizers"]
    await until(api.client, CONFIG_MAPS, api.key("child"), lambda child: is_deleting(child or {}))
    assert await api.client.get(WIDGETS, api.key("parent"))
    await api.client.patch(CONFIG_MAPS, api.key("child"), {"metadata": {"finalizers": None}})
    await gone(api, WIDGETS, "parent")


@pytest.mark.usefixtures("controllers")
async def test_orphaned_children_stay_without_their_owner(api: Api) -> None:
    parent = await api.client.create(WIDGETS, widget(api.namespace, "parent"))
    await api.client.create(CONFIG_MAPS, owned(config_map(api.namespace, "child"), parent))
    await collector_knows(api)

    await api.client.delete(WIDGETS, api.key("parent"), propagation="Orphan")
    await gone(api, WIDGETS, "parent")

    child = await api.client.get(CONFIG_MAPS, api.key("child"))
    assert "ownerReferences" not in child["metadata"] or not child["metadata"]["ownerReferences"]


async def test_a_terminating_namespace_takes_nothing_new(api: Api) -> None:
    home = await api.client.create(NAMESPACES, namespace())
    name = home["metadata"]["name"]
    await api.client.create(WIDGETS, held(widget(name, "anchor"), "tests.fairlead.dev/x"))
    await api.client.delete(NAMESPACES, Key("", name))

    with pytest.raises(Unauthorised) as refused:
        await api.client.create(CONFIG_MAPS, config_map(name, "late"))

    assert "being deleted" in refused.value.hint
    await api.client.patch(WIDGETS, Key(name, "anchor"), {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=web", ["a", "b"]),
        ("tier=web,env!=prod", ["b"]),
        ("env in (prod, test)", ["a", "b"]),
        ("env notin (prod)", ["b", "c"]),
        ("!env", ["c"]),
        ("env", ["a", "b"]),
    ],
)
async def test_label_selectors(api: Api, selector: str, expected: list[str]) -> None:
    for name, labels in (
        ("a", {"tier": "web", "env": "prod"}),
        ("b", {"tier": "web", "env": "test"}),
        ("c", {"tier": "db"}),
    ):
        await api.client.create(WIDGETS, labelled(widget(api.namespace, name), **labels))

    assert await names(api, WIDGETS, labels=selector) == expected


async def test_field_selectors(api: Api) -> None:
    for name in ("a", "b"):
        await api.client.create(WIDGETS, widget(api.namespace, name))

    assert await names(api, WIDGETS, fields="metadata.name=b") == ["b"]
    with pytest.raises(Rejected):
        await names(api, WIDGETS, fields="spec.length=12")


async def test_pages_are_one_snapshot(api: Api) -> None:
    for name in ("a", "b", "c", "d", "e"):
        await api.client.create(WIDGETS, widget(api.namespace, name))
    chosen = Selection(namespace=api.namespace)

    first = await api.client.page(WIDGETS, chosen)
    await api.client.delete(WIDGETS, api.key("d"))
    second = await api.client.page(WIDGETS, chosen, first.next)
    third = await api.client.page(WIDGETS, chosen, second.next)

    found = [
        msgspec.json.decode(item)["metadata"]["name"]
        for page in (first, second, third)
        for item in page.items
    ]
    assert found == ["a", "b", "c", "d", "e"]
    assert not third.next
    assert second.resource_version == first.resource_version


async def test_watch_tells_every_change_since_a_version(api: Api) -> None:
    before = await api.client.page(CONFIG_MAPS, Selection(namespace=api.namespace))
    await api.client.create(CONFIG_MAPS, config_map(api.namespace, "a"))
    await api.client.patch(CONFIG_MAPS, api.key("a"), {"data": {"n": "1"}})
    await api.client.delete(CONFIG_MAPS, api.key("a"))

    chosen = Selection(namespace=api.namespace, fields="metadata.name=a")
    seen = await collect(api, chosen, before.resource_version, enough=3)

    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_a_selective_watch_tells_of_joining_and_leaving(api: Api) -> None:
    before = await api.client.page(CONFIG_MAPS, Selection(namespace=api.namespace))
    await api.client.create(CONFIG_MAPS, config_map(api.namespace, "a"))
    for label in ("yes", "no"):
        await api.client.patch(CONFIG_MAPS, api.key("a"), {"metadata": {"labels": {"in": label}}})

    chosen = Selection(namespace=api.namespace, labels="in=yes")
    seen = await collect(api, chosen, before.resource_version, enough=2)

    assert seen == [("ADDED", "a"), ("DELETED", "a")]


async def test_a_watch_ends_in_time_and_leaves_bookmarks(api: Api) -> None:
    made = await api.client.create(CONFIG_MAPS, config_map(api.namespace, "a"))
    version = made["metadata"]["resourceVersion"]
    other = Selection(namespace=api.namespace, labels="none=here")
    events: list[WatchEvent] = []

    # A bookmark is a kindness of the server, not a promise: a busy one may leave it out.
    async with asyncio.timeout(PATIENCE):
        while not events:
            events = [e async for e in api.client.watch(CONFIG_MAPS, other, version, 4)]

    assert {event.type for event in events} == {"BOOKMARK"}
    last = msgspec.json.decode(events[-1].object)
    assert int(last["metadata"]["resourceVersion"]) >= int(version)


async def test_a_watch_from_forgotten_history_is_expired(api: Api) -> None:
    # Widgets: their history begins when the kind is installed. A new cluster still knows all
    # that ever happened to the kinds that it was born with.
    with pytest.raises(api_errors.Expired):
        await collect(api, Selection(namespace=api.namespace), "1", enough=1, resource=WIDGETS)
