"""A rate is worth as much as the requests behind it: from how many on it decides, and its words.

With a limit of 99 % a single failure breaks it until a hundred requests came, so one failure of few
requests says nothing yet. Two of eleven do: even if all others up to the hundredth succeed, the
limit is broken.
"""

import math
from dataclasses import dataclass

LEAST = 10
"""Requests from which a version without a failure passes, unless the check says otherwise."""

ALL = 100.0
DOUBT = 0.05
"""Left open where a rate is said to be proven."""


@dataclass(frozen=True, slots=True)
class Requests:
    """What a value was taken from."""

    total: int
    failed: int | None = None
    """None where the value is about something else than failures."""

    @property
    def success_rate(self) -> float:
        return ALL * (1 - (self.failed or 0) / self.total)


def undecided(requests: Requests, low: float | None, least: int | None) -> str | None:
    """Why these requests decide nothing yet; None where they do.

    `low` is the success rate that is required, `least` what the check says.
    """
    if low is None or requests.failed is None:
        needed = LEAST if least is None else least
        return None if requests.total >= needed else f"{requests.total} of {needed} requests"
    is_broken = requests.success_rate < low
    needed = _needed(low, is_broken=is_broken) if least is None else least
    if requests.total >= needed or (is_broken and _is_sure(requests, low, needed)):
        return None
    return f"{told(requests, low)}; {requests.total} of {needed} requests"


def told(requests: Requests, low: float) -> str:
    """`1 of 11 requests failed: 90.9 %, at least 99 % required`."""
    rate = _cut(requests.success_rate, low)
    failed = f"{requests.failed} of {requests.total} requests failed"
    said = f"{failed}: {rate} %, at least {low:g} % required"
    # A version that fails so often has as many good requests in a row once in twenty times.
    proven = ALL * DOUBT ** (1 / requests.total)
    is_open = not requests.failed and proven < low < ALL
    return f"{said}; so few prove only {_cut(proven, low)} %" if is_open else said


def _cut(rate: float, low: float) -> str:
    """Cut off, not rounded: 98.96 % is not the required 99 %."""
    digits = len(f"{low:g}".partition(".")[2]) + 1
    return f"{math.floor(rate * 10**digits) / 10**digits:g}"


def _needed(low: float, *, is_broken: bool) -> int:
    """So many that one failure alone does not break the limit, where it is broken."""
    if not is_broken or low >= ALL:
        return LEAST
    return max(LEAST, math.ceil(round(ALL / (ALL - low), 6)))


def _is_sure(requests: Requests, low: float, needed: int) -> bool:
    """Whether the limit stays broken even if all that are still to come succeed."""
    return Requests(needed, requests.failed).success_rate < low
