"""Cookies are read from the header that holds all of them."""

import re

import pytest

from fairlead.areas.rollouts.kubernetes.routing import matching
from fairlead.traffic.routes import Affinity, How, Match, Where


def test_a_header_is_asked_for_in_small_letters() -> None:
    match = Match(Where.HEADER, "X-Beta", "yes")

    assert matching.condition(match) == ("x-beta", How.EXACT, "yes")


@pytest.mark.parametrize(
    ("how", "value", "header", "fits"),
    [
        (How.EXACT, "always", "canary=always", True),
        (How.EXACT, "always", "a=1; canary=always; b=2", True),
        (How.EXACT, "always", "a=1;canary=always", True),
        (How.EXACT, "always", "canary=never", False),
        (How.EXACT, "always", "canary=always-not", False),
        (How.EXACT, "always", "not-canary=always", False),
        (How.EXACT, "a.b", "canary=axb", False),
        (How.PREFIX, "al", "canary=always; b=2", True),
        (How.PREFIX, "al", "canary=never; b=al", False),
        (How.REGEX, "a|b", "canary=b", True),
        (How.REGEX, "a|b", "canary=c; x=b", False),
    ],
)
def test_a_cookie_is_found_among_others(how: How, value: str, header: str, fits: bool) -> None:  # noqa: FBT001 - a column of the table
    name, kind, pattern = matching.condition(Match(Where.COOKIE, "canary", value, how))

    assert (name, kind) == ("cookie", How.REGEX)
    assert bool(re.fullmatch(pattern, header)) is fits


def test_whoever_got_the_cookie_is_found_by_it() -> None:
    affinity = Affinity("stay", max_age=60)
    given = matching.set_cookie(affinity, "r7")

    sent = given.partition(";")[0]

    assert given == "stay=r7; Path=/; Max-Age=60"
    assert re.fullmatch(matching.sticky(affinity, "r7").value, sent)
    assert not re.fullmatch(matching.sticky(affinity, "r8").value, sent)


def test_a_prefix_is_taken_literally() -> None:
    assert re.fullmatch(matching.prefix("a.b"), "a.bc")
    assert not re.fullmatch(matching.prefix("a.b"), "axbc")
