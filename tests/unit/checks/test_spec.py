"""What a check may say, and what is refused before anything is asked."""

import dataclasses
import datetime as dt

import pytest

from fairlead import errors
from fairlead.checks.spec import Check, CheckKind, When, judgements

JUDGED = {"metrics": [{"name": "latency", "query": "q"}]}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Check("", query="x"), "check without a name"),
        (lambda: Check("x", success="result <"), "."),
        (lambda: Check("x", success="result < 1", high=2), "both bounds and conditions"),
        (
            lambda: Check("x", window=dt.timedelta(milliseconds=1)),
            "window below 1 s: 1 ms",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_hint(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(errors.Rejected, match=message) as caught:
        make()

    assert caught.value.hint


def test_a_judge_that_cannot_be_understood_is_refused_with_its_path() -> None:
    with pytest.raises(errors.Rejected, match=r"unknown field nam at: config\.metrics\[0\]"):
        Check("all", kind=CheckKind.JUDGE, judge={"metrics": [{"nam": "x"}]})


def test_the_verdicts_of_all_judges_of_a_release_are_counted() -> None:
    metric, judge = Check("errors", query="q"), Check("judge", kind=CheckKind.JUDGE, judge=JUDGED)
    at_end = dataclasses.replace(judge, when=When.PROMOTION)
    tried = dataclasses.replace(judge, dry_run=True)

    assert judgements([], 0) == judgements([metric], 4) == judgements([tried], 4) == 1
    assert judgements([metric, judge, tried], 4) == 4
    assert judgements([judge, judge, at_end], 4) == 9
