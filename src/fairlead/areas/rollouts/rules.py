"""How people write a rollout: the same fields in a file for this machine and in a Kubernetes spec.

plain data ──► convert ──► Rules (their shape is right) ──► spec ──► domain Spec (they make sense)

The structs are also what a CustomResourceDefinition is made from, so every place has one type.
Whatever does not hold is refused with the path of its field.
"""

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from fairlead import validation
from fairlead.areas.rollouts.domain.plan import spec as specs
from fairlead.areas.rollouts.domain.plan import strategy as strategies
from fairlead.areas.rollouts.domain.plan.windows import DAYS, Window
from fairlead.checks import rules as check_rules
from fairlead.traffic import routes
from fairlead.validation import refusal
from fairlead.values import Percent

Weight = Annotated[int, msgspec.Meta(ge=0, le=100)]
Duration = check_rules.Duration
CheckWords = check_rules.CheckWords
duration = check_rules.duration
T = TypeVar("T")
R = TypeVar("R")

_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


class Words(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What every group of fields has in common: an unknown one is refused, not ignored."""


class PaceWords(Words, frozen=True):
    """A step with a pause or an approval of its own."""

    weight: Weight
    pause: Duration = "0s"
    approve: bool = False


class MatchWords(Words, frozen=True):
    """Requests with this header or cookie go to the new version in an A/B test."""

    header: str | None = None
    cookie: str | None = None
    exact: str | None = None
    prefix: str | None = None
    regex: str | None = None


class AffinityWords(Words, frozen=True):
    """Users stay with the new version once they reached it, by a cookie."""

    cookie: str
    max_age: Duration = "24h"


class StrategyWords(Words, frozen=True):
    """How a new version is rolled out."""

    kind: Literal["canary", "blueGreen", "ab"] = "canary"
    steps: list[Weight] = []
    paces: list[PaceWords] = []
    step_weight: int | None = None
    max_weight: int | None = None
    matches: list[MatchWords] = []
    mirror: Weight = 0
    affinity: AffinityWords | None = None
    canary_replicas: int | None = None
    pause: Duration = "0s"
    approve: bool = False
    bake: Duration = "0s"
    promotion: list[Weight] = []
    baseline: bool = False


class WindowWords(Words, frozen=True):
    """When the weight may rise; a rollback is always possible."""

    days: list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]] = []
    begins: str = "00:00"
    ends: str = "00:00"
    zone: str = "UTC"


class GroupWords(Words, frozen=True):
    """Rollouts that are promoted together or not at all."""

    name: str
    members: list[str]


class LimiterWords(Words, frozen=True):
    """How many rollouts of this limiter may be in progress at once."""

    name: str
    cap: int


class Rules(Words, frozen=True):
    """Everything about a rollout but the version itself; kinds and files add to it."""

    strategy: StrategyWords = StrategyWords()
    checks: list[CheckWords] = []
    deadline: Duration = "10m"
    patience: Duration = "1h"
    windows: list[WindowWords] = []
    group: GroupWords | None = None
    limiter: LimiterWords | None = None
    keep: int = 10


def convert(content: object, to: type[T], at: str = "") -> T:
    """Plain data as one of these structs; Invalid with the paths where its shape is wrong."""
    return validation.convert(content, to, at, about="see docs/reference/rollouts.md")


def spec(rules: Rules, at: str = "") -> specs.Spec:
    """What the rules mean; Invalid with the paths of what does not hold."""
    parts: dict[str, Callable[[Any, str], Any]] = {
        "strategy": _strategy,
        "checks": check_rules.checks,
        "deadline": duration,
        "patience": duration,
        "windows": _windows,
        "group": _group,
        "limiter": _limiter,
    }
    gathered, made = validation.Gathered(), {}
    for field, read in parts.items():
        with gathered.part():
            made[field] = read(getattr(rules, field), _under(at, field))
    gathered.settle()
    with check_rules.named(at):
        return specs.Spec(**made, keep=rules.keep)


def _strategy(words: StrategyWords, at: str) -> strategies.Strategy:
    if words.steps and words.paces:
        raise refusal(at, "both steps and paces are set", "use one of them")
    scale, back = strategies.Scale, words.promotion
    with check_rules.named(at):
        return strategies.Strategy(
            kind=strategies.Kind(words.kind),
            steps=_paces(words, at),
            step_weight=words.step_weight,
            max_weight=words.max_weight,
            matches=tuple(
                _match(each, f"{at}.matches[{n}]") for n, each in enumerate(words.matches)
            ),
            mirror=Percent(words.mirror),
            affinity=_affinity(words.affinity, f"{at}.affinity"),
            scale=scale(words.canary_replicas),
            pause=duration(words.pause, f"{at}.pause"),
            approve=words.approve,
            bake=duration(words.bake, f"{at}.bake"),
            promotion=tuple(map(Percent, back)),
            baseline=words.baseline,
        )


def _paces(words: StrategyWords, at: str) -> tuple[strategies.Pace, ...]:
    if words.steps:
        return tuple(strategies.Pace(Percent(weight)) for weight in words.steps)
    return tuple(
        strategies.Pace(
            Percent(each.weight), duration(each.pause, f"{at}.paces[{n}].pause"), each.approve
        )
        for n, each in enumerate(words.paces)
    )


def _match(words: MatchWords, at: str) -> routes.Match:
    places = [(where, getattr(words, where.value)) for where in routes.Where]
    ways = [(how, getattr(words, how.value)) for how in routes.How]
    named = [(where, name) for where, name in places if name is not None]
    valued = [(how, value) for how, value in ways if value is not None]
    if len(named) != 1 or len(valued) != 1:
        raise refusal(
            at, "set one of header and cookie, and one of exact, prefix and regex",
            "write {header: x-beta, exact: 'yes'}",
        )  # fmt: skip
    (where, name), (how, value) = named[0], valued[0]
    with check_rules.named(at):
        return routes.Match(where, name, value, how)


def _affinity(words: AffinityWords | None, at: str) -> routes.Affinity | None:
    if words is None:
        return None
    age = duration(words.max_age, f"{at}.maxAge")
    with check_rules.named(at):
        return routes.Affinity(words.cookie, int(age.total_seconds()))


def _windows(words: Sequence[WindowWords], at: str) -> tuple[Window, ...]:
    return check_rules.each(words, at, _window)


def _window(words: WindowWords, at: str) -> Window:
    begins, ends = _clock(words.begins, f"{at}.begins"), _clock(words.ends, f"{at}.ends")
    with check_rules.named(at):
        return Window(tuple(words.days) or DAYS, begins, ends, words.zone)


def _clock(text: str, at: str) -> dt.time:
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise refusal(at, f"not a time of day: {text[:40]!r}", "use 08:00 to 23:59, in quotes")
    return dt.time(int(found[1]), int(found[2]))


def _group(words: GroupWords | None, at: str) -> specs.Group | None:
    if words is None:
        return None
    with check_rules.named(at):
        return specs.Group(words.name, tuple(words.members))


def _limiter(words: LimiterWords | None, at: str) -> specs.Limiter | None:
    if words is None:
        return None
    with check_rules.named(at):
        return specs.Limiter(words.name, words.cap)


def _under(at: str, field: str) -> str:
    return f"{at}.{field}".strip(".")
