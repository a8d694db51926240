"""When do we go on, and when home? Labels, limits, and what missing data means.

Every finding and every judgement carries its reason as a sentence with numbers.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from fairlead.analysis import ranksum

NOT_ENOUGH = "not enough "
"""How the reason of a finding begins that nobody could make with what came."""


class Label(enum.Enum):
    """What one metric looks like beside control; the words are Kayenta's."""

    PASS = "Pass"  # noqa: S105 - a verdict, no password
    HIGH = "High"
    LOW = "Low"
    NO_DATA = "Nodata"
    NO_DATA_FAILS = "NodataFailMetric"
    ERROR = "Error"


class Verdict(enum.Enum):
    """What to do with the release."""

    PASS = "Pass"  # noqa: S105 - a verdict, no password
    MARGINAL = "Marginal"
    FAIL = "Fail"
    INCONCLUSIVE = "Inconclusive"
    WAIT = "Wait"


class NoData(enum.Enum):
    """What it means when a metric has no samples."""

    WAIT = "wait"
    PASS = "pass"  # noqa: S105 - a verdict, no password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Finding:
    """One metric's label, and why."""

    name: str
    label: Label
    reason: str
    groups: tuple[str, ...] = ()
    critical: bool = False
    muted: bool = False
    ratio: float | None = None
    interval: ranksum.Interval | None = None
    no_data: NoData | None = None


@dataclass(frozen=True, slots=True)
class GroupScore:
    """A group's share of metrics that pass, in percent, and its part of the whole."""

    name: str
    score: float
    weight: float
    counted: int


@dataclass(frozen=True, slots=True)
class Score:
    """The whole, 0 to 100; a reason if it was not the sum of the groups."""

    value: float
    groups: tuple[GroupScore, ...]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From `passing` on the release passes, from `marginal` on a person should look."""

    marginal: float = 75.0
    passing: float = 95.0


USUAL = Thresholds()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on all metrics together."""

    verdict: Verdict
    score: float
    reason: str
    groups: tuple[GroupScore, ...]
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...] = ()


def decide(
    score: Score, thresholds: Thresholds, findings: Sequence[Finding]
) -> tuple[Verdict, str]:
    """The verdict by score, unless a metric without data asks to wait or leaves it open."""
    verdict, reason = _by_score(score, thresholds, findings)
    if verdict is Verdict.FAIL:
        # What we know is enough to roll back; what we do not know cannot make it better.
        return verdict, reason
    for policy, instead in ((NoData.WAIT, Verdict.WAIT), (NoData.INCONCLUSIVE, _OPEN)):
        open_ = [each for each in findings if each.no_data is policy and not each.muted]
        short = [f"{each.name}: {each.reason}" for each in open_ if _is_short(each)]
        if short:
            return instead, _listed(short, 2)
        if open_:
            names = _listed([each.name for each in open_])
            return instead, f"no data yet for {names}, whose policy is {policy.value}"
    return verdict, reason


_OPEN = Verdict.INCONCLUSIVE


def _is_short(finding: Finding) -> bool:
    """Whether there is data, only not enough; told from what an event keeps of a finding."""
    return finding.reason.startswith(NOT_ENOUGH)


def _by_score(
    score: Score, thresholds: Thresholds, findings: Sequence[Finding]
) -> tuple[Verdict, str]:
    if score.reason is not None:
        verdict = _placed(score.value, thresholds)
        return verdict, score.reason
    value = f"score {score.value:g}"
    match _placed(score.value, thresholds):
        case Verdict.PASS:
            return Verdict.PASS, f"{value} reaches the pass limit of {thresholds.passing:g}"
        case Verdict.MARGINAL:
            told = f"reaches the marginal limit of {thresholds.marginal:g} but not the pass"
            verdict = Verdict.MARGINAL
            sentence = f"{value} {told} limit of {thresholds.passing:g}"
        case _:
            verdict = Verdict.FAIL
            sentence = f"{value} is below the marginal limit of {thresholds.marginal:g}"
    return verdict, sentence + _blamed(findings)


def _placed(score: float, thresholds: Thresholds) -> Verdict:
    if score >= thresholds.passing:
        return Verdict.PASS
    return Verdict.MARGINAL if score >= thresholds.marginal else Verdict.FAIL


def _blamed(findings: Sequence[Finding]) -> str:
    blamed = (Label.HIGH, Label.LOW, Label.NO_DATA_FAILS)
    names = [
        f"{finding.name} is {finding.label.value}"
        for finding in findings
        if finding.label in blamed and not finding.muted
    ]
    return f": {_listed(names)}" if names else ""


def _listed(names: list[str], limit: int = 5) -> str:
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
