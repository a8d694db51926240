"""Stories of objects and their resources, told on a fake and on a real API server alike."""

import base64
import json
from typing import Any

from fairlead.areas.resources.kubernetes.kinds import CLOUD_RESOURCES
from fairlead.kubernetes.objects import Key, Object, Resource
from tests.unit.areas.resources.kubernetes.operating import (
    ID,
    SECRETS,
    Site,
    condition,
    is_ready,
    resource,
)


def others_write(there: Site, id_: str = ID, **more: Any) -> None:
    """An autoscaler, or a hand in the portal."""
    there.cloud.put(id_, {**there.cloud.stored[id_.lower()].body, **more})


def scaled(there: Site, capacity: int, id_: str = ID) -> None:
    others_write(
        there, id_, sku={**there.cloud.stored[id_.lower()].body["sku"], "capacity": capacity}
    )


def capacity(there: Site, id_: str = ID) -> int:
    return int(there.cloud.stored[id_.lower()].body["sku"]["capacity"])


def body(there: Site, change: Object, api: Resource = CLOUD_RESOURCES) -> Object:
    """A change of the body, wherever the kind has it."""
    return {"spec": {"properties": change} if api is CLOUD_RESOURCES else change}


async def scale_set(
    there: Site, api: Resource = CLOUD_RESOURCES, made: Object | None = None, id_: str = ID
) -> None:
    """Create, the autoscaler moves it, a tag change keeps it, one edit, handed over, deleted."""
    await there.hand.create(api, made or resource(there.namespace))
    found = await there.seen(api=api)
    assert found["status"]["resourceId"] == id_
    assert [method for method, _, _ in there.cloud.writes] == ["PUT"]

    scaled(there, 7, id_)
    await there.patch(body(there, {"tags": {"tag1": "other"}}, api), api=api)
    found = await there.seen(api=api)
    assert found["status"]["observed"]["tags"] == {"tag1": "other"}
    assert capacity(there, id_) == 7

    await there.patch(body(there, {"sku": {"capacity": 5}}, api), api=api)
    await there.seen(api=api)
    assert capacity(there, id_) == 5
    writes = len(there.cloud.writes)

    scaled(there, 9, id_)
    await there.patch(body(there, {"sku": {"capacity": None}}, api), api=api)
    found = await there.seen(lambda one: is_ready(one) and _capacity(one) == 9, api=api)
    assert len(there.cloud.writes) == writes, there.cloud.writes

    # A hand changes what the owner says; the next look, which any edit brings, writes it back.
    others_write(there, id_, tags={"tag1": "by hand"})
    await there.patch({"spec": {"policy": {"refresh": "2h"}}}, api=api)
    await there.until(lambda: there.cloud.stored[id_.lower()].body["tags"] == {"tag1": "other"})
    await there.seen(api=api)
    assert capacity(there, id_) == 9

    await there.hand.delete(api, Key(there.namespace, "web"))
    await there.gone(api=api)
    assert there.cloud.shown(id_) is None
    assert there.cloud.made == {id_.lower(): 1}


def _capacity(found: Object) -> object:
    return found["status"]["observed"]["sku"].get("capacity")


async def empty_store(there: Site) -> None:
    """A tag that was applied by one operator is removed by the next, which has nothing else."""
    tags = {"tag1": "value", "old": "1"}
    async with there.operating():
        made = resource(there.namespace)
        made["spec"]["properties"]["tags"] = tags
        await there.hand.create(CLOUD_RESOURCES, made)
        await there.seen()
    others_write(there, tags={**tags, "theirs": "1"})
    writes = len(there.cloud.writes)

    async with there.operating("an empty store"):
        await there.patch(body(there, {"tags": {"old": None}}))
        await there.until(lambda: len(there.cloud.writes) > writes)
        await there.seen()
    assert there.cloud.stored[ID.lower()].body["tags"] == {"tag1": "value", "theirs": "1"}

    async with there.operating("another"):
        await there.hand.delete(CLOUD_RESOURCES, Key(there.namespace, "web"))
        await there.gone()
    assert there.cloud.shown(ID) is None
    assert there.cloud.made == {ID.lower(): 1}


def a_secret(there: Site, value: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": there.namespace, "name": "web-admin"},
        "data": {"phrase": base64.b64encode(value.encode()).decode()},
    }


async def secret(there: Site) -> None:
    there.cloud.behaviour.hidden = ("phrase",)
    made = resource(there.namespace)
    made["spec"]["properties"]["properties"] = {"phrase": {"fromSecret": "web-admin/phrase"}}
    await there.hand.create(CLOUD_RESOURCES, made)
    waits = await there.seen(lambda one: condition(one).get("reason") == "Dependency")
    assert "no such key of a Secret: web-admin/phrase" in waits["status"]["message"]

    await there.hand.create(SECRETS, a_secret(there, "hunter2"))
    first = await there.seen()
    assert there.cloud.stored[ID.lower()].body["properties"]["phrase"] == "hunter2"

    change = {"data": a_secret(there, "hunter3")["data"]}
    await there.hand.patch(SECRETS, Key(there.namespace, "web-admin"), change)
    await there.until(
        lambda: there.cloud.stored[ID.lower()].body["properties"].get("phrase") == "hunter3"
    )
    found = await there.seen()
    assert "hunter" not in json.dumps([first, found])


async def child(there: Site) -> None:
    """Its owner's id and one of its outputs come from another object."""
    rule = resource(
        there.namespace,
        "http",
        type="Acme.Toys/sets/rules",
        owner={"name": "web"},
        properties={"name": {"fromResource": "web/location"}, "port": 80},
    )
    await there.hand.create(CLOUD_RESOURCES, rule)
    waits = await there.seen(lambda one: bool(condition(one, "Accepted")), "http")
    assert "waits for CloudResource/web" in condition(waits, "Accepted")["message"]

    await there.hand.create(CLOUD_RESOURCES, resource(there.namespace))
    found = await there.seen(name="http")

    assert found["status"]["resourceId"] == f"{ID}/rules/http"
    assert there.cloud.stored[f"{ID}/rules/http".lower()].body["name"] == "westus"


async def attached(there: Site) -> None:
    lost = resource(there.namespace, "lost", resourceId=f"{ID}2", owner={})
    await there.hand.create(CLOUD_RESOURCES, lost)
    found = await there.seen(lambda one: condition(one, "Stalled").get("status") == "True", "lost")
    assert found["status"]["message"].startswith("NotFound")

    made = resource(there.namespace, resourceId=ID, owner={})
    there.cloud.put(ID, {**made["spec"]["properties"], "theirs": "1"})
    await there.hand.create(CLOUD_RESOURCES, made)
    found = await there.seen()
    assert found["status"]["resourceId"] == ID
    assert there.cloud.writes == []

    await there.patch(body(there, {"tags": {"tag1": "ours"}}))
    await there.seen()
    assert there.cloud.stored[ID.lower()].body["theirs"] == "1"
    assert [method for method, _, _ in there.cloud.writes] == ["PATCH"]
