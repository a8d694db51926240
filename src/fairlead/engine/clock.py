"""Time as an argument: the store's clock in production, a hand-wound one in tests.

Rows keep time as whole milliseconds since 1970 (UTC), the same on every store; machines
see an aware datetime. A step of this machine's time of day reaches neither: between two
answers of the store, time passes as the machine has been running (docs/decisions/0034).
"""

import asyncio
import contextlib
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

import structlog

Millis = int
_NOTABLE = timedelta(seconds=1)
_log = structlog.get_logger(__name__)


class Clock(Protocol):
    """Tells the time and waits for it."""

    def now(self) -> datetime: ...

    def steady(self) -> float:
        """Seconds that only ever pass, whatever is done to the time of day."""

    def stated(self) -> Millis | None:
        """The time to send along with a lease; None where the store looks at its own clock."""

    def follow(self, theirs: datetime, asked: float) -> None:
        """The store has this time, and was asked for it at that steady second."""

    async def wait(self, signal: asyncio.Event, until: datetime) -> None:
        """Return when the signal is set or the time has come, whichever is first."""


class SystemClock:
    """The store's time, carried on from its last answer by what never steps here."""

    def __init__(self) -> None:
        self._zero = time_of_day() - timedelta(seconds=running_seconds())
        """What time it was when the steady seconds began."""

    def now(self) -> datetime:
        return self._zero + timedelta(seconds=running_seconds())

    def steady(self) -> float:
        return running_seconds()

    def stated(self) -> None:
        return None

    def follow(self, theirs: datetime, asked: float) -> None:
        """Set right, by no more than is certain: the answer was made between asking and now."""
        latest = theirs + timedelta(milliseconds=1) - timedelta(seconds=asked)
        earliest = theirs - timedelta(seconds=running_seconds())
        step = max(earliest - self._zero, timedelta(0)) or min(latest - self._zero, timedelta(0))
        if abs(step) > _NOTABLE:
            _log.warning("clock_stepped", seconds=step.total_seconds())
        self._zero += step

    async def wait(self, signal: asyncio.Event, until: datetime) -> None:
        seconds = (until - self.now()).total_seconds()
        if signal.is_set() or seconds <= 0:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await signal.wait()


def time_of_day() -> datetime:
    """What this machine shows; people and time servers may step it."""
    return datetime.now(UTC)


# Counts through a suspended machine, as leases elsewhere do, and is the same for every process
# of one boot. Where there is none, the time of day has to do (see store/sqlite.py).
_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def running_seconds() -> float:
    """How long this machine has been running; never steps."""
    return time.monotonic() if _BOOT_TIME is None else time.clock_gettime(_BOOT_TIME)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_millis(moment: datetime) -> Millis:
    # Whole numbers only: floating point would lose a millisecond here and there.
    return (moment - _EPOCH) // _MILLISECOND


def to_millis_due(moment: datetime) -> Millis:
    """Rounded up: whoever is woken and looks at the time must not find it too early."""
    return -((_EPOCH - moment) // _MILLISECOND)


def from_millis(millis: Millis) -> datetime:
    return _EPOCH + _MILLISECOND * millis
