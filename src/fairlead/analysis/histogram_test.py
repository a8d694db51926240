"""Two histograms of the same edges: did requests move past some of the edges?

Beyond an edge a request is an event, so each edge is a count with its requests, tested as such. A
few edges are asked, near the middle, the slowest tenth and the slowest hundredth, and share the
chance of a false alarm. What lies between two edges nobody can see; the words say the edges.
"""

import itertools
from dataclasses import dataclass

from fairlead.analysis import count_test
from fairlead.analysis.samples import Counted, Histogram

ASKED = (0.5, 0.9, 0.99)
"""Parts of all requests; for each the edge that is nearest to having so many below it."""


@dataclass(frozen=True, slots=True)
class Beyond:
    """The requests past one edge."""

    edge: float
    found: count_test.Split


def test(control: Histogram, experiment: Histogram) -> list[Beyond]:
    """Of each edge that is asked, from the lowest on; none without a request."""
    return [
        Beyond(control.edges[edge], count_test.test(past(control, edge), past(experiment, edge)))
        for edge in _edges(control, experiment)
    ]


def past(side: Histogram, edge: int) -> Counted:
    """The requests past this edge as events, moment by moment."""
    return Counted(
        tuple(sum(moment[edge + 1 :]) for moment in side.counts),
        tuple(sum(moment) for moment in side.counts),
    )


def totals(side: Histogram) -> list[int]:
    return [sum(moment[place] for moment in side.counts) for place in range(len(side.edges) + 1)]


def mean(side: Histogram) -> float | None:
    """As if all requests of a bucket were in its middle; past the last edge, at that edge."""
    counts = totals(side)
    if not sum(counts):
        return None
    lows, highs = (0.0, *side.edges), (*side.edges, side.edges[-1])
    middles = [(low + high) / 2 for low, high in zip(lows, highs, strict=True)]
    return sum(a * b for a, b in zip(middles, counts, strict=True)) / sum(counts)


def _edges(control: Histogram, experiment: Histogram) -> list[int]:
    both = [one + other for one, other in zip(totals(control), totals(experiment), strict=True)]
    everything = sum(both)
    below = [count / everything for count in itertools.accumulate(both)][:-1] if everything else []
    # Past an edge that nobody passes, or everybody, there is nothing to compare.
    useful = [place for place, part in enumerate(below) if 0 < part < 1]
    nearest = {min(useful, key=lambda place: abs(below[place] - part)) for part in ASKED if useful}
    return sorted(nearest)
