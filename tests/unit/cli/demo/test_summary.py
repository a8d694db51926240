"""What the demo claims is checked: a story that went otherwise is told as such."""

from collections import Counter
from dataclasses import replace

import pytest

from fairlead.cli.demo import summary
from fairlead.cli.demo.load import Tally
from fairlead.cli.demo.story import StoryResult

WHY = "failed at 10 %: success: success rate 76 %, limit 99 %"
GOOD = StoryResult(
    tally=Tally(Counter({("v1", 200): 900, ("v2", 200): 80, ("v3", 200): 15, ("v3", 500): 5})),
    seconds=40,
    steps={"v2": [10, 50, 100], "v3": [10]},
    endings={"v2": ("Promoted", ""), "v3": ("RolledBack", WHY)},
    rolled_back_after=3,
    migrated_first=True,
    impacts={"v2": "BEFORE"},
)


def against(told: StoryResult) -> list[str]:
    return [each.against for each in summary.findings(told) if each.against]


def test_a_story_that_went_well_has_nothing_against_it() -> None:
    claims = [each.claim for each in summary.findings(GOOD)]

    assert against(GOOD) == []
    assert "no request lost of 1,000" in claims
    assert "5 requests failed, all of them answered by version 3" in claims


def test_the_summary_says_why_version_3_was_rolled_back_and_what_it_cost() -> None:
    told = "\n".join(summary.why(GOOD))

    assert WHY in told
    assert "3.0 s and answered 20 of 1,000 requests" in told


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (replace(GOOD, impacts={"v2": "DOWNTIME"}), "class DOWNTIME"),
        (replace(GOOD, migrated_first=False), "class BEFORE"),
        (replace(GOOD, steps={"v2": [10], "v3": [10]}), "weights [10], ended Promoted"),
        (replace(GOOD, endings={"v2": ("Promoted", "")}), "weights [10], ended never"),
        (replace(GOOD, steps={"v2": [10, 50, 100], "v3": [10, 50]}), "weights [10, 50], ended"),
        (
            replace(GOOD, tally=Tally(broken=Counter({"ServerDisconnectedError": 2}))),
            "2: {'ServerDisconnectedError': 2}",
        ),
        (replace(GOOD, tally=Tally(Counter({("v1", 503): 4}))), "4 by others"),
    ],
)
def test_what_went_otherwise_is_said(told: StoryResult, said: str) -> None:
    assert against(told)[0].startswith(said)
