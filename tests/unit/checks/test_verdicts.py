"""A finding keeps the numbers it was decided by, and can be decided again without the series."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.analysis import policy
from fairlead.analysis.conditions import Answered, Phase, Silent
from fairlead.analysis.policy import Counts
from fairlead.analysis.requests import Requests
from fairlead.analysis.samples import Series
from fairlead.analysis.verdict import NoData
from fairlead.areas.rollouts.domain import events
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.checks import verdicts
from fairlead.checks.spec import Check, CheckKind, Finding
from fairlead.engine.codec import Codec
from tests.unit.checks.about import NOW

JUDGE = {
    "metrics": [
        {"name": "latency", "groups": ["a"]},
        {"name": "errors", "analysisConfigurations": {"canary": {"critical": True}}},
    ],
    "scoreThresholds": {"marginal": 50, "pass": 90},
}
SAMPLES = st.lists(st.none() | st.floats(0, 100), min_size=0, max_size=12)
SIDE = st.fixed_dictionaries({"latency": SAMPLES, "errors": SAMPLES})


def kept(finding: Finding) -> Finding:
    """The finding as an event keeps it, and the store gives it back."""
    codec = Codec(ROLLOUT).events
    row = codec.encode(events.Measured(1, (finding,), NOW))
    measured: events.Measured = codec.decode(row)
    return measured.findings[0]


def test_a_finding_carries_value_limit_and_unit() -> None:
    check = Check("speed", "request-duration", high=200)

    then = verdicts.of_answer(check, Answered(529.0))

    assert then == Finding(
        "speed", Phase.FAILED, "p99 latency 529 ms, limit 200 ms", 529.0, 200, "ms"
    )


def test_a_query_of_ones_own_has_the_unit_that_it_was_given() -> None:
    check = Check("queue", "max(depth)", high=10, unit="jobs")

    then = verdicts.of_answer(check, Answered(3.0))

    assert (then.reason, then.unit) == ("result 3 jobs, limit 10 jobs", "jobs")


def test_a_rate_is_told_by_its_requests() -> None:
    check = Check("success", "request-success-rate", low=99)

    few = verdicts.of_answer(check, Answered(100 - 100 / 11, Requests(11, 1)))
    enough = verdicts.of_answer(check, Answered(100 - 200 / 11, Requests(11, 2)))

    assert few.phase is None
    assert few.reason == (
        "not enough requests yet: 1 of 11 requests failed: 90.9 %, at least 99 % required;"
        " 11 of 100 requests"
    )
    assert enough.phase is Phase.FAILED
    assert enough.reason == "2 of 11 requests failed: 81.8 %, at least 99 % required"


def test_a_check_may_say_of_how_many_requests_it_must_be() -> None:
    check = Check("speed", "request-duration", high=200, min_requests=50)

    few = verdicts.of_answer(check, Answered(529.0, Requests(49)))
    enough = verdicts.of_answer(check, Answered(529.0, Requests(50)))

    assert (few.phase, few.reason) == (None, "not enough requests yet: 49 of 50 requests")
    assert enough.phase is Phase.FAILED
    assert enough.reason == "p99 latency 529 ms, limit 200 ms; of 50 requests"


@given(total=st.integers(1, 2000), failed=st.integers(0, 40), least=st.none() | st.integers(1, 500))
def test_the_verdict_on_a_rate_is_replayed_with_its_requests(
    total: int, failed: int, least: int | None
) -> None:
    check = Check("success", "request-success-rate", low=99, min_requests=least)
    counted = Requests(total, min(failed, total))
    found = verdicts.of_answer(check, Answered(counted.success_rate, counted))

    assert verdicts.replayed(check, kept(found)) == found


@pytest.mark.parametrize(
    "check",
    [
        Check("speed", "request-duration", high=200),
        Check("rate", "request-success-rate", low=99.5),
        Check("both", "q", low=10, high=300),
        Check("success", "q", success="result < 200"),
        Check("either", "q", success="result < 200", failure="result > 300"),
    ],
    ids=lambda check: check.name,
)
@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_the_verdict_on_a_number_is_replayed_from_its_event(check: Check, value: float) -> None:
    found = verdicts.of_answer(check, Answered(value))

    assert verdicts.replayed(check, kept(found)) == found


@given(control=SIDE, experiment=SIDE, no_data=st.sampled_from(NoData))
def test_the_verdict_on_two_sides_is_replayed_without_their_series(
    control: dict[str, Any], experiment: dict[str, Any], no_data: NoData
) -> None:
    check = Check("all", kind=CheckKind.JUDGE, judge=JUDGE, no_data=no_data)
    found = verdicts.of_comparison(
        check, policy.summarize(Series(control, experiment), check.judge)
    )

    assert verdicts.replayed(check, kept(found)) == found


def test_another_policy_decides_otherwise_on_the_same_event() -> None:
    waiting = Check("all", kind=CheckKind.JUDGE, judge=JUDGE)
    strict = Check("all", kind=CheckKind.JUDGE, judge=JUDGE, no_data=NoData.FAIL)
    silent = Series({"latency": [1.0] * 9}, {"latency": [None] * 9})
    found = kept(verdicts.of_comparison(waiting, policy.summarize(silent, JUDGE)))

    assert found.counts == Counts(moments=9, needed=5, control=9, experiment=0)
    assert found.phase is None
    assert verdicts.replayed(strict, found).phase is Phase.FAILED


def test_what_never_had_a_number_stays_as_it_was_told() -> None:
    check = Check("errors", high=1.0, no_data=NoData.FAIL)
    silent = verdicts.of_answer(check, Silent("no series fits"))
    gate = Check("board", "https://gate.example", CheckKind.GATE)
    closed = verdicts.of_gate(gate, is_open=False, said="meeting at 3")

    assert verdicts.replayed(check, kept(silent)) == silent
    assert verdicts.replayed(gate, kept(closed)) == closed
