"""Objects of resources on the fake API server, and what becomes of them in the simulated cloud."""

from pathlib import Path

import pytest

from fairlead.areas.resources.kubernetes.kinds import CLOUD_RESOURCES
from fairlead.kubernetes.objects import Key, Object
from tests.unit.areas.resources.kubernetes import stories
from tests.unit.areas.resources.kubernetes.operating import (
    ID,
    condition,
    is_ready,
    resource,
    site,
)


@pytest.mark.requirement("resources R1", "resources R9", "resources R14")
async def test_an_object_makes_a_resource_and_shows_it(tmp_path: Path) -> None:
    async with site(tmp_path) as there, there.operating():
        await there.hand.create(CLOUD_RESOURCES, resource())

        found = await there.seen()

    assert there.cloud.made == {ID.lower(): 1}
    assert found["status"]["resourceId"] == ID
    assert found["status"]["observed"]["sku"] == {"name": "Standard_D2_v3", "capacity": 3}


@pytest.mark.requirement("resources R17", "resources R18", "resources R19", "resources R31")
async def test_a_scale_set_goes_the_way_of_the_document(tmp_path: Path) -> None:
    async with site(tmp_path) as there, there.operating():
        await stories.scale_set(there)


@pytest.mark.requirement("resources R25")
async def test_an_operator_with_an_empty_store_goes_on_from_the_status(tmp_path: Path) -> None:
    async with site(tmp_path) as there:
        await stories.empty_store(there)


@pytest.mark.requirement("resources R29")
@pytest.mark.parametrize("requests", range(1, 6))
async def test_an_operator_that_ends_at_any_request_leaves_no_second_resource(
    tmp_path: Path, requests: int
) -> None:
    async with site(tmp_path) as there:
        there.cloud.behaviour.style = "azure-async-operation"
        async with there.operating():
            await there.hand.create(CLOUD_RESOURCES, resource())
            await there.until(lambda: len(there.cloud.asked) >= requests)

        async with there.operating("an empty store"):
            await there.seen()
            await there.hand.delete(CLOUD_RESOURCES, Key("default", "web"))
            await there.gone()

    assert there.cloud.made == {ID.lower(): 1}
    assert [method for method, _, _ in there.cloud.writes] == ["PUT", "DELETE"]


async def test_a_status_that_another_hand_wrote_is_not_gone_on_from(tmp_path: Path) -> None:
    async with site(tmp_path) as there:
        async with there.operating():
            await there.hand.create(CLOUD_RESOURCES, resource())
            memory = (await there.seen())["status"]["memory"]
        memory["last"]["applied"]["tags"] = {"tag1": "value", "theirs": "kept"}
        tags = {"tag1": "value", "theirs": "kept"}
        there.cloud.put(ID, {**there.cloud.stored[ID.lower()].body, "tags": tags})
        change: Object = {"status": {"memory": memory}}
        await there.hand.patch(CLOUD_RESOURCES, Key("default", "web"), change, subresource="status")
        await there.patch({"spec": {"properties": {"tags": {"tag1": "new"}}}})

        async with there.operating("another store"):
            await there.seen()

    shown = there.cloud.shown(ID)
    assert shown is not None
    assert shown["tags"] == {"tag1": "new", "theirs": "kept"}


async def test_a_secret_comes_from_a_secret_and_is_shown_nowhere(tmp_path: Path) -> None:
    async with site(tmp_path) as there, there.operating():
        await stories.secret(there)


async def test_a_child_waits_for_its_owner_and_stands_in_it(tmp_path: Path) -> None:
    async with site(tmp_path) as there, there.operating():
        await stories.child(there)


@pytest.mark.requirement("resources R32", "resources R33")
async def test_what_is_there_is_attached_without_a_write(tmp_path: Path) -> None:
    async with site(tmp_path) as there, there.operating():
        await stories.attached(there)


async def test_a_resource_stays_where_the_policy_retains_it(tmp_path: Path) -> None:
    async with site(tmp_path) as there, there.operating():
        await there.hand.create(CLOUD_RESOURCES, resource(policy={"deletion": "retain"}))
        await there.seen()

        await there.hand.delete(CLOUD_RESOURCES, Key("default", "web"))
        await there.gone()

    assert there.cloud.shown(ID) is not None


@pytest.mark.requirement("resources R15")
async def test_what_others_change_is_written_back_and_shown_at_the_next_look(
    tmp_path: Path,
) -> None:
    async with site(tmp_path) as there, there.operating():
        await there.hand.create(CLOUD_RESOURCES, resource(policy={"refresh": "1s"}))
        await there.seen()
        body = there.cloud.stored[ID.lower()].body

        there.cloud.put(ID, {**body, "location": "eastus", "theirs": "new"})
        found = await there.seen(lambda one: "theirs" in one["status"]["observed"])
        await there.until(lambda: there.cloud.stored[ID.lower()].body["location"] == "westus")

    assert is_ready(found) or found["status"]["differs"]


async def test_one_without_credentials_says_so(tmp_path: Path) -> None:
    async with site(tmp_path) as there:
        there.is_known = False
        async with there.operating():
            await there.hand.create(CLOUD_RESOURCES, resource())

            found = await there.seen(lambda one: condition(one).get("reason") == "Credentials")

    assert "nobody to ask the API as" in found["status"]["message"]


async def test_two_objects_of_one_resource_do_not_fight(tmp_path: Path) -> None:
    async with site(tmp_path) as there, there.operating():
        await there.hand.create(CLOUD_RESOURCES, resource())
        await there.seen()
        other = resource(name="again", resourceName="WEB", properties={"tags": {"a": "b"}})
        await there.hand.create(CLOUD_RESOURCES, other)

        found = await there.seen(lambda one: bool(condition(one, "Accepted")), "again")

    assert "default/web has it already" in condition(found, "Accepted")["message"]
    assert len(there.cloud.writes) == 1


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"type": "Acme.Toys/set"}, "no such type of resource: Acme.Toys/set"),
        ({"properties": {"sku": {"capcity": 3}}}, "spec.properties.sku.capcity"),
        ({"owner": {}}, "neither owner nor resourceId"),
        ({"owner": {"name": "net"}}, "waits for CloudResource/net"),
        ({"owner": {"name": "net", "namespace": "other"}}, "an owner of another namespace"),
        ({"owner": {"resourceId": "/subscriptions/s"}}, "does not stand in /subscriptions/s"),
    ],
)
async def test_what_came_past_the_webhook_is_refused_in_the_status(
    tmp_path: Path, spec: Object, told: str
) -> None:
    async with site(tmp_path) as there, there.operating():
        await there.hand.create(CLOUD_RESOURCES, resource(**spec))

        found = await there.seen(lambda one: bool(condition(one, "Accepted")))

    assert told in condition(found, "Accepted")["message"]
    assert there.cloud.asked == []
