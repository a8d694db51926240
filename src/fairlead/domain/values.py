"""Values that several areas share."""

from typing import NewType

from fairlead import errors

Percent = NewType("Percent", int)
NONE = Percent(0)
ALL = Percent(100)


def percent(value: int) -> Percent:
    """A whole share of 100, or Rejected."""
    if isinstance(value, bool) or not 0 <= value <= ALL:
        raise errors.Rejected(f"share outside 0-100: {value}", hint="use whole percents")
    return Percent(value)
