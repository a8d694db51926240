"""The parts together: a sample controller converges, and then is silent."""

import asyncio

import pytest

from fairlead.kubernetes.objects import Key, uid_of
from tests.contract.kubernetes import Api, gone
from tests.contract.kubernetes_samples import CONFIG_MAPS, WIDGETS, widget
from tests.contract.sample_controller import RunningController, working


async def launch(api: Api, *names: str) -> None:
    for name in names:
        await api.other.create(WIDGETS, widget(api.namespace, name))


async def heard(running: RunningController, key: Key) -> asyncio.Event:
    """Set when the part of this key changes in the cache."""
    event = asyncio.Event()
    running.parts.on_change(lambda changed: event.set() if changed == key else None)
    return event


async def test_an_object_gets_its_children_and_status_in_four_writes(api: Api) -> None:
    await launch(api, "a", "b", "c", "d", "e")

    async with working(api.connection, api.namespace) as running:
        await running.until_done()

    assert (running.requests["create"], running.requests["patch"]) == (15, 5)
    assert running.writes == 20
    assert running.requests["get"] == 0


async def test_a_second_pass_and_a_restart_write_nothing(api: Api) -> None:
    await launch(api, "a", "b")
    async with working(api.connection, api.namespace) as running:
        await running.until_done()
        before = running.writes
        await running.reconcile_all()
        after = running.writes

    async with working(api.connection, api.namespace) as restarted:
        await restarted.until_done()
        await restarted.reconcile_all()

    assert after == before
    assert restarted.writes == 0


async def test_an_edit_of_the_object_reaches_the_children(api: Api) -> None:
    await launch(api, "a")
    async with working(api.connection, api.namespace) as running:
        await running.until_done()
        key = api.key("a")
        await api.other.patch(WIDGETS, key, {"spec": {"length": 30, "sails": 1}})
        event = await heard(running, api.key("a-mast"))
        await event.wait()
        await running.until_done()

    parts = [obj async for obj in api.client.each(CONFIG_MAPS, running.parts.selection)]
    built = {p["metadata"]["name"]: p["data"] for p in parts if "length" in (p.get("data") or {})}
    assert built == {"a-deck": {"length": "30"}, "a-hull": {"length": "30"}}


async def test_a_hand_edit_of_a_child_is_restored(api: Api) -> None:
    await launch(api, "a")
    async with working(api.connection, api.namespace) as running:
        await running.until_done()
        before = running.writes
        event = await heard(running, api.key("a-deck"))
        await api.other.patch(CONFIG_MAPS, api.key("a-deck"), {"data": {"length": "99"}})
        await event.wait()
        await running.until_done()
        written = running.writes - before

    deck = await api.client.get(CONFIG_MAPS, api.key("a-deck"))
    assert deck["data"]["length"] == "12"
    # The first change in its life costs one request more: see apply.py.
    assert written == 2


async def test_a_deleted_child_comes_back(api: Api) -> None:
    await launch(api, "a")
    async with working(api.connection, api.namespace) as running:
        await running.until_done()
        first = await api.client.get(CONFIG_MAPS, api.key("a-deck"))
        event = await heard(running, api.key("a-deck"))
        await api.other.delete(CONFIG_MAPS, api.key("a-deck"))
        await event.wait()
        await running.until_done()

    second = await api.client.get(CONFIG_MAPS, api.key("a-deck"))
    assert uid_of(second) != uid_of(first)


@pytest.mark.usefixtures("controllers")
async def test_nothing_is_written_after_the_object_is_deleted(api: Api) -> None:
    await launch(api, "a", "b")
    async with working(api.connection, api.namespace) as running:
        await running.until_done()
        before = running.writes
        await api.other.delete(WIDGETS, api.key("a"))
        for name in ("a-deck", "a-hull", "a-mast"):
            await gone(api, CONFIG_MAPS, name)
        await running.until_done()
        await running.reconcile_all()
        after = running.writes

    assert after == before


@pytest.mark.usefixtures("controllers")
async def test_an_object_made_again_under_its_name_gets_children_of_its_own(api: Api) -> None:
    await launch(api, "a")
    async with working(api.connection, api.namespace) as running:
        await running.until_done()
        first = await api.client.get(WIDGETS, api.key("a"))
        await api.other.delete(WIDGETS, api.key("a"))
        await launch(api, "a")
        second = await api.client.get(WIDGETS, api.key("a"))
        async with asyncio.timeout(30):
            while len(running.parts.owned_by(uid_of(second))) < 3:
                event = await heard(running, api.key("a-mast"))
                await event.wait()
        await running.until_done()

    assert uid_of(first) != uid_of(second)
