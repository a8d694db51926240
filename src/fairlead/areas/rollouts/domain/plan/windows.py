"""When a rollout may take a step up: weekly windows in a time zone. A rollback needs none."""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairlead import errors
from fairlead.engine import recurrence

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEK = 8
"""Days to search ahead: the same weekday next week may be the next opening."""


@dataclass(frozen=True, slots=True)
class Window:
    """Open on these days from one time to another; past midnight where it ends before it begins."""

    days: tuple[str, ...] = DAYS
    begins: dt.time = dt.time(0)
    ends: dt.time = dt.time(0)
    zone: str = "UTC"

    def __post_init__(self) -> None:
        wrong = [day for day in self.days if day not in DAYS]
        if wrong or not self.days:
            raise errors.Rejected(
                f"not days of a week: {', '.join(wrong) or 'none'}", hint=f"use {', '.join(DAYS)}"
            )
        recurrence.zone(self.zone)


def next_opening(windows: Sequence[Window], now: dt.datetime) -> dt.datetime | None:
    """None if it is open now, or there are no windows; else when the first one opens."""
    if not windows:
        return None
    spans = [span for window in windows for span in _spans(window, now)]
    if any(begins <= now < ends for begins, ends in spans):
        return None
    return min(begins for begins, _ in spans if begins > now)


def _spans(window: Window, now: dt.datetime) -> Iterator[tuple[dt.datetime, dt.datetime]]:
    """The window on each day from yesterday to next week, as moments in UTC."""
    zone = recurrence.zone(window.zone)
    today = now.astimezone(zone).date()
    for ahead in range(-1, _WEEK):
        day = today + dt.timedelta(days=ahead)
        if DAYS[day.weekday()] not in window.days:
            continue
        last = day if window.ends > window.begins else day + dt.timedelta(days=1)
        begins = dt.datetime.combine(day, window.begins, zone).astimezone(dt.UTC)
        yield begins, dt.datetime.combine(last, window.ends, zone).astimezone(dt.UTC)
