"""A split of requests between a primary, a canary and its baseline; it always sums to 100."""

from collections.abc import Sequence
from dataclasses import dataclass

from fairlead import errors
from fairlead.values import ALL, NONE, Percent, percent


@dataclass(frozen=True, slots=True)
class Split:
    """What each gets of the requests that no other rule has taken."""

    primary: Percent
    canary: Percent
    baseline: Percent = NONE
    """The stable version once more, made new beside the canary to compare it with."""

    def __post_init__(self) -> None:
        if percent(self.primary) + percent(self.canary) + percent(self.baseline) != ALL:
            raise errors.Rejected(
                f"weights do not sum to 100: {self.primary}, {self.canary} and {self.baseline}",
                hint="give the canary's weight; the primary gets the rest",
            )


ALL_TO_PRIMARY = Split(ALL, NONE)


def giving(canary: int, baseline: int = 0) -> Split:
    """The split that gives the canary this weight, and its baseline that one."""
    weight, beside = percent(canary), percent(baseline)
    return Split(Percent(ALL - weight - beside), weight, beside)


def in_percent(weights: Sequence[int]) -> tuple[Percent, ...]:
    """Weights of any sum as whole percents that sum to 100, by the largest remainders.

    Meshes share out in proportion: 30 and 10, written by hand, are 75 and 25.
    """
    total = sum(weights)
    if total <= 0 or min(weights) < 0:
        raise errors.Rejected(
            f"weights that share nothing out: {list(weights)}", hint="use one weight above 0"
        )
    whole = [weight * ALL // total for weight in weights]
    behind = sorted(range(len(weights)), key=lambda n: (-(weights[n] * ALL % total), n))
    for n in behind[: ALL - sum(whole)]:
        whole[n] += 1
    return tuple(map(Percent, whole))
