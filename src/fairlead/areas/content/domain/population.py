"""Who gets the canary: a share of the population, chosen by a hash of each identity.

Nothing is drawn: the same identity gets the same place on every replica and after a restart.
Whoever is inside a share is inside every higher one, because the share is compared with that place.
"""

from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import NewType

import mmh3

from fairlead import errors

Share = NewType("Share", int)
"""Of a population, in hundredths of a percent: 1 is 0.01 %, 10,000 are all."""

NOBODY = Share(0)
EVERYBODY = Share(10_000)
_BUCKETS = 100
_HINT = "use a percentage from 0 to 100 with at most two decimals, such as 12.5"


class Channel(StrEnum):
    """Which of the two versions somebody gets."""

    STABLE = "stable"
    CANARY = "canary"


@dataclass(frozen=True, slots=True)
class Population:
    """Everybody whom a release may reach, and how many of them it does."""

    salt: str
    """One per release, so that not the same entities are first every time."""

    share: Share = NOBODY
    canary: str = ""
    """The version that it is a share of; empty where nobody said."""

    def of(self, canary: str) -> "Population":
        """As whoever has that canary must take it: a share of another version is nobody's here."""
        return self if self.canary in {"", canary} else replace(self, share=NOBODY)

    def channel(self, identity: str) -> Channel:
        """Without an identity, stable: chance would give it another answer each time."""
        if not identity or place(self.salt, identity) > self.share:
            return Channel.STABLE
        return Channel.CANARY


def place(salt: str, identity: str) -> int:
    """From 1 to 10,000: the smallest share that holds this identity."""
    return _hash(salt, identity) % EVERYBODY + 1


def bucket(group: str, identity: str) -> int:
    """From 1 to 100, by Unleash's rule for gradual rollouts."""
    return _hash(group, identity) % _BUCKETS + 1


def enabled(found: int, percent: Decimal) -> bool:
    """Whether Unleash's rule lets a bucket in."""
    return 0 < percent >= found


def parse_share(text: str) -> Share:
    """A percentage such as `12.5`; Rejected where it is finer than 0.01 or outside 0 to 100."""
    try:
        hundredths = Decimal(text) * 100
        # In this order: a number of a million digits is no integer within any patience.
        fits = NOBODY <= hundredths <= EVERYBODY and hundredths == int(hundredths)
    except ArithmeticError as error:
        raise errors.Rejected(f"not a share: {text[:40]}", hint=_HINT) from error
    if not fits:
        raise errors.Rejected(f"not a share: {text[:40]}", hint=_HINT)
    return Share(int(hundredths))


def shown_share(share: Share) -> str:
    """As people write it: `12.5`, without a sign of percent."""
    whole, hundredths = divmod(share, 100)
    return f"{whole}.{hundredths:02}".rstrip("0").rstrip(".") if hundredths else str(whole)


def _hash(group: str, identity: str) -> int:
    # Signed, as mmh3 has it by default, the remainder of a negative hash is another bucket. What is
    # no Unicode (half a surrogate pair in a header) still has one place.
    key = f"{group}:{identity}".encode("utf-8", "surrogatepass")
    return mmh3.hash(key, 0, signed=False)
