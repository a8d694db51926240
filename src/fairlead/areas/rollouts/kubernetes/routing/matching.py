"""Matches of a route as conditions on headers, which is all that meshes have in common."""

import re
from typing import NamedTuple

from fairlead.traffic.routes import Affinity, How, Match, Where


class Condition(NamedTuple):
    """A request header and what it must be; a regular expression fits the whole value."""

    header: str
    how: How
    value: str


def condition(match: Match) -> Condition:
    """A match as a condition; a cookie is part of a header that holds all of them."""
    if match.where is Where.HEADER:
        return Condition(match.name.lower(), match.how, match.value)
    match match.how:
        case How.EXACT:
            value = re.escape(match.value)
        case How.PREFIX:
            value = f"{re.escape(match.value)}[^;]*"
        case How.REGEX:
            value = f"(?:{match.value})"
    return Condition("cookie", How.REGEX, rf"(.*;\s*)?{re.escape(match.name)}={value}(;.*)?")


def prefix(value: str) -> str:
    """A regular expression for whatever begins like this."""
    return f"{re.escape(value)}.*"


def sticky(affinity: Affinity, token: str) -> Condition:
    """Who was with the canary before."""
    return condition(Match(Where.COOKIE, affinity.cookie, token))


def set_cookie(affinity: Affinity, token: str) -> str:
    """The header by which the canary's answers keep a user with it."""
    return f"{affinity.cookie}={token}; Path=/; Max-Age={affinity.max_age}"
