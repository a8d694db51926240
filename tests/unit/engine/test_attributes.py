"""Only what changed is written, in texts that sort as their values, with the state itself."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead import errors
from fairlead.engine import attributes, batch, machine
from fairlead.engine.store import protocol
from fairlead.engine.testing import HandWoundClock
from tests import machines, parcels
from tests.engines import Home, Setup, engine, tell
from tests.parcels import PARCEL, Deliver, Parcel, Stamp, Write

CAST = Setup(known=(*machines.ALL, PARCEL))
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
whole = st.integers(-(2**63), 2**63 - 1)
moments = st.datetimes(timezones=st.just(UTC))


@PATIENT
@given(st.one_of(st.tuples(whole, whole), st.tuples(moments, moments)))
def test_texts_sort_as_their_values(pair: tuple[int, int] | tuple[datetime, datetime]) -> None:
    left, right = pair

    texts = attributes.encode(left), attributes.encode(right)

    assert (texts[0] < texts[1]) == (left < right)  # type: ignore[operator]  # both of one type
    assert (texts[0] == texts[1]) == (left == right)


def test_a_text_is_cut_and_one_moment_is_the_same_in_every_zone() -> None:
    there = NOON.astimezone(timezone(timedelta(hours=5)))

    assert attributes.encode("x" * 500) == "x" * 200
    assert attributes.encode("a\0b") == "a\N{REPLACEMENT CHARACTER}b"
    assert attributes.encode(there) == attributes.encode(NOON)


@pytest.mark.parametrize(
    "value", [2**63, NOON.replace(tzinfo=None)], ids=["number", "time without a zone"]
)
def test_what_cannot_be_kept_is_a_fault(value: int | datetime) -> None:
    with pytest.raises(ValueError, match=r"64 bits|without a zone"):
        attributes.encode(value)


@pytest.mark.parametrize("name", ["Phase", "two words", "and", "machine", "x" * 41, ""])
def test_a_name_that_no_filter_could_say_is_refused_at_the_start(name: str) -> None:
    odd = replace(PARCEL, attributes=machine.Attributes({name: str}, lambda _: {}))

    with pytest.raises(ValueError, match="not a name of an attribute"):
        batch.MachineRegistry(machine.Machines([odd]))


@pytest.mark.parametrize(
    "label", [{"colour": "red"}, {"weight": "7"}, {"weight": True}, {"size": "huge"}]
)
def test_what_was_not_declared_is_a_fault_of_the_machine(label: dict[str, object]) -> None:
    odd = replace(PARCEL, attributes=machine.Attributes(parcels.KINDS, lambda _: label))  # type: ignore[arg-type, return-value]  # the fault

    with pytest.raises(ValueError, match="not as declared: attribute"):
        attributes.values(odd, Parcel())


def rows(home: Home) -> list[tuple[str, str]]:
    return home.sql("SELECT name, value FROM attributes ORDER BY name")


async def test_rows_follow_the_state(home: Home, wall: HandWoundClock) -> None:
    async with engine(home.store(), wall, CAST).running() as running:
        await tell(running, "parcel/a", Write(Parcel(city="Oslo", weight=7)))
        first = rows(home)
        await tell(running, "parcel/a", Write(Parcel(city="Rome", fragile=True)))
        second = rows(home)
        await tell(running, "parcel/a", Deliver())

    assert first == [("city", "Oslo"), ("weight", attributes.encode(7))]
    assert second == [("city", "Rome"), ("fragile", "true")]
    assert rows(home) == second


def test_only_what_changed_is_written() -> None:
    before = Parcel(city="Oslo", weight=7, fragile=True)

    same = list(attributes.changes(PARCEL, 1, before, replace(before, stamps=1)))
    other = list(attributes.changes(PARCEL, 1, before, replace(before, weight=8, fragile=None)))

    assert same == []
    assert other == [
        protocol.NewAttribute(1, "parcel", "weight", attributes.encode(8)),
        protocol.NewAttribute(1, "parcel", "fragile", None),
    ]


async def test_a_command_that_fails_leaves_no_row(home: Home, wall: HandWoundClock) -> None:
    def fail(state: parcels.State) -> dict[str, machine.AttributeValue]:
        if isinstance(state, Parcel) and state.weight == 13:
            raise ZeroDivisionError("the machine is broken")
        return parcels.values(state)

    unlucky = replace(PARCEL, attributes=machine.Attributes(parcels.KINDS, fail))
    async with engine(home.store(), wall, Setup(known=(unlucky,))).running() as running:
        await tell(running, "parcel/a", Write(Parcel(weight=7)))
        with pytest.raises(ZeroDivisionError):
            await tell(running, "parcel/a", Write(Parcel(city="Oslo", weight=13)))
        await tell(running, "parcel/a", Stamp())

    assert rows(home) == [("weight", attributes.encode(7))]


async def test_a_machine_without_attributes_is_not_searched(
    home: Home, wall: HandWoundClock
) -> None:
    async with engine(home.store(), wall, CAST).running() as running:
        await tell(running, "counter/a", machines.Add(1))
        with pytest.raises(errors.Rejected):
            await tell(running, "counter/a", machines.Misbehave("refuse"))

    assert rows(home) == []
