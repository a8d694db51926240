"""What is observed of the world: pods of every slot, and the write the mesh shows."""

import datetime as dt
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pods:
    """One slot, the primary's, the canary's or the baseline's, as it stands."""

    revision: str
    desired: int
    ready: int
    """Pods of this revision that are ready; those of another one do not count."""

    known: int
    """Ready endpoints of this revision that the mesh has taken in."""

    order: int = 0
    """The highest order that was performed for this slot."""

    trouble: str = ""
    """What keeps pods from being ready or known, in the platform's words; empty if nothing.

    People read it, so it holds no count or time that changes with every observation.
    """


@dataclass(frozen=True, slots=True)
class ObservedRoute:
    """What the proxies really do: the number of our newest write they show, and the weight."""

    order: int
    weight: int
    drift: str = ""
    """What somebody else changed in our route; empty if nothing."""


UNMARKED = ObservedRoute(0, 0)
"""A route that is there, and that nobody of us ever wrote."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything at one moment."""

    at: dt.datetime
    primary: Pods | None = None
    canary: Pods | None = None
    route: ObservedRoute | None = None
    baseline: Pods | None = None

    @property
    def level(self) -> tuple[Pods | None, Pods | None, ObservedRoute | None, Pods | None]:
        """All but the time."""
        return self.primary, self.canary, self.route, self.baseline

    @property
    def order(self) -> int:
        """The highest order observed anywhere."""
        return max((part.order for part in self.level if part is not None), default=0)

    def same_as(self, other: "Observation | None") -> bool:
        """Whether nothing changed but the time."""
        return other is not None and self.level == other.level


NOTHING = Pods("", 0, 0, 0)


def stands(pods: Pods | None, revision: str, need: int) -> bool:
    """Whether so many pods of the revision are ready and known to the mesh."""
    return is_ready(pods, revision, need) and (pods or NOTHING).known >= need


def is_ready(pods: Pods | None, revision: str, need: int) -> bool:
    return pods is not None and pods.revision == revision and pods.ready >= max(1, need)


def with_trouble(said: str, pods: Pods | None) -> str:
    """What is waited for, and what the platform says about it."""
    return f"{said} ({pods.trouble})" if pods is not None and pods.trouble else said


def ready(pods: Pods | None, revision: str) -> int:
    return pods.ready if pods is not None and pods.revision == revision else 0
