"""How often a check will look at one weight of a release, as far as that is planned; pure."""

import math

from fairlead.analysis import looks
from fairlead.analysis.policy import LEAST_SAMPLES
from fairlead.checks.spec import Check
from fairlead.checks.subject import Side, Subject
from fairlead.values import ALL

EQUAL = 0.5


def of(check: Check, about: Subject) -> looks.Plan:
    """By the check's limits and the step's time; no look is taken before the fewest samples."""
    window = check.span
    interval = check.limits.interval
    every = 1 if interval is None else max(1, math.floor(interval / window))
    if check.limits.most is not None:
        # The first look waits for the fewest samples, whenever the check is asked first.
        first = max(LEAST_SAMPLES, math.floor(check.limits.initial_delay / window))
        samples = first + (check.limits.most - 1) * every
    else:
        samples = max(LEAST_SAMPLES, math.floor(about.hold / window))
    if check.limits.most == 1:
        return looks.Plan(parts=about.steps, share=_share(about), once=True)
    return looks.Plan(samples, every, about.steps, _share(about))


def _share(about: Subject) -> float:
    """The canary's part of the requests of those it is compared with.

    A baseline has as many as the canary; and once the canary has all, it is held against the time
    before, whose requests nobody promised to be fewer or more.
    """
    if about.control is Side.BASELINE or not 0 < about.weight < ALL:
        return EQUAL
    return about.weight / ALL
