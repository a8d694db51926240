"""Seals of statuses: bound to the key, the content and the very object; the key is kept once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead.errors import Corrupt
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Key, Object
from fairlead.kubernetes.writes import seals
from fairlead.kubernetes.writes.seals import Seals
from tests.fakes.kubernetes.server import Server

PLACE = Key("default", "fairlead-operator-status")
SHOP: Object = {"metadata": {"namespace": "a", "name": "shop", "uid": "u1"}}
CONTENT = {"memory": {"state": "Idle", "limits": [1, 0.5]}, "accepted": None}


@contextlib.asynccontextmanager
async def cluster() -> AsyncIterator[tuple[Server, Client]]:
    async with (
        Server().running() as server,
        Client(Connection(server.url, credentials.Fixed())) as client,
    ):
        yield server, client


def test_a_seal_holds_for_what_it_was_made_of() -> None:
    seal = Seals(bytes(32)).of(SHOP, CONTENT)

    assert Seals(bytes(32)).holds(SHOP, CONTENT, seal)


@pytest.mark.parametrize(
    "place",
    [{"namespace": "b"}, {"name": "other"}, {"uid": "u2"}],
    ids=["namespace", "name", "made again"],
)
def test_a_seal_does_not_hold_on_another_object(place: dict[str, str]) -> None:
    seal = Seals(bytes(32)).of(SHOP, CONTENT)

    other = {"metadata": {**SHOP["metadata"], **place}}

    assert not Seals(bytes(32)).holds(other, CONTENT, seal)


@pytest.mark.parametrize(
    "content",
    [
        {**CONTENT, "accepted": {"spec": {}}},
        {**CONTENT, "memory": {"state": "Idle", "limits": [1, 0.6]}},
        {"memory": None, "accepted": CONTENT["memory"]},
        {},
    ],
)
def test_a_seal_does_not_hold_for_other_content_nor_under_another_key(content: Any) -> None:
    seal = Seals(bytes(32)).of(SHOP, CONTENT)

    assert not Seals(bytes(32)).holds(SHOP, content, seal)
    assert not Seals(b"k" * 32).holds(SHOP, CONTENT, seal)
    assert not Seals(bytes(32)).holds(SHOP, CONTENT, "")
    assert not Seals(bytes(32)).holds(SHOP, CONTENT, "é")


def test_what_an_api_server_spells_otherwise_is_the_same() -> None:
    seal = Seals(bytes(32)).of(SHOP, {"b": 1.0, "a": [2.0, None], "c": None})

    assert Seals(bytes(32)).holds(SHOP, {"a": [2, None], "b": 1}, seal)


async def test_replicas_that_start_together_share_one_key() -> None:
    async with cluster() as (_, client):
        first, second = await asyncio.gather(seals.load(client, PLACE), seals.load(client, PLACE))
        third = await seals.load(client, PLACE)

        kept = await client.get(rbac.SECRETS, PLACE)

    assert kept["immutable"] is True
    seal = first.of(SHOP, CONTENT)
    assert second.holds(SHOP, CONTENT, seal)
    assert third.holds(SHOP, CONTENT, seal)


@pytest.mark.parametrize("data", [None, {}, {"key": "c2hvcnQ="}, {"key": "!"}])
async def test_a_key_that_is_none_is_told(data: Object | None) -> None:
    secret: Object = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": PLACE.namespace, "name": PLACE.name},
        **({} if data is None else {"data": data}),
    }
    async with cluster() as (_, client):
        await client.create(rbac.SECRETS, secret)

        with pytest.raises(Corrupt, match="no key of 32 bytes in Secret: default/fairlead"):
            await seals.load(client, PLACE)


async def test_without_the_right_the_seals_hold_for_this_process_only() -> None:
    async with cluster() as (server, client):
        server.forbidden.add(("GET", "secrets"))
        alone = await seals.load(client, PLACE)
        server.forbidden.clear()

        shared = await seals.load(client, PLACE)

    seal = alone.of(SHOP, CONTENT)
    assert alone.holds(SHOP, CONTENT, seal)
    assert not shared.holds(SHOP, CONTENT, seal)
