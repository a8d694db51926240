"""How times are written in sentences: `12:03`, `2026-03-01 12:03 UTC`, `1 h 30 min`."""

import datetime as dt

_LONG = dt.timedelta(minutes=2)
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def clock(at: dt.datetime) -> str:
    return at.strftime("%H:%M")


def moment(at: dt.datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M %Z").strip()


def until(at: dt.datetime, since: dt.datetime) -> str:
    """The end of what began at `since`: its clock alone where that is the same day.

    With seconds where it lasts no two minutes: `since 12:03, until 12:03` tells nobody when.
    """
    if at.date() != since.date():
        return moment(at)
    return clock(at) if at - since >= _LONG else f"{at:%H:%M:%S}"


def span(length: dt.timedelta) -> str:
    """A length of time with its units; below a second in milliseconds."""
    if length < dt.timedelta(seconds=1):
        return f"{length // dt.timedelta(milliseconds=1)} ms"
    rest = length // dt.timedelta(seconds=1)
    parts = []
    for seconds, unit in _UNITS:
        count, rest = divmod(rest, seconds)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts)
