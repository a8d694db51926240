"""What people may write after --where, and what they hear when it cannot be read."""

import contextlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead import errors
from fairlead.engine import attributes, filters, machine
from fairlead.engine.filters import Clause, Condition
from tests import machines
from tests.parcels import PARCEL

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
TWIN = replace(PARCEL, name="letter")
KNOWN = machine.Machines([*machines.ALL, PARCEL])


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("city=Oslo", [Condition("city", "=", ("Oslo",))]),
        (
            " city = Oslo AND weight>=-7 ",
            [Condition("city", "=", ("Oslo",)), Condition("weight", ">=", ("-7",))],
        ),
        ("city in (Oslo,Rome, Oslo)", [Condition("city", "in", ("Oslo", "Rome"))]),
        ("city!=''", [Condition("city", "!=", ("",))]),
        ('city="St. John\'s, and more"', [Condition("city", "=", ("St. John's, and more",))]),
        (r'city="a\"b\\c"', [Condition("city", "=", ('a"b\\c',))]),
        ("city=shop/web:1.2@x", [Condition("city", "=", ("shop/web:1.2@x",))]),
        ("city='; DROP TABLE streams --'", [Condition("city", "=", ("; DROP TABLE streams --",))]),
    ],
)
def test_what_can_be_said(text: str, conditions: list[Condition]) -> None:
    assert filters.parse(text) == tuple(conditions)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "character 1, expected the name of an attribute"),
        ("city", "character 5, expected one of = != < <= > >= in"),
        ("city=", "character 6, expected a value"),
        ("city=Oslo or city=Rome", "character 11, expected and, or the end"),
        ("city=Oslo and", "character 14, expected the name"),
        ("city='Oslo", "character 6, expected a closing quote"),
        ("city=a\\b", "character 7, expected a word"),
        ("city in Oslo", "character 9, expected ("),
        ("city in (Oslo", "character 14, expected )"),
        ("city in ()", "character 10, expected a value"),
        ("city==Oslo", "character 6, expected a value"),
        ("city=1;weight!7", "character 14, expected a word"),
        (" and ".join(["city=Oslo"] * 17), "expected at most 16 conditions"),
        (f"city in ({','.join(map(str, range(65)))})", "expected at most 64 values"),
    ],
)
def test_a_filter_that_cannot_be_read_tells_the_place(text: str, place: str) -> None:
    with pytest.raises(errors.Rejected) as refused:
        filters.parse(text)

    assert place in refused.value.message
    assert refused.value.message.endswith(f": {text}")
    assert refused.value.hint.startswith("write NAME=VALUE")


@pytest.mark.parametrize("text", ["city=" + "x" * 2000, "city=a\0b", "city=a\nb", "city=\udcff"])
def test_a_filter_without_bounds_is_refused(text: str) -> None:
    with pytest.raises(errors.Rejected, match="too long or with unprintable"):
        filters.parse(text)


@PATIENT
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(errors.Rejected):
        assert filters.parse(text)


@PATIENT
@given(st.text(max_size=60).filter(str.isprintable))
def test_any_value_can_be_quoted(value: str) -> None:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')

    assert filters.parse(f'city="{escaped}"') == (Condition("city", "=", (value,)),)


def test_each_type_is_read_as_it_is_kept() -> None:
    text = 'city=Oslo and weight=7 and fragile=true and due=2030-01-31 and size in (small, "large")'

    where = filters.where(text, KNOWN)

    seven, day = attributes.encode(7), attributes.encode(datetime(2030, 1, 31, tzinfo=UTC))
    assert where is not None
    assert where.machine == "parcel"
    assert where.clauses == (
        Clause("city", (("Oslo", "Oslo"),)),
        Clause("weight", ((seven, seven),)),
        Clause("fragile", (("true", "true"),)),
        Clause("due", ((day, day),)),
        Clause("size", (("small", "small"), ("large", "large"))),
    )


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("ctiy=Oslo", "unknown attribute: ctiy", "did you mean city? use one of: city, due, frag"),
        ("q=1", "unknown attribute: q", "use one of: city, due, fragile, size, weight"),
        ("machine=parcel and ctiy=1", "unknown attribute of parcel: ctiy", "did you mean city?"),
        ("machine=counter and total=1", "unknown attribute of counter: total", "it has none"),
        ("size=huge", "size is never this: huge", "use one of: large, small"),
        ("size=Small", "size is never this: Small", "did you mean small?"),
        ("weight=heavy", "weight is a whole number: heavy", "digits"),
        (f"weight={'9' * 19}", "weight is a whole number: 999", "at most 18 digits"),
        ("fragile=yes", "fragile is true or false: yes", "fragile=true"),
        ("due=soon", "due is a time: soon", "2030-01-31T12:00:00Z"),
        ("due=2030-01-31T12:00:00", "due is a time: 2030-01-31T12:00:00", "Z"),
        ("due=0001-01-01T00:00:00+14:00", "due is a time: 0001", "Z"),
        ("machine!=parcel", "a filter is for one machine: machine!=parcel", "machine=NAME once"),
        ("machine=a and machine=b", "a filter is for one machine", "machine=NAME once"),
        ("machine=parcl and city=Oslo", "no such machine: parcl", "known machines: bell, counter"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused_with_what_would(
    text: str, message: str, hint: str
) -> None:
    with pytest.raises(errors.Rejected) as refused:
        filters.where(text, KNOWN)

    assert refused.value.message.startswith(message)
    assert hint in refused.value.hint


def test_one_machine_is_meant() -> None:
    both = machine.Machines([PARCEL, TWIN])

    with pytest.raises(errors.Rejected, match=r"several machines .*: letter, parcel"):
        filters.where("city=Oslo", both)
    with pytest.raises(errors.Rejected, match="a filter is for one machine"):
        filters.where("machine=letter and city=Oslo", both, "parcel")
    for found in (
        filters.where("city=Oslo", both, "letter"),
        filters.where("machine=letter and city=Oslo", both),
    ):
        assert found is not None
        assert found.machine == "letter"


def test_nothing_said_is_no_filter_and_a_machine_alone_has_no_clause() -> None:
    assert filters.where("  ", KNOWN) is None
    assert filters.where("machine=parcel", KNOWN) == filters.Where("parcel", ())
