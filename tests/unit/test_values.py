"""Words that every floor uses: percents, and quantities as Kubernetes writes them."""

import decimal
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead import errors, values
from fairlead.areas.rollouts.domain.plan import triggers
from fairlead.kubernetes.writes import compare

UNITS = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
NUMBERS = st.decimals(-(10**6), 10**6, allow_nan=False, allow_infinity=False, places=3)


@pytest.mark.parametrize("wrong", [-1, 101, True])
def test_a_percent_lies_between_nothing_and_all(wrong: int) -> None:
    assert values.percent(100) == 100
    with pytest.raises(errors.Rejected):
        values.percent(wrong)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1500m", Decimal("1.5")),
        ("0.5", Decimal("0.5")),
        (".5", Decimal("0.5")),
        ("2.", Decimal(2)),
        ("+1", Decimal(1)),
        ("-1k", Decimal(-1000)),
        ("1e3", Decimal(1000)),
        ("1E3", Decimal(1000)),
        ("12E", Decimal(12 * 10**18)),
        ("12e3", Decimal(12000)),
        ("1e-3", Decimal("0.001")),
        ("100u", Decimal("0.0001")),
        ("5n", Decimal("5e-9")),
        ("1.5Gi", Decimal(3 * 2**29)),
        ("1Ei", Decimal(2**60)),
        ("0.1n", Decimal("1e-9")),
        ("1234567890123456789012345678901.5", Decimal("1234567890123456789012345678901.5")),
        ("0.0", Decimal(0)),
        *((wrong, None) for wrong in ("", ".", "1 Gi", "1K", "1gi", "1.2.3", "e3", "1e", "1Gie3")),
        *((wrong, None) for wrong in ("Gi", "1e1.5", "--1", "NaN", "1e999", "9" * 65, "\u0661")),
    ],
)
def test_a_quantity_is_its_number(text: str, value: Decimal | None) -> None:
    assert values.quantity(text) == value


@given(NUMBERS, st.sampled_from(UNITS))
def test_a_unit_multiplies(number: Decimal, unit: str) -> None:
    one = values.quantity(f"1{unit}")
    found = values.quantity(f"{number:f}{unit}")

    assert one is not None
    assert found is not None
    with decimal.localcontext(prec=300):
        assert abs(found - number * one) < Decimal("1e-9")
    assert (found >= 0) == (number >= 0) or not found


@given(NUMBERS, st.sampled_from(UNITS))
def test_what_was_read_reads_the_same_again(number: Decimal, unit: str) -> None:
    found = values.quantity(f"{number:f}{unit}")

    assert found is not None
    assert values.quantity(format(found, "f")) == found


@given(st.integers(0, 10**9), st.sampled_from([("m", -3), ("k", 3), ("M", 6), ("G", 9), ("E", 18)]))
def test_equivalents_are_equal_for_both_who_ask(number: int, unit: tuple[str, int]) -> None:
    with_unit = f"{number}{unit[0]}"
    for other in (f"{number}e{unit[1]}", f"{number}E{unit[1]}", f"{number}.0{unit[0]}"):
        assert values.quantity(with_unit) == values.quantity(other)
        assert template_hash(with_unit) == template_hash(other)
        assert compare.differences(pod(with_unit), pod(other)) == []


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_others_are_not(one: int, other: int) -> None:
    differ = one != other

    assert (values.quantity(f"{one}m") != values.quantity(f"{other}m")) == differ
    assert (template_hash(f"{one}m") != template_hash(f"{other}m")) == differ


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("rollot", "did you mean rollout? use one of: rollout, stream"),
        ("zebra", "use one of: rollout, stream"),
    ],
)
def test_a_word_that_is_none_of_the_known_ones_gets_a_hint(word: str, hint: str) -> None:
    assert values.one_of(word, {"stream", "rollout"}) == hint


def pod(amount: str) -> dict[str, object]:
    resources = {"limits": {"cpu": amount}}
    spec = {"containers": [{"name": "web", "resources": resources}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "shop"}, "spec": spec}


def template_hash(amount: str) -> str:
    return triggers.template_hash(pod(amount))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://ada:secret@gate.example/x", "https://…@gate.example/x"),
        ("see https://a.example/?token=abc&b=1#c", "see https://a.example/?token=…&b=1#c"),
        ("https://a.example/?b=1&api_key=k%20", "https://a.example/?b=1&api_key=…"),
        (
            '{"url":"https://a.example/?X-Amz-Signature=f"}',
            '{"url":"https://a.example/?X-Amz-Signature=…"}',
        ),
        (
            "https://a.example/?access_token=a&client-secret=b",
            "https://a.example/?access_token=…&client-secret=…",
        ),
        ("https://a.example/?monkey=1&page=2", "https://a.example/?monkey=1&page=2"),
        ('sum(rate(x{token=~"a"}[1m]))', 'sum(rate(x{token=~"a"}[1m]))'),
        ("mail ada@example.com", "mail ada@example.com"),
    ],
)
def test_an_address_is_shown_without_its_secrets(text: str, shown: str) -> None:
    assert values.redacted(text) == shown


def test_a_long_text_is_searched_in_linear_time() -> None:
    hostile = "://" + "?a" * 200_000 + "&token" * 50_000

    assert values.redacted(hostile) == hostile


@pytest.mark.parametrize(
    ("host", "here"),
    [
        *(("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True)),
        *(("localhost.evil.example", False), ("192.0.2.1", False), ("::", False), ("", False)),
    ],
)
def test_only_names_of_this_machine_are_loopback(host: str, *, here: bool) -> None:
    assert values.is_loopback(host) is here
