"""What an evaluation found, as a step reports it: the class, its reasons, and each statement."""

import re
from collections.abc import Iterator

from fairlead import values
from fairlead.areas.deployments.domain.messages import (
    PerformStep,
    ReportStep,
    StatementFound,
    StepStatus,
)
from fairlead.areas.deployments.migrations import evaluation

_MOST_STATEMENTS = 200
_LONGEST = 400
_PASSWORD = re.compile(r"\bPASSWORD\b", re.IGNORECASE)
_LITERAL = re.compile(
    r"[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|(?P<tag>\$\w*\$).*?(?P=tag)", re.DOTALL
)


def report(step: PerformStep, found: evaluation.Evaluation) -> ReportStep:
    return ReportStep(
        step.step,
        step.attempt,
        StepStatus.DONE,
        impact=found.impact,
        reasons=tuple(_reasons(found)),
        statements=statements(found),
    )


def statements(found: evaluation.Evaluation) -> tuple[StatementFound, ...]:
    """In their order, as many as an event should hold; the worst are among the reasons anyway."""
    return tuple(
        StatementFound(
            shown(each.sql),
            each.impact,
            tuple(f"{lock.mode} on {lock.relation}" for lock in each.locks),
            each.rewrite,
            each.scan,
            tuple(shown(reason) for reason in each.reasons),
            each.suggestion[:_LONGEST],
        )
        for each in found.statements[:_MOST_STATEMENTS]
    )


def shown(sql: str) -> str:
    """On one line, without the passwords that somebody wrote into a migration."""
    plain = " ".join(sql.split())
    if _PASSWORD.search(plain):
        # All of its literals: a comment may part the word from what it is about.
        plain = _LITERAL.sub("'…'", plain)
    return values.redacted(plain)[:_LONGEST]


def _reasons(found: evaluation.Evaluation) -> Iterator[str]:
    yield from (f"{shown(each)}: {found.impact.value}" for each in found.reasons)
    for each in found.statements:
        if each.impact is found.impact:
            sql = shown(each.sql)[:80]
            yield from (f"{sql}: {reason}: {each.impact.value}" for reason in each.reasons)
