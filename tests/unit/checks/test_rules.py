"""How people write checks and times; what does not hold is refused at its path."""

import datetime as dt
import math

import pytest

from fairlead import errors
from fairlead.checks import rules
from fairlead.checks.spec import WEB, CheckKind


def test_a_check_is_read_from_its_words() -> None:
    words = rules.CheckWords(name="errors", query="sum(x)", high=0.01, interval="1m30s", count=3)

    (check,) = rules.checks([words], "checks")

    assert (check.name, check.query, check.kind) == ("errors", "sum(x)", CheckKind.METRIC)
    assert check.limits.interval == dt.timedelta(seconds=90)
    assert rules.checks([rules.CheckWords(name="a", web="https://a")], "")[0].source == WEB


def test_all_that_does_not_hold_is_told_with_its_path() -> None:
    words = [rules.CheckWords(name="a"), rules.CheckWords(name="b", query="x", interval="1x")]

    with pytest.raises(errors.Invalid) as refused:
        rules.checks(words, "checks")

    assert [each.path for each in refused.value.problems] == ["checks[0]", "checks[1].interval"]


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (math.nan, None, "checks[0].low: no finite number: nan"),
        (99, math.inf, "checks[0].high: no finite number: inf"),
        (90, 5, "checks[0].low: above high: 90 > 5"),
    ],
)
def test_limits_that_no_number_or_every_number_keeps_are_refused(
    low: float, high: float | None, told: str
) -> None:
    words = rules.CheckWords(name="a", metric="request-success-rate", low=low, high=high)

    with pytest.raises(errors.Invalid) as refused:
        rules.checks([words], "checks")

    assert refused.value.message == told


def test_all_mistakes_of_a_judge_are_told_at_their_fields() -> None:
    judge = {"metrics": [{"name": "a", "qurey": "up"}, {"name": 1}], "judge": {"looks": 3}}

    with pytest.raises(errors.Invalid) as refused:
        rules.checks([rules.CheckWords(name="a", judge=judge)], "checks")

    assert [each.path for each in refused.value.problems] == [
        "checks[0].judge.metrics[0].qurey",
        "checks[0].judge.metrics[1].name",
        "checks[0].judge.judge.looks",
    ]
    assert refused.value.problems[0].hint.startswith("did you mean query?")
