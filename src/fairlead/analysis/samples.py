"""What was measured, made fit to compare: missing samples, then outliers."""

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlead.analysis import statistics


class Missing(enum.Enum):
    """What a missing sample means."""

    REMOVE = "remove"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Counted:
    """Events among requests, moment by moment: a rate that knows what it is of."""

    events: tuple[int, ...]
    requests: tuple[int, ...]
    of_failures: bool = False
    """Whether the metric is the rate of the others, as a success rate is; in percent then."""

    def __len__(self) -> int:
        return len(self.events)

    @property
    def rates(self) -> list[float]:
        """The metric, moment by moment; not a number where there was no request."""
        pairs = zip(self.events, self.requests, strict=True)
        rates = (events / of if of else math.nan for events, of in pairs)
        return [100 * (1 - rate) if self.of_failures else rate for rate in rates]


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many requests fell between each two edges, moment by moment; the last has no end."""

    edges: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.counts)


Measured = Sequence[float | None] | Counted | Histogram


@dataclass(frozen=True, slots=True)
class Series:
    """Both sides as they were measured: for each metric one sample a moment, None where missing."""

    control: Mapping[str, Measured]
    experiment: Mapping[str, Measured]


@dataclass(frozen=True, slots=True)
class Outliers:
    """Whether samples far outside are left out, and how far is far."""

    remove: bool = False
    factor: float = 3.0


KEEP_ALL = Outliers()


def clean(values: Sequence[float], missing: Missing, outliers: Outliers) -> list[float]:
    """The samples to compare; a missing one (not a number) is dropped or counts as zero."""
    if not any(map(math.isnan, values)):
        kept = list(values)
    elif missing is Missing.REPLACE:
        kept = [0.0 if math.isnan(value) else value for value in values]
    else:
        kept = [value for value in values if not math.isnan(value)]
    if not outliers.remove or not kept:
        return kept
    far = beyond_fences(kept, outliers.factor, cautious=True)
    return [value for value, is_far in zip(kept, far, strict=True) if not is_far]


def beyond_fences(values: Sequence[float], factor: float, *, cautious: bool = False) -> list[bool]:
    """Outside the quartiles by more than this many interquartile ranges.

    The cautious fences never cut inside the first and the last percent of the data.
    """
    lower, upper = statistics.percentile(values, 25), statistics.percentile(values, 75)
    reach = factor * (upper - lower)
    lower, upper = lower - reach, upper + reach
    if cautious:
        lower = min(lower, statistics.percentile(values, 1))
        upper = max(upper, statistics.percentile(values, 99))
    return [value > upper or value < lower for value in values]
