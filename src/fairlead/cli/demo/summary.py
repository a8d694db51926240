"""What the demo prints at its end: each claim checked, and why version 3 was rolled back."""

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus

from fairlead.cli.demo import story
from fairlead.cli.demo.load import Tally

PROMOTED = "Promoted"
ROLLED_BACK = "RolledBack"


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim, and what speaks against it; nothing does when it holds."""

    claim: str
    against: str = ""


def findings(told: story.StoryResult) -> Iterator[Finding]:
    steps, endings = told.steps, told.endings
    impact = told.impacts.get("v2", "none")
    yield Finding(
        "version 2's migration needed no downtime, and had run before its first request",
        "" if told.migrated_first and impact == "BEFORE" else f"class {impact}",
    )
    good, bad = endings.get("v2", ("", "")), endings.get("v3", ("", ""))
    went = steps.get("v2", [])
    fine = (went, good[0]) == (story.SHARES, PROMOTED)
    yield Finding(
        "version 2 got 10 %, 50 %, then 100 % and was promoted",
        "" if fine else f"weights {went}, ended {good[0] or 'never'}: {good[1]}",
    )
    went = steps.get("v3", [])
    rolled_back = (went, bad[0]) == ([story.BAD_SHARE], ROLLED_BACK)
    yield Finding(
        f"version 3 was rolled back automatically at {story.BAD_SHARE} %",
        "" if rolled_back else f"weights {went}, ended {bad[0] or 'never'}: {bad[1]}",
    )
    lost = told.tally.lost
    yield Finding(
        f"no request lost of {told.tally.sent:,}",
        f"{lost}: {dict(told.tally.broken)}" if lost else "",
    )
    failed, others = _failures(told.tally), _failures(told.tally) - _failures(told.tally, "v3")
    yield Finding(
        f"{failed:,} requests failed, all of them answered by version 3",
        f"{others} by others" if others else "",
    )


def why(told: story.StoryResult) -> Iterator[str]:
    """Why version 3 was rolled back, in the words of the check that failed."""
    ending, reason = told.endings.get("v3", ("", ""))
    if ending == ROLLED_BACK:
        yield "Why version 3 was rolled back:"
        yield f"  {reason}"
        answers = told.tally.of("v3")
        yield (
            f"  It served traffic for {told.rolled_back_after:.1f} s and answered {answers:,} of"
            f" {told.tally.sent:,} requests; nobody had to step in."
        )


def _failures(tally: Tally, version: str | None = None) -> int:
    bad = HTTPStatus.INTERNAL_SERVER_ERROR
    return sum(
        n
        for (whose, status), n in tally.answers.items()
        if status >= bad and version in (None, whose)
    )
