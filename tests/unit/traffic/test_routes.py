"""Splits sum to 100, and a route never reaches a canary that has not joined."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead import errors
from fairlead.traffic import routes, weights
from fairlead.traffic.routes import Affinity, How, Match, Route, Where
from fairlead.values import Percent, percent


@given(st.integers(0, 50), st.integers(0, 50))
def test_a_split_always_sums_to_100(weight: int, beside: int) -> None:
    split = weights.giving(weight, beside)

    assert split.primary + split.canary + split.baseline == 100
    assert (split.canary, split.baseline) == (weight, beside)


@pytest.mark.parametrize("weight", [-1, 101, 1000, True])
def test_a_percent_outside_0_to_100_is_refused(weight: int) -> None:
    with pytest.raises(errors.Rejected, match="percent outside 0-100"):
        percent(weight)


def test_weights_that_do_not_sum_to_100_are_refused() -> None:
    with pytest.raises(errors.Rejected, match="do not sum to 100: 30, 10 and 0"):
        weights.Split(Percent(30), Percent(10))


@pytest.mark.parametrize(
    ("given_", "shown"),
    [((30, 10), (75, 25)), ((1, 1, 1), (34, 33, 33)), ((0, 5), (0, 100)), ((90, 10), (90, 10))],
)
def test_hand_written_weights_are_read_as_a_mesh_reads_them(
    given_: tuple[int, ...], shown: tuple[int, ...]
) -> None:
    assert weights.in_percent(given_) == shown


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=5).filter(lambda some: sum(some) > 0))
def test_percents_of_any_weights_sum_to_100(given_: list[int]) -> None:
    assert sum(weights.in_percent(given_)) == 100


@pytest.mark.parametrize("nothing", [[0, 0], [-5, 10]])
def test_weights_that_share_nothing_out_are_refused(nothing: list[int]) -> None:
    with pytest.raises(errors.Rejected, match="weights that share nothing out"):
        weights.in_percent(nothing)


def test_a_route_reaches_its_canary_only_after_it_joined() -> None:
    with pytest.raises(errors.Rejected, match="has not joined"):
        Route(weights.giving(1))
    with pytest.raises(errors.Rejected, match="has not joined"):
        Route(mirror=Percent(5))

    assert not routes.STANDBY.reaches_canary
    assert routes.only_split(1).reaches_canary


def test_a_route_reaches_its_baseline_only_after_it_joined() -> None:
    compared = Route(joined=True, compared=True)
    with pytest.raises(errors.Rejected, match="baseline which has not joined"):
        Route(weights.giving(5, 5), joined=True)
    with pytest.raises(errors.Rejected, match="baseline which has not joined"):
        Route(compared=True)

    assert routes.STANDBY.holds(routes.PRIMARY_ONLY)
    assert not routes.STANDBY.holds(compared)
    assert routes.STANDBY.holding(compared) == compared
    assert Route(weights.giving(5, 5), True, compared=True).only(7) == Route(
        weights.giving(7), joined=True, compared=True
    )


def test_more_weight_mirror_or_matches_is_a_rise_and_less_is_not() -> None:
    beta = Route(joined=True, matches=(Match(Where.COOKIE, "beta", "1"),))
    mirrored = Route(joined=True, mirror=Percent(5))

    assert routes.rises(routes.STANDBY, routes.only_split(5))
    assert routes.rises(routes.STANDBY, beta)
    assert routes.rises(routes.STANDBY, mirrored)
    assert not routes.rises(routes.only_split(5), routes.STANDBY)
    assert not routes.rises(routes.PRIMARY_ONLY, routes.STANDBY)
    assert not routes.rises(beta, beta)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Match(Where.HEADER, "bad name", "1"), "not the name of a header"),
        (lambda: Match(Where.HEADER, "x", "(", How.REGEX), "not a regular expression"),
        (lambda: Affinity("a b"), "not a cookie"),
        (lambda: Affinity("a", 0), "not a cookie"),
    ],
)
def test_rules_no_proxy_would_take_are_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(errors.Rejected, match=message):
        make()


@pytest.mark.parametrize(
    ("hostile", "said"),
    [
        ("a" * 257, "longer than 256 characters"),
        ("a{99999999999999999999}", "not a regular expression"),
        ("(" * 128 + ")" * 127, "not a regular expression"),
        ("((a{100}){100}){100}", "repeats more than 1000 times"),
        ("a{1001}", "repeats more than 1000 times"),
        ("a{2,1001}", "repeats more than 1000 times"),
        (r"(a)\1", r"proxies do not support: \\1"),
        ("(?=a)b", r"proxies do not support: \(\?="),
        ("(?<!a)b", r"proxies do not support: \(\?<!"),
        ("(?P<x>a)(?P=x)", r"proxies do not support: \(\?P="),
        ("(?>a)b", r"proxies do not support: \(\?>"),
        ("(a*)*+", r"proxies do not support: \*\+"),
        ("a{2}+", r"proxies do not support: a?\{2\}\+"),
    ],
)
def test_a_regular_expression_that_a_proxy_would_refuse_is_refused_first(
    hostile: str, said: str
) -> None:
    with pytest.raises(errors.Rejected, match=said):
        Match(Where.HEADER, "x-user", hostile, How.REGEX)


@pytest.mark.parametrize(
    "usual",
    [
        "(beta|alpha)-[0-9]+",
        r"[\]+]+",
        r"\\1",
        "[*+]+",
        "a{1,1000}",
        "(?i)yes",
        "(?P<n>a)b*?",
        "[^]+]",
    ],
)
def test_what_proxies_read_is_taken(usual: str) -> None:
    assert Match(Where.COOKIE, "user", usual, How.REGEX).value == usual


def test_a_cookie_that_stays_for_ever_is_refused() -> None:
    with pytest.raises(errors.Rejected, match="longer than 366 d"):
        Affinity("user", 10**12)
