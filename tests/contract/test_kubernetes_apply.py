"""Server-side apply as we rely on it: ownership by field, conflicts, and letting go."""

import pytest

from fairlead.errors import Conflict
from fairlead.kubernetes import api_errors
from fairlead.kubernetes.objects import Object
from tests.contract.kubernetes import Api
from tests.contract.kubernetes_samples import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    SERVICES,
    WIDGETS,
    config_map,
    deployment,
    service,
    widget,
)


def owners(obj: Object) -> dict[str, Object]:
    """Managed fields by "manager operation subresource"."""
    return {
        " ".join(filter(None, (e["manager"], e["operation"], e.get("subresource")))): e["fieldsV1"]
        for e in obj["metadata"]["managedFields"]
    }


async def test_apply_creates_and_owns_what_it_names(api: Api) -> None:
    made = await api.client.apply(CONFIG_MAPS, config_map(api.namespace, "a", color="red"))

    assert made["data"] == {"color": "red"}
    assert owners(made) == {"fairlead Apply": {"f:data": {"f:color": {}}}}


async def test_apply_of_the_same_changes_nothing(api: Api) -> None:
    # An object whose fields the server defaults, and that no controller writes to in between.
    made = await api.client.apply(SERVICES, service(api.namespace, "a"))

    again = await api.client.apply(SERVICES, service(api.namespace, "a"))

    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_two_appliers_share_an_object(api: Api) -> None:
    await api.client.apply(CONFIG_MAPS, config_map(api.namespace, "a", ours="1", both="x"))

    shared = await api.other.apply(
        CONFIG_MAPS, config_map(api.namespace, "a", theirs="2", both="x")
    )

    assert shared["data"] == {"ours": "1", "theirs": "2", "both": "x"}
    assert owners(shared)["somebody Apply"] == {"f:data": {"f:both": {}, "f:theirs": {}}}


async def test_apply_over_anothers_field_is_a_conflict_until_forced(api: Api) -> None:
    await api.other.apply(CONFIG_MAPS, config_map(api.namespace, "a", color="red"))
    wanted = config_map(api.namespace, "a", color="blue")

    with pytest.raises(Conflict, match=r"somebody") as refused:
        await api.client.apply(CONFIG_MAPS, wanted)
    forced = await api.client.apply(CONFIG_MAPS, wanted, force=True)

    said = refused.value.__cause__
    assert isinstance(said, api_errors.StatusError)
    assert [(c.field, c.reason) for c in said.causes] == [(".data.color", "FieldManagerConflict")]
    assert forced["data"] == {"color": "blue"}
    assert list(owners(forced)) == ["fairlead Apply"]


async def test_what_an_applier_no_longer_names_goes_away(api: Api) -> None:
    await api.client.apply(CONFIG_MAPS, config_map(api.namespace, "a", keep="1", drop="2"))

    after = await api.client.apply(CONFIG_MAPS, config_map(api.namespace, "a", keep="1"))

    assert after["data"] == {"keep": "1"}


async def test_what_another_owns_too_stays(api: Api) -> None:
    await api.client.apply(CONFIG_MAPS, config_map(api.namespace, "a", shared="1"))
    await api.other.apply(CONFIG_MAPS, config_map(api.namespace, "a", shared="1"))

    after = await api.client.apply(CONFIG_MAPS, config_map(api.namespace, "a"))

    assert after["data"] == {"shared": "1"}
    assert owners(after)["somebody Apply"] == {"f:data": {"f:shared": {}}}
    assert owners(after)["fairlead Apply"] == {"f:data": {}}


async def test_an_update_takes_the_fields_it_changes(api: Api) -> None:
    await api.client.apply(CONFIG_MAPS, config_map(api.namespace, "a", color="red", size="s"))

    patched = await api.other.patch(CONFIG_MAPS, api.key("a"), {"data": {"color": "blue"}})

    assert owners(patched) == {
        "fairlead Apply": {"f:data": {"f:size": {}}},
        "somebody Update": {"f:data": {"f:color": {}}},
    }
    with pytest.raises(Conflict):
        await api.client.apply(CONFIG_MAPS, config_map(api.namespace, "a", color="red", size="s"))


async def test_lists_with_keys_are_merged_item_by_item(api: Api) -> None:
    ours = [{"name": "ann", "role": "mate"}, {"name": "bob"}]
    await api.client.apply(WIDGETS, widget(api.namespace, "a", crew=ours))
    theirs = widget(api.namespace, "a", crew=[{"name": "cy", "role": "cook"}])
    del theirs["spec"]["length"]

    both = await api.other.apply(WIDGETS, theirs)
    after = await api.client.apply(WIDGETS, widget(api.namespace, "a", crew=ours[:1]))

    assert [m["name"] for m in both["spec"]["crew"]] == ["ann", "bob", "cy"]
    assert after["spec"]["crew"] == [
        {"name": "ann", "role": "mate"},
        {"name": "cy", "role": "cook"},
    ]
    assert owners(after)["fairlead Apply"]["f:spec"]["f:crew"] == {
        'k:{"name":"ann"}': {".": {}, "f:name": {}, "f:role": {}}
    }


async def test_plain_lists_are_owned_whole(api: Api) -> None:
    await api.client.apply(WIDGETS, widget(api.namespace, "a", ports=["Kiel", "Oslo"]))
    theirs = widget(api.namespace, "a", ports=["Oslo"])

    with pytest.raises(Conflict, match=r"spec.ports"):
        await api.other.apply(WIDGETS, theirs)


async def test_containers_of_a_deployment_are_told_apart_by_name(api: Api) -> None:
    await api.client.apply(DEPLOYMENTS, deployment(api.namespace, "a", image="shop:1"))
    side = {"spec": {"template": {"spec": {"containers": [{"name": "log", "image": "log:1"}]}}}}
    theirs = {**deployment(api.namespace, "a"), **side}

    both = await api.other.apply(DEPLOYMENTS, theirs)
    after = await api.client.apply(DEPLOYMENTS, deployment(api.namespace, "a", image="shop:2"))

    images = [c["image"] for c in both["spec"]["template"]["spec"]["containers"]]
    assert sorted(images) == ["log:1", "shop:1"]
    later = {c["name"]: c["image"] for c in after["spec"]["template"]["spec"]["containers"]}
    assert later == {"web": "shop:2", "log": "log:1"}
    assert after["metadata"]["generation"] == 3


async def test_status_is_applied_by_its_own_road(api: Api) -> None:
    await api.client.apply(WIDGETS, widget(api.namespace, "a"))
    told = {**widget(api.namespace, "a"), "status": {"phase": "Afloat"}}
    del told["spec"]

    after = await api.client.apply(WIDGETS, told, subresource="status")

    assert after["status"] == {"phase": "Afloat"}
    assert owners(after)["fairlead Apply status"] == {"f:status": {"f:phase": {}}}
    assert after["spec"]["length"] == 12


async def test_apply_for_a_vanished_object_does_not_make_another(api: Api) -> None:
    made = await api.client.apply(CONFIG_MAPS, config_map(api.namespace, "a"))
    await api.client.delete(CONFIG_MAPS, api.key("a"))
    pinned = config_map(api.namespace, "a")
    pinned["metadata"]["uid"] = made["metadata"]["uid"]

    with pytest.raises(Conflict):
        await api.client.apply(CONFIG_MAPS, pinned)
