"""What is said after the story: every claim checked, why version 3 went home, what comes next."""

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus

from fairlead._demo.load import Tally
from fairlead.cli.demo import story

PROMOTED = "Promoted"
TAKEN_BACK = "TakenBack"


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim, and what speaks against it; nothing does when it holds."""

    claim: str
    against: str = ""


def findings(told: story.Told) -> Iterator[Finding]:
    steps, endings = told.steps, told.endings
    good, bad = endings.get("v2", ("", "")), endings.get("v3", ("", ""))
    went = steps.get("v2", [])
    fine = (went, good[0]) == (story.SHARES, PROMOTED)
    yield Finding(
        "version 2 took 10, 50, then 100 % and was promoted",
        "" if fine else f"it took {went} and ended {good[0] or 'never'}: {good[1]}",
    )
    went = steps.get("v3", [])
    home = (went, bad[0]) == ([story.BAD_SHARE], TAKEN_BACK)
    yield Finding(
        f"version 3 was taken back at {story.BAD_SHARE} % by itself",
        "" if home else f"it took {went} and ended {bad[0] or 'never'}: {bad[1]}",
    )
    lost = told.tally.lost
    yield Finding(
        f"of {told.tally.sent:,} requests none was lost on the way",
        f"{lost}: {dict(told.tally.broken)}" if lost else "",
    )
    failed, others = _failures(told.tally), _failures(told.tally) - _failures(told.tally, "v3")
    yield Finding(
        f"{failed:,} failed, each answered so by version 3 itself",
        f"{others} by others" if others else "",
    )


def why(told: story.Told) -> Iterator[str]:
    """Why version 3 went home, in the words of the check that failed."""
    ending, reason = told.endings.get("v3", ("", ""))
    if ending == TAKEN_BACK:
        yield "Why version 3 went home:"
        yield f"  {reason}"
        answers = told.tally.of("v3")
        yield (
            f"  It was there for {told.taken_back_after:.1f} s and {answers:,} of"
            f" {told.tally.sent:,} requests; nobody had to watch."
        )


def _failures(tally: Tally, version: str | None = None) -> int:
    bad = HTTPStatus.INTERNAL_SERVER_ERROR
    return sum(
        n
        for (whose, status), n in tally.answers.items()
        if status >= bad and version in (None, whose)
    )
