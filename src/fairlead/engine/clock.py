"""Time as an argument: the system's clock in production, a hand-wound one in tests.

Rows keep time as whole milliseconds since 1970 (UTC), the same on every store; machines
see an aware datetime.
"""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

Millis = int


class Clock(Protocol):
    """Tells the time and waits for it."""

    def now(self) -> datetime: ...

    async def wait(self, signal: asyncio.Event, until: datetime) -> None:
        """Return when the signal is set or the time has come, whichever is first."""


class SystemClock:
    """The machine's own clock, set right by the store's where the two differ."""

    def __init__(self) -> None:
        self._offset = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._offset

    def follow(self, theirs: Callable[[], datetime]) -> None:
        """Leases compare times of several machines, so all follow the store's clock."""
        self._offset = theirs() - datetime.now(UTC)

    async def wait(self, signal: asyncio.Event, until: datetime) -> None:
        seconds = (until - self.now()).total_seconds()
        if signal.is_set() or seconds <= 0:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await signal.wait()


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
