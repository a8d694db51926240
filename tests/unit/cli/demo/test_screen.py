"""The demo's picture: what a check found is told whole, without how often it was asked."""

import io

import pytest
from rich import console as consoles

from fairlead.areas.rollouts.detail import CheckSheet
from fairlead.cli.demo import screen
from fairlead.cli.demo.frames import Frame


@pytest.mark.parametrize(
    ("reason", "last", "told"),
    [
        (
            "3 measurements; p99 latency 23 ms, limit 1000 ms; of 32 requests",
            "Successful",
            "good so far p99 latency 23 ms, limit 1000 ms; of 32 requests",
        ),
        ("no data yet; see Envoy", "", "measuring no data yet; see Envoy"),
    ],
)
def test_a_check_is_told_with_its_number_in_the_words_of_the_page(
    reason: str, last: str, told: str
) -> None:
    check = CheckSheet("latency", "", "at most 1000", "Running", reason, last, measured=3)
    paper = io.StringIO()

    picture = screen._picture(Frame("v2", True, (), (check,), 5.0), wide=True)
    consoles.Console(file=paper, width=150).print(picture)

    assert told in " ".join(paper.getvalue().split())
