"""Times that come again: a line of cron in a time zone. Pure arithmetic, for machines with timers.

Clocks that are set forward or back are taken as RFC 5545 does: a local time that a day does not
have means the one that its clock would have shown (02:30 is 03:30), one that it has twice means
the first. A line for every hour goes by hours as they pass: it has both.
"""

import datetime as dt
import re
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass

from fairlead import errors

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_FIELDS: tuple[tuple[str, int, int, list[str]], ...] = (
    ("minute", 0, 59, []),
    ("hour", 0, 23, []),
    ("day of month", 1, 31, []),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
_HORIZON = 366 * 9
"""Days: the 29th of February comes again after eight years at most."""

_LONGEST = 200
_PART = re.compile(r"(\*|[a-z]{3}|[0-9]{1,2})(?:-([a-z]{3}|[0-9]{1,2}))?(?:/([0-9]{1,2}))?")
_DAY = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """What a line of cron means in a time zone."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Both kinds of day are limited: then one of them is enough, as in every cron."""

    zone: dt.tzinfo

    def after(self, moment: dt.datetime) -> dt.datetime | None:
        """The first time after this one; None where there is none."""
        day = moment.astimezone(self.zone).date() - _DAY
        for _ in range(_HORIZON):
            if found := [each for each in self._times(day) if each > moment]:
                return min(found)
            day += _DAY
        return None

    def between(self, after: dt.datetime, until: dt.datetime, most: int) -> list[dt.datetime]:
        """The newest times after the one and until the other, the oldest first."""
        found = set[dt.datetime]()
        day, first = (each.astimezone(self.zone).date() for each in (until + _DAY, after - _DAY))
        while day >= first and len(found) < most:
            found |= {each for each in self._times(day) if after < each <= until}
            day -= _DAY
        return sorted(found)[-most:]

    def _times(self, day: dt.date) -> Iterator[dt.datetime]:
        if not self._falls_on(day):
            return
        for hour in self.hours:
            for minute in self.minutes:
                local = dt.datetime.combine(day, dt.time(hour, minute), self.zone)
                first, second = local.astimezone(dt.UTC), local.replace(fold=1).astimezone(dt.UTC)
                yield first
                if second > first and len(self.hours) == _FIELDS[1][2] + 1:
                    yield second

    def _falls_on(self, day: dt.date) -> bool:
        if day.month not in self.months:
            return False
        by_month, by_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_month or by_week if self.either_day else by_month and by_week


def parse(cron: str, place: str) -> Recurrence:
    """Rejected where it makes no sense, or never comes."""
    words = cron.lower().split()
    if len(words) != len(_FIELDS) or len(cron) > _LONGEST:
        raise errors.Rejected(
            f"not five fields: {cron[:80]}",
            hint="write minute, hour, day of month, month and day of week: 30 2 * * mon-fri",
        )
    minutes, hours, days, months, weekdays = map(_field, words, range(len(_FIELDS)))
    found = Recurrence(
        tuple(sorted(minutes)),
        tuple(sorted(hours)),
        days,
        months,
        frozenset(each % 7 for each in weekdays),
        not words[2].startswith("*") and not words[4].startswith("*"),
        zone(place),
    )
    if found.after(dt.datetime(2000, 1, 1, tzinfo=dt.UTC)) is None:
        raise errors.Rejected(
            f"this time never comes: {cron}", hint="choose a day that months have"
        )
    return found


def zone(name: str) -> dt.tzinfo:
    """Rejected where the system knows none of that name; UTC it need not know."""
    if name == "UTC":
        return dt.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise errors.Rejected(
            f"no such time zone: {name[:80]}", hint="use a name such as Europe/Berlin, or UTC"
        ) from error


def _field(text: str, place: int) -> frozenset[int]:
    name, least, most, _ = _FIELDS[place]
    found = set[int]()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        low, high, step = match.groups() if match else ("", None, None)
        start = least if low == "*" else _number(low, place)
        end = most if low == "*" or (step and not high) else _number(high or low, place)
        every = int(step or 1)
        if start is None or end is None or start > end or every < 1 or (low == "*" and high):
            raise errors.Rejected(
                f"not a {name}: {text[:40]}",
                hint=f"use *, numbers from {least} to {most}, ranges as 1-5, lists, steps as */2",
            )
        found |= {*range(start, end + 1, every)}
    return frozenset(found)


def _number(word: str, place: int) -> int | None:
    _, least, most, names = _FIELDS[place]
    if word in names:
        return names.index(word) + least
    return int(word) if word.isdecimal() and least <= int(word) <= most else None
