"""What came of the requests, version by version, from Envoy's own counts.

Envoy counts since its start. Two readings are taken and the difference is judged, so a
verdict never sees requests from before. A count that went down was started over, by a new
Envoy or a version that came back: then all of the later count is new.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

FILTER = r"^cluster\..*\.upstream_rq_(time|[1-5]xx)$"
# Only the lines we need; names of versions hold nothing that would be escaped in a label.
_SAMPLE = re.compile(r"^envoy_cluster_upstream_rq_(xx|time_bucket)\{(.*)\} (\d+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_FAILURES = "5"
_INFINITE = float("inf")
_Key = TypeVar("_Key", str, float)


@dataclass(frozen=True, slots=True)
class Counts:
    """One version's counts since Envoy started."""

    # Answers by the first digit of their status.
    classes: Mapping[str, int] = field(default_factory=dict)
    # Upper bound in milliseconds -> answers that took at most so long.
    within_ms: Mapping[float, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """All versions' counts at one moment."""

    versions: Mapping[str, Counts]
    # Which run of Envoy counted; the counts of another one say nothing about these.
    run: str = ""

    def of(self, version: str) -> Counts:
        return self.versions.get(version, Counts())


@dataclass(frozen=True, slots=True)
class Numbers:
    """What one version did between two readings; None where nothing was asked of it."""

    requests: int
    failures: int
    # In percent; a failure is an answer with status 500 or above, as Flagger counts it.
    success_rate: float | None
    p50_ms: float | None
    p99_ms: float | None


def read(text: str, names: Mapping[str, str], run: str = "") -> Reading:
    """Envoy's page in the format of Prometheus; names gives the version of each cluster."""
    classes: dict[str, dict[str, int]] = {}
    times: dict[str, dict[float, int]] = {}
    for name, inside, count in _SAMPLE.findall(text):
        labels = dict(_LABEL.findall(inside))
        cluster = labels["envoy_cluster_name"]
        if name == "time_bucket":
            times.setdefault(cluster, {})[float(labels["le"])] = int(count)
        else:
            classes.setdefault(cluster, {})[labels["envoy_response_code_class"]] = int(count)
    found = {
        version: Counts(classes.get(cluster, {}), times.get(cluster, {}))
        for cluster, version in names.items()
    }
    return Reading(found, run)


def between(before: Reading, after: Reading) -> dict[str, Numbers]:
    """What each version did from one reading to the next."""
    base = before if before.run == after.run else Reading({})
    return {
        version: _numbers(base.of(version), counts) for version, counts in after.versions.items()
    }


def quantile(within: Mapping[float, int], share: float) -> float | None:
    """The time below which this share of answers lies, even within a bucket."""
    bounds = sorted(within)
    total = within[bounds[-1]] if bounds else 0
    if total == 0:
        return None
    rank = share * total
    lower, below = 0.0, 0
    for bound in bounds:
        if within[bound] >= rank:
            # Beyond the last finite bound nothing is known but that.
            if bound == _INFINITE:
                return lower
            return lower + (bound - lower) * (rank - below) / (within[bound] - below)
        lower, below = bound, within[bound]
    return lower


def _numbers(before: Counts, after: Counts) -> Numbers:
    classes = _grown(before.classes, after.classes)
    requests = sum(classes.values())
    # Times come a moment after the counts: where nothing was counted, they are of earlier requests.
    within = _grown(before.within_ms, after.within_ms) if requests else {}
    failures = classes.get(_FAILURES, 0)
    rate = 100.0 * (requests - failures) / requests if requests else None
    return Numbers(requests, failures, rate, quantile(within, 0.5), quantile(within, 0.99))


def _grown(before: Mapping[_Key, int], after: Mapping[_Key, int]) -> dict[_Key, int]:
    started_over = any(after.get(key, 0) < count for key, count in before.items())
    base: Mapping[_Key, int] = {} if started_over else before
    return {key: count - base.get(key, 0) for key, count in after.items()}


def names(clusters: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Which version a cluster of the numbers is."""
    return {each["alt_stat_name"]: each["name"] for each in clusters}
