"""How often the judge looks, and what chance of a false alarm each look may spend.

The promise holds for a release: whatever is looked at, and however often, both versions alike are
told apart no more often than `1 - confidence`. So that chance is divided (a union bound, which
needs no assumption on how the looks hang together): over what is judged side by side, then over
the looks. Almost all of it is kept for the planned end, where most is known; a look before it
speaks up only for what nobody could miss, and one after it has a reserve that never runs out.
"""

import dataclasses
import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spending:
    """Which parts of the chance are kept back from the planned end."""

    early: float
    """For all looks before it together."""

    late: float = 0.02
    """For all looks after it."""

    apart: float = 0.0
    """For changes that move no centre."""


# What follows what is not known from five samples, so early looks at series have little to say.
SERIES = Spending(early=0.012, apart=0.1)
COUNTS = Spending(early=0.05)


@dataclass(frozen=True, slots=True)
class Plan:
    """What was planned when the first look was taken."""

    samples: int | None = None
    """At the planned end; None where nobody knows when that is."""

    every: int = 1
    """Samples from one look to the next."""

    parts: int = 1
    """What shares the promise: steps of the release times metrics that can fail it."""

    share: float | None = None
    """The experiment's part of the requests of both sides; None where nobody knows."""

    once: bool = False
    """One look, whatever the number of samples."""


ONCE = Plan(once=True)


@dataclass(frozen=True, slots=True)
class Look:
    """One look: what chance of a false alarm it may take, both directions together."""

    chance: float
    number: int
    of: int | None

    def __str__(self) -> str:
        if self.of is None:
            return f"look {self.number}, no end planned"
        if self.of == 1 and self.number == 1:
            return "one look"
        return f"look {self.number} of {self.of} planned"


def look(plan: Plan, samples: int, chance: float, spending: Spending = SERIES) -> Look:
    """This look's part of the chance that all looks have together."""
    chance /= max(1, plan.parts)
    at_end = 1 - spending.apart - spending.late - spending.early
    if plan.once:
        return Look(chance * at_end, 1, 1)
    number = max(1, math.ceil(samples / plan.every))
    if plan.samples is None:
        # The parts 1/2, 1/6, 1/12 and so on add up to one, however long it takes.
        return Look(chance * (1 - spending.apart) / (number * (number + 1)), number, None)
    planned = max(1, math.ceil(plan.samples / plan.every))
    if number < planned:
        return Look(chance * spending.early / (planned - 1), number, planned)
    if number == planned:
        return Look(chance * at_end, number, planned)
    over = number - planned
    return Look(chance * spending.late / (over * (over + 1)), number, planned)


def apart(taken: Look) -> Look:
    """The same look at changes that move no centre: a part of the same shape."""
    return dataclasses.replace(taken, chance=taken.chance * SERIES.apart / (1 - SERIES.apart))
