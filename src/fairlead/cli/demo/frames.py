"""The rollout at one moment in plain numbers, for a terminal to draw or a log to write."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from fairlead.areas.rollouts import detail, projection
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.traffic_stats import Point
from fairlead.cli.demo.load import Tally

RECENT = 5
"""Seconds over which success and latency are shown."""

TRAIL = 20
"""Seconds that the small curve shows."""

_STEPPING = ("Progressing", "Baking")
_PHASES = {
    "Queued": "about to start",
    "Promoting": "promoting",
    "RollingBack": "rolling back",
}


@dataclass(frozen=True, slots=True)
class Side:
    """One version as it stands."""

    version: str
    slot: str
    weight: int
    requests: int
    failed: int
    success: float | None
    p50_ms: float | None
    p99_ms: float | None
    trail: tuple[float | None, ...]
    """Success second by second, the newest last."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything that is drawn at once."""

    headline: str
    watched: bool
    """Whether checks are measured now."""

    sides: tuple[Side, ...]
    checks: tuple[detail.CheckSheet, ...]
    seconds: float


def frame(
    told: detail.Detail,
    points: Sequence[Point],
    tally: Tally,
    versions: Mapping[str, str],
    seconds: float,
) -> Frame:
    row = told.rollout
    pairs = [(Slot.PRIMARY, row.primary, row.primary_weight)]
    if row.canary:
        pairs.append((Slot.CANARY, row.canary, row.canary_weight))
    revisions = {version: revision for revision, version in versions.items()}
    sides = tuple(
        _side(version, slot, weight, (points, tally, revisions.get(version, "")))
        for slot, version, weight in pairs
    )
    return Frame(_headline(row), row.phase in _STEPPING, sides, told.checks, seconds)


def _headline(row: projection.Summary) -> str:
    if row.phase in _STEPPING and row.step:
        return f"{row.canary}: step {row.step} of {row.steps}, weight {row.canary_weight} %"
    if row.canary:
        return f"{row.canary}: {_PHASES.get(row.phase, row.phase.lower())}"
    return f"{row.stable} has all traffic"


def _side(version: str, slot: Slot, weight: int, seen: tuple[Sequence[Point], Tally, str]) -> Side:
    points, tally, revision = seen
    mine = [point for point in points if (point.slot, point.revision) == (slot, revision)]
    late = mine[-RECENT:]
    asked, failed = sum(each.requests for each in late), sum(each.failed for each in late)
    bad = HTTPStatus.INTERNAL_SERVER_ERROR
    return Side(
        version=version,
        slot=slot.value,
        weight=weight,
        requests=tally.of(version),
        failed=sum(
            n for (whose, code), n in tally.answers.items() if whose == version and code >= bad
        ),
        success=100 * (asked - failed) / asked if asked else None,
        p50_ms=_median([each.p50_ms for each in late]),
        p99_ms=_median([each.p99_ms for each in late]),
        trail=tuple(each.success for each in mine[-TRAIL:]),
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
