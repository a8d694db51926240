"""How a canary's share of the population grows, and what is asked on the way."""

import datetime as dt
import itertools
from dataclasses import dataclass

from fairlead import errors
from fairlead.areas.content.domain.population import EVERYBODY, NOBODY, Share, shown_share
from fairlead.checks.spec import Check, When
from fairlead.values import check_span

POLL_INTERVAL = dt.timedelta(hours=2)
DEADLINE = dt.timedelta(minutes=10)
_MOST_STEPS = 100


@dataclass(frozen=True, slots=True)
class Step:
    """One share, and how long it holds at least."""

    share: Share
    bake: dt.timedelta
    approve: bool = False
    """Whether a person says that it goes on after this step."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The way from nobody to a decision."""

    steps: tuple[Step, ...]
    poll_interval: dt.timedelta = POLL_INTERVAL
    """How long a client may wait before it asks again: whoever bakes for less judges those who
    have not even seen the canary."""

    checks: tuple[Check, ...] = ()
    """Without any, a person analyses what came back, and decides."""

    deadline: dt.timedelta = DEADLINE
    """By when new instances must be ready."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.steps) <= _MOST_STEPS:
            hint = f"use 1 to {_MOST_STEPS} steps"
            raise errors.Rejected(f"plan with {len(self.steps)} steps", hint=hint)
        for step in self.steps:
            self._check_step(step)
        for one, next_ in itertools.pairwise(self.steps):
            if next_.share <= one.share:
                told = f"{shown_share(one.share)} %, then {shown_share(next_.share)} %"
                raise errors.Rejected(f"share does not rise: {told}", hint="raise it in each step")
        names = [check.name for check in self.checks]
        if len({*names}) < len(names):
            raise errors.Rejected("two checks of one name", hint="name each after what it watches")
        if any(check.when is When.START for check in self.checks):
            raise errors.Rejected("check before the start", hint="use when: step or promotion")
        if self.deadline <= dt.timedelta():
            raise errors.Rejected("deadline not above 0 s", hint="use 10m")
        check_span(self.deadline, "deadline")

    def at(self, step: int) -> tuple[Check, ...]:
        """The checks of one step."""
        last = step == len(self.steps) - 1
        wanted = {When.STEP, When.PROMOTION} if last else {When.STEP}
        return tuple(check for check in self.checks if check.when in wanted)

    def asks_person(self, step: int) -> bool:
        """Whether a person has the word after this step: the last one needs some analysis."""
        last = step == len(self.steps) - 1
        return self.steps[step].approve or (last and not any(not c.dry_run for c in self.at(step)))

    def _check_step(self, step: Step) -> None:
        if not NOBODY < step.share <= EVERYBODY:
            hint = "use more than 0 and at most 100 %"
            raise errors.Rejected(f"share of a step: {shown_share(step.share)} %", hint=hint)
        if step.bake < self.poll_interval:
            raise errors.Rejected(
                f"bake shorter than clients wait between two polls: {_seconds(step.bake)},"
                f" they wait {_seconds(self.poll_interval)}",
                hint="bake for at least the poll interval",
            )
        check_span(step.bake, "bake")


def linear(by: Share, every: dt.timedelta, to: Share = EVERYBODY) -> tuple[Step, ...]:
    """The same share more each time: 20, 40, 60, 80, 100."""
    shares = range(by, to, by) if by > NOBODY else ()
    return _grown([*shares], every, to)


def exponential(
    first: Share, factor: int, every: dt.timedelta, to: Share = EVERYBODY
) -> tuple[Step, ...]:
    """So many times the share each time: 1, 2, 4, 8, …, 100."""
    if factor <= 1:
        raise errors.Rejected(f"factor not above 1: {factor}", hint="use 2")
    shares, share = [], int(first)
    while NOBODY < share < to:
        shares.append(share)
        share *= factor
    return _grown(shares, every, to)


def _grown(shares: list[int], every: dt.timedelta, to: Share) -> tuple[Step, ...]:
    if not shares and to > NOBODY:
        raise errors.Rejected("share that does not grow", hint="begin with at least 0.01 %")
    return tuple(Step(Share(share), every) for share in [*shares, to])


def _seconds(span: dt.timedelta) -> str:
    return f"{span.total_seconds():g} s"
