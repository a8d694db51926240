"""Streams of before are found too: a changed declaration has its rows rebuilt, once."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from fairlead import errors
from fairlead.engine import batch, filters, indexing, machine, service, visibility
from fairlead.engine.store import protocol
from fairlead.engine.testing import HandWoundClock
from tests.engines import Home, Setup, engine, tell, until
from tests.parcels import PARCEL, Parcel, Stamp, Write

T = TypeVar("T")
PLAIN = replace(PARCEL, attributes=None)
KNOWN = machine.Machines([PARCEL])


async def found(running: service.Engine, text: str) -> list[str]:
    which = visibility.StreamFilter(where=filters.where(text, KNOWN))
    views = await running.read(lambda session: visibility.streams(session, which))
    return [view.name for view in views]


async def keep(home: Home, wall: HandWoundClock, known: machine.AnyMachine, *names: str) -> None:
    async with engine(home.store(), wall, Setup(known=(known,))).running() as running:
        for each in names:
            await tell(running, f"parcel/{each}", Write(Parcel(city="Oslo", weight=7)))


async def test_streams_from_before_the_declaration_are_found_after_a_start(
    home: Home, wall: HandWoundClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "PAGE", 2)
    await keep(home, wall, PLAIN, "a", "b", "c")

    async with engine(home.store(), wall, Setup(known=(PARCEL,))).running() as running:

        async def all_there() -> bool:
            return await found(running, "city=Oslo") == ["parcel/c", "parcel/b", "parcel/a"]

        await until(all_there)
        await tell(running, "parcel/a", Stamp())
        assert len(await found(running, "weight=7")) == 3


async def test_another_declaration_or_version_is_followed(
    home: Home, wall: HandWoundClock, session: protocol.Session
) -> None:
    await keep(home, wall, PARCEL, "a")
    fewer = replace(PARCEL, attributes=machine.Attributes({"city": str}, lambda _: {"city": "x"}))
    newer = replace(
        PARCEL,
        attributes=machine.Attributes({"city": str}, lambda _: {"city": "y"}, version=2),
    )

    rows = []
    for declared in (fewer, newer):
        (registered,) = [batch.MachineRegistry(machine.Machines([declared])).of("parcel")]
        assert indexing.is_due(session, registered)
        indexing.rebuild(session, registered)
        assert not indexing.is_due(session, registered)
        rows.append(home.sql("SELECT name, value FROM attributes"))

    assert rows == [[("city", "x")], [("city", "y")]]


async def test_a_stream_that_cannot_be_read_hides_no_other(
    home: Home, wall: HandWoundClock, session: protocol.Session
) -> None:
    await keep(home, wall, PLAIN, "a", "b")
    home.sql("""UPDATE streams SET state = '{"weight": "much"}' WHERE name = 'parcel/a'""")

    indexing.rebuild(session, batch.MachineRegistry(KNOWN).of("parcel"))

    async with engine(home.store(), wall, Setup(known=(PARCEL,))).running() as running:
        assert await found(running, "city=Oslo") == ["parcel/b"]


@pytest.mark.parametrize(
    "trouble", [protocol.Lost(), errors.Unavailable("a failover", hint="it is tried again")]
)
@pytest.mark.parametrize("moment", [1, 2, 3])
async def test_what_comes_between_is_tried_again(
    home: Home, wall: HandWoundClock, session: protocol.Session, moment: int, trouble: Exception
) -> None:
    await keep(home, wall, PLAIN, "a")
    tries = 0

    async def write(function: Callable[[protocol.Session], T]) -> T:
        nonlocal tries
        tries += 1
        if tries == moment:
            raise trouble
        return function(session)

    await indexing.catch_up(write, batch.MachineRegistry(KNOWN), pause=lambda: asyncio.sleep(0))

    assert [name for name, _ in home.sql("SELECT name, value FROM attributes ORDER BY name")] == [
        "city",
        "weight",
    ]
    assert not indexing.is_due(session, batch.MachineRegistry(KNOWN).of("parcel"))


def test_what_is_declared_is_told_by_names_types_and_version(session: protocol.Session) -> None:
    registered = batch.MachineRegistry(KNOWN).of("parcel")

    indexing.finish(session, registered)

    ((kept,),) = session.rows("get_fact", name="attributes of parcel")
    kinds = {"city": "str", "due": "datetime", "fragile": "bool", "size": ["small", "large"]}
    assert json.loads(kept) == [1, {**kinds, "weight": "int"}]
