"""What one engine counts and times as it works; collector.py shows it to those who ask.

Bounded by what the process performs: nothing is kept by stream, and nothing is asked of the store.
"""

import bisect
from collections import defaultdict
from dataclasses import dataclass, field

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

EffectKind = tuple[str, type, str]
"""Machine, type of effect, queue."""


@dataclass(slots=True)
class Histogram:
    """How long something took, counted by upper bounds in seconds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect.bisect_left(_BOUNDS, seconds)] += 1
        self.total += seconds

    def add(self, other: "Histogram") -> None:
        self.counts = [
            mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)
        ]
        self.total += other.total

    def buckets(self) -> list[tuple[str, float]]:
        """Counts up to each bound, as OpenMetrics has them."""
        reached, found = 0, list[tuple[str, float]]()
        for bound, count in zip((*map(str, _BOUNDS), "+Inf"), self.counts, strict=True):
            reached += count
            found.append((bound, reached))
        return found


@dataclass(slots=True)
class Measurements:
    """What this process has done so far."""

    commits: int = 0
    events: int = 0
    troubles: int = 0
    """Commits of unknown fate."""

    lease_losses: int = 0
    commit_seconds: Histogram = field(default_factory=Histogram)
    effect_seconds: defaultdict[EffectKind, Histogram] = field(
        default_factory=lambda: defaultdict(Histogram)
    )
    """Every attempt, whatever became of it."""

    effect_failures: defaultdict[EffectKind, int] = field(default_factory=lambda: defaultdict(int))
