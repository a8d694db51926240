"""How a rollout proceeds: weights, pauses, previews, matches."""

import datetime as dt
import enum
from dataclasses import dataclass

from fairlead import errors
from fairlead.traffic.routes import Affinity, Match
from fairlead.values import ALL, NONE, Percent, check_span, percent

NO_TIME = dt.timedelta()


class Kind(enum.Enum):
    """How the new version meets requests before it gets all of them."""

    CANARY = "canary"
    BLUE_GREEN = "blueGreen"
    AB = "ab"


@dataclass(frozen=True, slots=True)
class Pace:
    """One step of a canary: its weight, and what it waits for besides its checks."""

    weight: Percent
    pause: dt.timedelta = NO_TIME
    approve: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """The canary's pods: in proportion to its weight, or a fixed number."""

    fixed: int | None = None

    def __post_init__(self) -> None:
        if self.fixed is not None and self.fixed < 1:
            raise errors.Rejected(f"fixed scale below 1: {self.fixed}", hint="use at least one pod")


@dataclass(frozen=True, slots=True)
class Strategy:
    """The way a version takes; `steps.plan` makes the steps of it."""

    kind: Kind = Kind.CANARY
    steps: tuple[Pace, ...] = ()
    step_weight: int | None = None
    max_weight: int | None = None
    matches: tuple[Match, ...] = ()
    mirror: Percent = NONE
    affinity: Affinity | None = None
    scale: Scale = Scale()
    pause: dt.timedelta = NO_TIME
    """How long each step lasts at least, where the step itself does not say."""

    approve: bool = False
    """A person must agree before all traffic moves."""

    bake: dt.timedelta = NO_TIME
    """How long the new version has all traffic while the old one stands by."""

    promotion: tuple[Percent, ...] = ()
    """The canary's weights while traffic returns to the new primary; empty: at once."""

    baseline: bool = False
    """The stable version is made once more beside the canary, for the judge to compare with."""

    def __post_init__(self) -> None:
        percent(self.mirror)
        for span in (self.pause, self.bake, *(pace.pause for pace in self.steps)):
            check_span(span, "pause or bake time")
            if span < NO_TIME:
                raise errors.Rejected(
                    f"negative duration: {span.total_seconds():g} s", hint="use 0s or more"
                )
        _check_weights(self)
        _check_kind(self)


def _check_weights(strategy: Strategy) -> None:
    if strategy.steps and strategy.step_weight is not None:
        raise errors.Rejected("both steps and stepWeight are set", hint="use one of them")
    if strategy.max_weight is not None and strategy.step_weight is None:
        raise errors.Rejected("maxWeight without stepWeight", hint="set stepWeight, or steps")
    for value in (strategy.step_weight, strategy.max_weight):
        if value is not None and not 1 <= value <= ALL:
            raise errors.Rejected(f"weight outside 1-100: {value}", hint="use whole percents")
    weights = [percent(pace.weight) for pace in strategy.steps]
    if weights != sorted(weights):
        raise errors.Rejected(
            f"weights of steps go down: {weights}",
            hint="let each weight be at least the one before",
        )
    back = [percent(weight) for weight in strategy.promotion]
    if back != sorted(back, reverse=True):
        raise errors.Rejected(
            f"promotion weights go up: {back}", hint="list the canary's weight, falling"
        )


def _check_kind(strategy: Strategy) -> None:
    weighted = bool(strategy.steps or strategy.step_weight)
    if strategy.kind is Kind.AB and not strategy.matches:
        raise errors.Rejected(
            "A/B test without a match", hint="say which header or cookie picks the canary"
        )
    if strategy.kind is not Kind.AB and strategy.matches:
        raise errors.Rejected(
            f"matches are only for kind ab, not: {strategy.kind.value}", hint="use kind ab"
        )
    if strategy.kind is not Kind.CANARY and weighted:
        raise errors.Rejected(
            f"weight steps are only for kind canary, not: {strategy.kind.value}",
            hint="use kind canary, or leave the steps out",
        )
    if strategy.kind is not Kind.CANARY and strategy.baseline:
        raise errors.Rejected(
            f"a baseline is only for kind canary, not: {strategy.kind.value}",
            hint="use kind canary, or leave the baseline out",
        )
