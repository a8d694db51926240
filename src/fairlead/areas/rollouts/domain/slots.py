"""Where versions of one workload run beside each other."""

import enum
from dataclasses import dataclass


class Slot(enum.Enum):
    """The places where a version of the workload can run."""

    PRIMARY = "primary"
    CANARY = "canary"
    BASELINE = "baseline"
    """The stable version once more, as young as the canary and with as much to do."""


@dataclass(frozen=True, slots=True)
class SlotTraffic:
    """What the version in a slot did with its requests since the canary reached its weight."""

    slot: Slot
    requests: int
    failed: int
    p99_ms: float | None = None
    """None where there was no request to time."""
