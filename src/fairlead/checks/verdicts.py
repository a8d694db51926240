"""From what was fetched for a check to its finding; pure, and again from what an event keeps."""

import dataclasses

from fairlead.analysis import conditions, policy
from fairlead.analysis.conditions import Phase
from fairlead.analysis.policy import Comparison, Ruling
from fairlead.checks.spec import Check, CheckKind, Finding

MOST_TOLD = 500
"""Letters of a reason; an answer may be a page."""


def of_answer(check: Check, answer: conditions.Answer, *, window_over: bool = True) -> Finding:
    metric = check.metric
    rule = policy.Criterion(check.criteria(), check.no_data, metric, check.min_requests)
    ruling = policy.of_answer(answer, rule, window_over=window_over)
    found = _finding(check, ruling, metric.unit)
    requests = answer.requests if isinstance(answer, conditions.Answered) else None
    return dataclasses.replace(found, requests=requests)


def of_gate(check: Check, *, is_open: bool, said: str) -> Finding:
    """A closed gate is no failure: there is nothing to count yet."""
    told = f"{'open' if is_open else 'closed'}: {said}"[:MOST_TOLD]
    return Finding(check.name, Phase.SUCCESSFUL if is_open else None, told)


def of_comparison(check: Check, found: Comparison) -> Finding:
    ruling = policy.of_comparison(found, check.judge, check.no_data)
    return _finding(check, ruling, "", found)


def replayed(check: Check, kept: Finding) -> Finding:
    """The finding decided again by its numbers; as it is where it never had any."""
    if check.kind is CheckKind.JUDGE and kept.counts is not None:
        return of_comparison(check, Comparison(kept.counts, kept.metrics))
    if check.kind is CheckKind.METRIC and kept.value is not None:
        return of_answer(check, conditions.Answered(kept.value, kept.requests))
    return kept


def _finding(check: Check, ruling: Ruling, unit: str, found: Comparison | None = None) -> Finding:
    return Finding(
        check=check.name,
        phase=ruling.phase,
        reason=ruling.reason[:MOST_TOLD],
        value=ruling.value,
        limit=ruling.limit,
        unit=unit,
        counts=found.counts if found else None,
        metrics=found.metrics if found else (),
    )
