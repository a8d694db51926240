"""What both slots of a rollout did with their requests, moment by moment, for those who watch."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.web.services import Service


@dataclass(frozen=True, slots=True)
class Point:
    """One slot's requests since the point before."""

    at: dt.datetime
    slot: Slot
    revision: str
    weight: int
    """The weight that the proxies showed at that moment."""

    requests: int
    failed: int
    p50_ms: float | None = None
    p99_ms: float | None = None
    """None where there was no request to time."""

    @property
    def success(self) -> float | None:
        """In percent; None without a request."""
        return 100 * (1 - self.failed / self.requests) if self.requests else None


class Numbers(Protocol):
    """Who remembers them, for some minutes."""

    def recent(self, rollout: str) -> Sequence[Point]:
        """The oldest first; empty for one that nobody measures."""
        ...


TRAFFIC_STATS: Service[Numbers] = Service("traffic stats")
