"""From how many requests on a rate decides."""

import pytest

from fairlead.analysis import requests
from fairlead.analysis.requests import Requests


@pytest.mark.parametrize(
    ("failed", "total", "low", "least", "decides"),
    [
        (0, 9, 99, None, False),
        (0, 10, 99, None, True),
        (1, 11, 99, None, False),
        (1, 99, 99, None, False),
        (1, 100, 99, None, True),
        (2, 101, 99, None, True),
        (2, 11, 99, None, True),
        (5, 5, 99, None, True),
        (1, 1, 50, None, False),
        (1, 999, 99.9, None, False),
        (1, 1000, 99.9, None, True),
        (1, 3, 100, None, True),
        (1, 11, 99, 5, True),
        (0, 40, 99, 50, False),
        (0, 50, 99, 50, True),
        (1, 40, 99, 50, True),
    ],
)
def test_a_rate_decides_once_one_failure_alone_cannot_or_nothing_can_mend_it(
    failed: int, total: int, low: float, least: int | None, *, decides: bool
) -> None:
    then = requests.undecided(Requests(total, failed), low, least)

    assert (then is None) == decides


def test_what_is_no_rate_needs_requests_too() -> None:
    assert requests.undecided(Requests(9), None, None) == "9 of 10 requests"
    assert requests.undecided(Requests(10), None, None) is None
    assert requests.undecided(Requests(10), None, 40) == "10 of 40 requests"


@pytest.mark.parametrize(
    ("failed", "total", "low", "told"),
    [
        (1, 11, 99, "1 of 11 requests failed: 90.9 %, at least 99 % required"),
        (
            0,
            10,
            99,
            "0 of 10 requests failed: 100 %, at least 99 % required; so few prove only 74.1 %",
        ),
        (
            0,
            298,
            99,
            "0 of 298 requests failed: 100 %, at least 99 % required; so few prove only 98.9 %",
        ),
        (0, 299, 99, "0 of 299 requests failed: 100 %, at least 99 % required"),
        (0, 10, 50, "0 of 10 requests failed: 100 %, at least 50 % required"),
        (0, 10, 100, "0 of 10 requests failed: 100 %, at least 100 % required"),
        (104, 10_000, 99, "104 of 10000 requests failed: 98.9 %, at least 99 % required"),
        (2, 1500, 99.9, "2 of 1500 requests failed: 99.86 %, at least 99.9 % required"),
    ],
)
def test_the_sentence_has_both_counts_and_the_limit(
    failed: int, total: int, low: float, told: str
) -> None:
    assert requests.told(Requests(total, failed), low) == told
