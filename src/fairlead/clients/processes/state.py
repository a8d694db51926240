"""What can be said of a supervised program at a moment."""

import enum
from dataclasses import dataclass


class Phase(enum.StrEnum):
    """Where a program is in its life."""

    STARTING = "starting"
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    # Ended by itself; the next start waits a little longer than the last.
    BACKING_OFF = "backing off"
    # The same, several times in a row: still tried, but nothing should wait for it.
    CRASH_LOOPING = "crash looping"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class Instance:
    """A program as it runs now."""

    name: str
    phase: Phase
    port: int
    pid: int | None
    restarts: int
    # Why it is not healthy; empty when it is.
    reason: str
    # Why it ended, or could not be started, last time; empty once it was healthy again.
    last_end: str = ""

    @property
    def why(self) -> str:
        """Why it is not healthy; of a new start alone nobody learns what is wrong."""
        if self.phase is Phase.STARTING and self.last_end:
            return f"{self.reason}; before: {self.last_end}"
        return self.reason
