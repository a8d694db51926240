"""From labels to one number: each group's share of passes, weighted."""

import collections
import decimal
import enum
from collections.abc import Mapping, Sequence

from fairlead.analysis import verdict

FULL = 100.0
TOO_MANY_WITHOUT_DATA = 50.0
CENT = decimal.Decimal("0.01")

COUNTED = {
    verdict.Label.PASS,
    verdict.Label.HIGH,
    verdict.Label.LOW,
    verdict.Label.NO_DATA_FAILS,
}


class Sharing(enum.Enum):
    """Whether groups without a result keep their weight, or leave it to the others."""

    AS_STATED = "as stated"
    AMONG_PRESENT = "among those present"


def score(
    findings: Sequence[verdict.Finding],
    weights: Mapping[str, float],
    sharing: Sharing = Sharing.AS_STATED,
) -> verdict.Score:
    """The score of all metrics that are not muted."""
    heard = [finding for finding in findings if not finding.muted]
    if not heard:
        return verdict.Score(0.0, (), "every metric is muted")
    groups = _group_scores(heard, weights, sharing)
    critical = [
        finding for finding in heard if finding.critical and finding.label is not verdict.Label.PASS
    ]
    if critical:
        first = critical[0]
        reason = f"critical metric {first.name} is {first.label.value}: {first.reason}"
        return verdict.Score(0.0, groups, reason)
    silent = _without_data(heard)
    if silent is not None:
        return verdict.Score(0.0, groups, silent)
    # A group in which nothing could be counted shows 0, yet does not lower the whole.
    whole = sum(
        (group.score if group.counted else FULL) * (group.weight / FULL) for group in groups
    )
    return verdict.Score(_rounded(whole), groups)


def _group_scores(
    findings: Sequence[verdict.Finding], weights: Mapping[str, float], sharing: Sharing
) -> tuple[verdict.GroupScore, ...]:
    labels: dict[str, list[verdict.Label]] = collections.defaultdict(list)
    for finding in findings:
        for group in finding.groups:
            labels[group].append(finding.label)
    shares = _shares(list(labels), weights, sharing)
    scores = []
    for name, given in labels.items():
        counted = sum(label in COUNTED for label in given)
        passed = given.count(verdict.Label.PASS)
        value = passed / counted * FULL if counted else 0.0
        scores.append(verdict.GroupScore(name, value, shares[name], counted))
    return tuple(scores)


def _shares(
    groups: Sequence[str], weights: Mapping[str, float], sharing: Sharing
) -> dict[str, float]:
    """Groups without a weight share equally what the weights leave."""
    open_groups = [group for group in groups if group not in weights]
    rest = (FULL - sum(weights.values())) / len(open_groups) if open_groups else 0.0
    shares = {group: weights.get(group, rest) for group in groups}
    total = sum(shares.values())
    if sharing is Sharing.AS_STATED or not groups:
        return shares
    if total <= 0:
        return dict.fromkeys(groups, FULL / len(groups))
    if total == FULL:
        return shares
    return {group: share * FULL / total for group, share in shares.items()}


def _without_data(findings: Sequence[verdict.Finding]) -> str | None:
    """Half or more without data is no basis; metrics with a policy are left to theirs."""
    bound = [finding for finding in findings if finding.no_data is None]
    silent = [finding.name for finding in bound if finding.label is verdict.Label.NO_DATA]
    if not silent or len(silent) / len(bound) * 100 < TOO_MANY_WITHOUT_DATA:
        return None
    return f"{len(silent)} of {len(bound)} metrics have no data, which is half or more"


def _rounded(value: float) -> float:
    """To two digits, halves up, from the shortest decimal form: 0.125 becomes 0.13."""
    exact = decimal.Decimal(repr(value))
    return float(min(exact.quantize(CENT, decimal.ROUND_HALF_UP), decimal.Decimal(100)))
