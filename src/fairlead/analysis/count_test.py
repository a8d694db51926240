"""Events among requests on both sides: is the experiment's rate another one?

Given how many events came in all, equal rates mean that each fell on the experiment with its part
of the requests. So the split is binomial whatever the rates are and however uneven the traffic is,
moment by moment. Events that come in bursts are seen in how each side scatters around its own
rate, moments that follow each other in what is left of the split; both count for less.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from fairlead.analysis import persistence, tails
from fairlead.analysis.samples import Counted

CAUTION = 0.1
"""Standard errors that are added to how much more than chance the events vary."""

TOGETHER = 2.0
"""From so many standard errors on both sides are said to have their bursts together, or apart."""

MOST_RHYTHM = 0.9
"""Beyond it no estimate from so few moments is believed."""

SEEN = 0.65
"""The chance with which a change must be seen for its absence to say anything."""

LEAST_RATE = 0.01
"""Where events are rarer, a change is looked for as if they were this common."""


@dataclass(frozen=True, slots=True)
class Split:
    """What the split of the events says."""

    events: int
    """Of the experiment, of control, and the requests of both."""

    others: int
    requests: int
    other_requests: int
    chance: float
    """How often equal rates split so unevenly in this direction."""

    restless: float
    """How many times more the events vary than chance explains."""

    @property
    def rate(self) -> float:
        return self.events / self.requests if self.requests else math.nan

    @property
    def other_rate(self) -> float:
        return self.others / self.other_requests if self.other_requests else math.nan

    @property
    def share(self) -> float:
        """The experiment's part of the requests."""
        total = self.requests + self.other_requests
        return self.requests / total if total else 0.0

    @property
    def is_higher(self) -> bool:
        return self.events > (self.events + self.others) * self.share


@dataclass(frozen=True, slots=True)
class _Moment:
    """Events and requests of the experiment and of control, in one moment."""

    events: int
    requests: int
    others: int
    other_requests: int

    @property
    def total(self) -> int:
        return self.events + self.others

    @property
    def share(self) -> float:
        return self.requests / (self.requests + self.other_requests)


def test(control: Counted, experiment: Counted) -> Split:
    events, others = sum(experiment.events), sum(control.events)
    requests, other_requests = sum(experiment.requests), sum(control.requests)
    moments = _moments(control, experiment)
    total = events + others
    expected = sum(moment.total * moment.share for moment in moments)
    share = expected / total if moments and total else requests / max(1, requests + other_requests)
    upper = tails.binomial_upper(events, total, share)
    chance = min(upper, tails.binomial_lower(events, total, share), 0.5)
    restless, freedom = _restlessness(moments)
    if freedom is not None:
        distance = tails.distance(chance) / math.sqrt(restless)
        chance = tails.student_upper(distance, freedom)
    return Split(events, others, requests, other_requests, chance, restless)


def needed(found: Split, times: float, level: float) -> int:
    """Requests of the experiment that it takes to see a rate that is so many times as high."""
    share = min(max(found.share, 0.001), 0.999)
    total = found.requests + found.other_requests
    rate = max((found.events + found.others) / total if total else 0.0, LEAST_RATE)
    distance = tails.distance(level) + tails.distance(1 - SEEN)
    events = found.restless * (distance / math.log(times)) ** 2 / (share * (1 - share))
    return math.ceil(events / rate * share)


def ratio_interval(found: Split, level: float) -> tuple[float, float]:
    """Between which the ratio of the rates lies; half an event is added where there is none."""
    events, others = found.events + 0.5, found.others + 0.5
    error = math.sqrt(found.restless * (1 / events + 1 / others))
    centre = math.log(events / others * max(found.other_requests, 1) / max(found.requests, 1))
    reach = tails.distance(level) * error
    return math.exp(min(centre - reach, 700.0)), math.exp(min(centre + reach, 700.0))


def _moments(control: Counted, experiment: Counted) -> list[_Moment]:
    """Moments in which both sides had requests; none where they were not counted side by side."""
    if len(control.events) != len(experiment.events):
        return []
    rows = zip(
        experiment.events, experiment.requests, control.events, control.requests, strict=True
    )
    made = (_Moment(*row) for row in rows)
    return [moment for moment in made if moment.requests and moment.other_requests]


def _restlessness(moments: Sequence[_Moment]) -> tuple[float, float | None]:
    """How much more than chance the split varies, and the freedom left; None where chance does."""
    count = len(moments)
    if count < 3 or not any(moment.total for moment in moments):  # noqa: PLR2004 - two moments have no restlessness
        return 1.0, None
    sides = _scatter(moments)
    left = [one - other for one, other in zip(*(side.beyond for side in sides), strict=True)]
    if _burst_together(sides):
        # What both sides share cancels in the split, so only the split tells what is left.
        sides = [_Side(left, sum(side.variance for side in sides), 1.0)]
    dispersion = _dispersion(sides)
    if dispersion <= 1:
        return 1.0, None
    # Chance itself follows nothing: only what goes beyond it can.
    found = persistence.estimate([left], most=1 - 1 / dispersion)
    rhythm = persistence.factor(_rhythm(sides), count)
    restless = max(dispersion * max(found.factor, 1.0), 1 + (dispersion - 1) * rhythm)
    return restless, max(persistence.left_of(count, restless / dispersion) - 1, 1.0)


@dataclass(frozen=True, slots=True)
class _Side:
    """What one side adds to the split."""

    beyond: Sequence[float]
    """Beyond its own rate, moment by moment."""

    variance: float
    """What chance makes of that."""

    events: float
    """In a moment."""

    @property
    def excess(self) -> float:
        """How many times more than chance it varies, beyond the once that chance does."""
        count = len(self.beyond)
        squares = math.fsum(value * value for value in self.beyond)
        return squares / self.variance * count / (count - 1) - 1

    @property
    def in_neighbours(self) -> float:
        """The part of that which one moment has in common with the next."""
        products = math.fsum(one * next_ for one, next_ in itertools.pairwise(self.beyond))
        squares = math.fsum(value * value for value in self.beyond)
        # Around a mean of their own, neighbours look less alike than they are.
        return (products + squares / len(self.beyond)) / self.variance


def _scatter(moments: Sequence[_Moment]) -> list[_Side]:
    count = len(moments)
    rate = (sum(each.events for each in moments) + 0.5) / sum(each.requests for each in moments)
    other = sum(each.others for each in moments) + 0.5
    other /= sum(each.other_requests for each in moments)
    added: tuple[list[float], list[float]] = ([], [])
    variances, events = [0.0, 0.0], [0.0, 0.0]
    for moment in moments:
        expected, others = rate * moment.requests, other * moment.other_requests
        share = expected / (expected + others)
        added[0].append((1 - share) * (moment.events - expected))
        added[1].append(share * (moment.others - others))
        variances[0] += (1 - share) ** 2 * expected
        variances[1] += share**2 * others
        events[0] += expected / count
        events[1] += others / count
    return [_Side(*side) for side in zip(added, variances, events, strict=True)]


def _dispersion(sides: Sequence[_Side]) -> float:
    """How many times more than chance the split varies.

    Sides that are alike burst alike: a rate that varies shows by the number of events, so the side
    with more of them says more. Where the split itself varies far more than that, they are not.
    """
    count, chance = len(sides[0].beyond), sum(side.variance for side in sides)
    weights = math.fsum(side.events**2 for side in sides)
    varies = math.fsum(side.events * side.excess for side in sides) / weights
    error = math.sqrt(2 / count / weights)
    times = math.fsum(side.variance * side.events for side in sides) / chance
    alike = 1 + times * (varies + CAUTION * error)
    own = 1 + math.fsum(side.variance * side.excess for side in sides) / chance
    apart = math.sqrt(2 / count * math.fsum((side.variance / chance) ** 2 for side in sides))
    return own if own > alike + TOGETHER * max(alike, 1.0) * apart else alike


def _rhythm(sides: Sequence[_Side]) -> float:
    """How alike the rates of two neighbouring moments are: of what goes beyond chance alone.

    Divided by what lies beyond chance and by what may, or little would be said to follow much.
    """
    error = math.sqrt(2 / len(sides[0].beyond))
    beyond = math.fsum(side.events * max(side.excess, 0.0) for side in sides)
    beyond += error * math.sqrt(math.fsum(side.events**2 for side in sides))
    common = math.fsum(side.events * side.in_neighbours for side in sides)
    return round(min(max(common / beyond, 0.0), MOST_RHYTHM), 3)


def _burst_together(sides: Sequence[_Side]) -> bool:
    one, other = (side.beyond for side in sides)
    product = math.fsum(mine * theirs for mine, theirs in zip(one, other, strict=True))
    squares = (math.fsum(value * value for value in side) for side in (one, other))
    limit = TOGETHER * math.sqrt(math.prod(squares) / len(one))
    return product > limit > 0
