"""The language of conditions: what it says, what it refuses, and where."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead import errors
from fairlead.analysis import evaluation, expression

PIECES = [
    *("result", "#", "nil", "true", "isNaN", "len", "all", "default", "not", "in", "and", "or"),
    *("(", ")", "[", "]", "{", "}", ",", ".", "?", ":", "!", "-", "+", "*", "/", "%", "**"),
    *("<", ">=", "==", "&&", "||", "0", "1.5", '"x"', " "),
]


def value(source: str, result: Any = None) -> Any:
    return evaluation.evaluate(source, expression.parse(source), {"result": result})


@pytest.mark.parametrize(
    ("source", "result", "expected"),
    [
        ("result[0] >= 0.95", [0.97], True),
        ("result[0] >= 0.95", [0.5], False),
        ("result[0] >= 0.95 && result[0] <= 1", [1.2], False),
        ("result[0] >= 0.95 and not isNaN(result[0])", [math.nan], False),
        ("isNaN(result)", math.nan, True),
        ("isInf(result[0])", [math.inf], True),
        ("isNil(result)", None, True),
        ("len(result) > 0", [], False),
        ("len(result) == 0 || result[0] < 5", [], True),
        ("default(result, 0) < 1", None, True),
        ("default(result, 0) < 1", [], True),
        ("default(result, 0) < 1", 7, False),
        ("asFloat(result) > 0.5", "0.75", True),
        ("asInt(result) == 3", "3", True),
        ("asInt(result) == 3", 3.9, True),
        ("all(result, {# < 5})", [1, 2, 3], True),
        ("any(result, {# > 2})", [1, 2, 3], True),
        ("none(result, {# > 3})", [1, 2, 3], True),
        ("one(result, {# == 2})", [1, 2, 2], False),
        ("count(result, {# >= 2}) == 2", [1, 2, 3], True),
        ("sum(filter(result, {# > 1})) == 5", [1, 2, 3], True),
        ("max(map(result, {# * 2})) == 6", [1, 2, 3], True),
        ("all(result, {.ok && .ms < 9})", [{"ok": True, "ms": 5}], True),
        ("result.data.ok == true", {"data": {"ok": True}}, True),
        ('result["data"]["n"] > 1', {"data": {"n": 2}}, True),
        ('result.state in ["up", "ready"]', {"state": "up"}, True),
        ('"x" not in result', {"y": 1}, True),
        ("result.missing == nil", {}, True),
        ("result[-1] == 3", [1, 2, 3], True),
        ("1 + 2 * 3 - 4 / 2", None, 5),
        ("2 ** 3 ** 2", None, 512),
        ("-2 ** 2", None, -4),
        ("7 % 4 == 3", None, True),
        ("!true || true", None, True),
        ("not 1 == 2", None, True),
        ("true or false and false", None, True),
        ("result > 5 ? 1 : 2", 9, 1),
        ("false ? 1 : true ? 2 : 3", None, 2),
        ("1 / 0", None, math.inf),
        ("-1 / 0", None, -math.inf),
        ("10 ** 999", None, math.inf),
        ("'it\\'s' == \"it's\"", None, True),
        ("result == nil", "5", False),
        ("result in [1, '5', nil]", 5, False),
        ("result in []", 5, False),
        ("abs(0 - 3) + min(4, 2) == 5", None, True),
        ("[1, 2, 3][1]", None, 2),
        (".5 < 1e0", None, True),
    ],
)
def test_conditions_say(source: str, result: Any, expected: Any) -> None:
    assert value(source, result) == expected


@pytest.mark.parametrize("source", ["0 / 0", "5 % 0", "(0 - 1) ** 0.5"])
def test_what_is_no_number_is_none(source: str) -> None:
    assert math.isnan(value(source))


@pytest.mark.parametrize(
    ("source", "problem", "character"),
    [
        ("", "unexpected the end", 1),
        ("result[0] >=", "unexpected the end", 13),
        ("result[0] >= 0.95)", "unexpected ')'", 18),
        ("result[0 >= 1", "unexpected the end", 14),
        ("result = 1", "unexpected '='", 8),
        ("result & 1", "unexpected '&'", 8),
        ("__import__('os')", "unknown function '__import__'", 1),
        ("result.__class__ ; 1", "unexpected ';'", 18),
        ("lambda: 1", "unexpected ':'", 7),
        ("in result", "unexpected 'in'", 1),
        ("1 2", "unexpected '2'", 3),
        ("result.1", "unexpected '.1'", 7),
        ("all(result, {# > 1)", "unexpected ')'", 19),
        ('"open', "unexpected '\"'", 1),
        ("result[0] > 1", "no item 0 in a list of 0", 7),
        ("result.x > 1", "a list has no item 'x'", 7),
        ("result > 1", "a list > a number makes no sense", 8),
        ("!len(result)", "a number where true or false is needed", 2),
        ("nope > 1", "unknown name 'nope'", 1),
        ("# > 1", "unknown name '#'", 1),
        ("nope(1)", "unknown function 'nope'", 1),
        ("len(1)", "len cannot take a number", 1),
        ("len()", "len cannot take nothing", 1),
        ("asFloat('x')", "asFloat cannot take a text", 1),
        ("-result", "a list cannot be negated", 1),
        ("1 in 2", "nothing is in a number", 3),
        ("len(result, {# > 1})", "len is not asked of each item of a list", 1),
        ("all([1], {# + 1})", "the test in braces is not true or false", 13),
        ("true + 1", "a boolean + a number makes no sense", 6),
        ("'a' + 'b'", "a text + a text makes no sense", 5),
        ("5 == '5'", "a number is never a text", 3),
        ("true == 1", "a boolean is never a number", 6),
        ("true != 'true'", "a boolean is never a text", 6),
        ("5 in ['5', '6']", "a number is never a text", 3),
        ("'5' not in [5]", "a text is never a number", 5),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(
    source: str, problem: str, character: int
) -> None:
    with pytest.raises(errors.Rejected) as caught:
        value(source, [])

    assert caught.value.message == f"{problem} at character {character} of condition: {source}"
    assert caught.value.hint


def test_a_condition_must_be_true_or_false() -> None:
    with pytest.raises(errors.Rejected, match="a number where true or false is needed"):
        evaluation.holds("1 + 1", expression.parse("1 + 1"), {})


@pytest.mark.parametrize(
    "source",
    [
        "1" * 5000,
        "(" * 100 + "1" + ")" * 100,
        "!" * 100 + "true",
        "+".join(["1"] * 200),
        "result" + "[0]" * 200,
        "[" * 100,
    ],
)
def test_too_long_or_too_deep_is_refused(source: str) -> None:
    with pytest.raises(errors.Rejected):
        expression.parse(source)


@pytest.mark.parametrize(
    "source",
    [
        "all(result, {all(result, {all(result, {true})})})",
        "count(result, {sum(result) > 0}) > 0",
        "all(result, {# in result})",
    ],
)
def test_a_condition_cannot_take_for_ever(source: str) -> None:
    with pytest.raises(errors.Rejected, match="more than 100000 steps"):
        value(source, [float(number) for number in range(2000)])


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.sampled_from([[], [1.0], None, {"a": 1}]))
def test_any_text_has_a_value_or_is_refused(pieces: list[str], result: Any) -> None:
    source = " ".join(pieces)
    try:
        value(source, result)
    except errors.Rejected as error:
        refusal = error
    else:
        return

    assert source in refusal.message


@given(st.text(max_size=60))
def test_any_characters_are_read_or_refused(source: str) -> None:
    try:
        expression.parse(source)
    except errors.Rejected as error:
        refusal = error
    else:
        return

    assert refusal.hint
