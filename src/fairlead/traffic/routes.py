"""A route: the split, and the rules beside it (matches, mirror, stickiness).

A route also says whether the proxy must hold the canary's backend. A proxy that learns of a
backend in the same breath as its first weight, or forgets it with its last, loses requests; so
the canary joins at weight 0 and leaves at weight 0, each in a write of its own.
"""

import enum
import re
from dataclasses import dataclass, replace

from fairlead import errors
from fairlead.traffic.weights import ALL_TO_PRIMARY, Split, giving
from fairlead.values import ALL, LONGEST, NONE, Percent, percent

_LONGEST_REGEX = 256
_MOST_REPEATS = 1000
# What Python's expressions have and RE2's do not, which Envoy and the meshes read.
_BACKTRACKS = re.compile(
    r"(?P<odd>\\[1-9Z]|\(\?(?:[=!>#(]|<[=!]|P[=>])|(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\+)"
    r"|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?:[0-9]*,)?(?P<most>[0-9]+)\}|.",
    re.DOTALL,
)
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")


class Where(enum.Enum):
    """The part of a request that a match reads."""

    HEADER = "header"
    COOKIE = "cookie"


class How(enum.Enum):
    """How it reads it."""

    EXACT = "exact"
    PREFIX = "prefix"
    REGEX = "regex"


@dataclass(frozen=True, slots=True)
class Match:
    """Requests that carry this go to the canary, whatever the split says."""

    where: Where
    name: str
    value: str
    how: How = How.EXACT

    def __post_init__(self) -> None:
        if not _TOKEN.fullmatch(self.name):
            raise errors.Rejected(
                f"not the name of a {self.where.value}: {self.name[:80]!r}",
                hint="use letters, digits and dashes",
            )
        if self.how is How.REGEX:
            _check_regex(self.value)


@dataclass(frozen=True, slots=True)
class Affinity:
    """Whoever met the canary once stays with it, by a cookie, for so many seconds."""

    cookie: str
    max_age: int = 86_400

    def __post_init__(self) -> None:
        if self.max_age > LONGEST.total_seconds():
            raise errors.Rejected(
                f"cookie kept longer than {LONGEST.days} d: {self.max_age} s",
                hint=f"use {LONGEST.days}d or less",
            )
        if not _TOKEN.fullmatch(self.cookie) or self.max_age < 1:
            raise errors.Rejected(
                f"not a cookie with an age: {self.cookie[:80]!r} for {self.max_age} s",
                hint="use a name of letters, digits and dashes, and at least 1 second",
            )


@dataclass(frozen=True, slots=True)
class Route:
    """How requests go, as one write."""

    split: Split = ALL_TO_PRIMARY
    joined: bool = False
    """The proxy holds the canary's backend, even at weight 0."""

    compared: bool = False
    """The proxy holds the baseline's backend as well, even at weight 0."""

    matches: tuple[Match, ...] = ()
    mirror: Percent = NONE
    affinity: Affinity | None = None

    def __post_init__(self) -> None:
        percent(self.mirror)
        if not self.joined and (self.reaches_canary or self.affinity):
            raise errors.Rejected(
                "a route that reaches a canary which has not joined",
                hint="let the canary join at weight 0 first",
            )
        if self.compared > self.joined or (self.split.baseline and not self.compared):
            raise errors.Rejected(
                "a route that reaches a baseline which has not joined",
                hint="let the baseline join at weight 0 first, with the canary",
            )

    @property
    def weight(self) -> Percent:
        return self.split.canary

    @property
    def reaches_canary(self) -> bool:
        """Whether any request, or a copy of one, can meet the canary."""
        return bool(self.split.canary or self.matches or self.mirror)

    def only(self, weight: int) -> "Route":
        """This weight for the canary and no other rule; whoever has joined stays joined."""
        return Route(giving(weight), joined=True, compared=self.compared)

    def holding(self, other: "Route") -> "Route":
        """As it is, but with every backend joined that the other one holds."""
        compared = self.compared or other.compared
        return replace(self, joined=self.joined or other.joined, compared=compared)

    def holds(self, other: "Route") -> bool:
        """Whether every backend has joined that the other one holds."""
        return self.joined >= other.joined and self.compared >= other.compared


PRIMARY_ONLY = Route()
STANDBY = Route(joined=True)


def only_split(weight: int) -> Route:
    """A weight and no other rule; the canary stays joined."""
    return STANDBY.only(weight)


def rises(before: Route, after: Route) -> bool:
    """Whether the canary gets to see more than before."""
    return (
        after.weight > before.weight
        or after.mirror > before.mirror
        or (after.matches not in ((), before.matches) and before.weight < ALL)
    )


def _check_regex(text: str) -> None:
    """Sound, short, and of the kind that proxies match in linear time; else Rejected."""
    if len(text) > _LONGEST_REGEX:
        raise errors.Rejected(
            f"regular expression longer than {_LONGEST_REGEX} characters: {len(text)}",
            hint="match a prefix, or a header that says it in fewer words",
        )
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise errors.Rejected(
            f"not a regular expression ({error}): {text[:80]}",
            hint="escape brackets and stars that are meant as they stand",
        ) from error
    repeats = 1
    for found in _BACKTRACKS.finditer(text):
        if found["odd"]:
            raise errors.Rejected(
                f"regular expression with a part that proxies do not support: {found['odd']}",
                hint="write it without lookaround, back-references and possessive repeats (RE2)",
            )
        # Nested ones multiply; those side by side are counted so too, which few will notice.
        repeats *= max(1, int(found["most"] or 1))
    if repeats > _MOST_REPEATS:
        raise errors.Rejected(
            f"regular expression repeats more than {_MOST_REPEATS} times: {text[:80]}",
            hint="use * or + where the number does not matter",
        )
