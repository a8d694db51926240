"""How people write a rollout: the same words in a file for this machine and in a Kubernetes spec.

plain data ──► convert ──► Rules (their shape is right) ──► spec ──► domain Spec (they make sense)

The structs are also what a CustomResourceDefinition is made from, so every place has one type.
Whatever does not hold is refused with the path of its field.
"""

import contextlib
import datetime as dt
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from fairlead import errors
from fairlead.domain.analysis.limits import Limits
from fairlead.domain.analysis.verdict import NoData
from fairlead.domain.rollouts import spec as specs
from fairlead.domain.rollouts import strategy as strategies
from fairlead.domain.rollouts.windows import DAYS, Window
from fairlead.domain.traffic import routes
from fairlead.domain.values import Percent

Share = Annotated[int, msgspec.Meta(ge=0, le=100)]
T = TypeVar("T")

_DURATION = re.compile(r"(?:[0-9]+(?:ms|s|m|h|d))+")
_PART = re.compile(r"([0-9]+)(ms|s|m|h|d)")
_UNITS = {
    "ms": dt.timedelta(milliseconds=1),
    "s": dt.timedelta(seconds=1),
    "m": dt.timedelta(minutes=1),
    "h": dt.timedelta(hours=1),
    "d": dt.timedelta(days=1),
}
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


class Words(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What every group of fields has in common: a misspelt one is refused, not ignored."""


class PaceWords(Words, frozen=True):
    """A step with a pause or an approval of its own."""

    weight: Share
    pause: str = "0s"
    approve: bool = False


class MatchWords(Words, frozen=True):
    """Requests with this header or cookie meet the new version in an A/B test."""

    header: str | None = None
    cookie: str | None = None
    exact: str | None = None
    prefix: str | None = None
    regex: str | None = None


class AffinityWords(Words, frozen=True):
    """Whoever met the new version once stays with it, by a cookie."""

    cookie: str
    max_age: str = "24h"


class StrategyWords(Words, frozen=True):
    """The way a new version takes."""

    kind: Literal["canary", "blueGreen", "ab"] = "canary"
    steps: list[Share] = []
    paces: list[PaceWords] = []
    step_weight: int | None = None
    max_weight: int | None = None
    matches: list[MatchWords] = []
    mirror: Share = 0
    affinity: AffinityWords | None = None
    canary_replicas: int | None = None
    pause: str = "0s"
    approve: bool = False
    bake: str = "0s"
    promotion: list[Share] = []
    baseline: bool = False


class CheckWords(Words, frozen=True):
    """One question on the way: a built-in metric, a query, a web metric, a judge or a gate."""

    name: str
    metric: Literal["request-success-rate", "request-duration"] | None = None
    query: str | None = None
    web: str | None = None
    gate: str | None = None
    judge: dict[str, Any] | None = None
    when: Literal["start", "step", "promotion"] = "step"
    success: str | None = None
    failure: str | None = None
    low: float | None = None
    high: float | None = None
    no_data: Literal["wait", "pass", "fail", "inconclusive"] = "wait"
    count: int | None = None
    interval: str | None = None
    window: str | None = None
    server: str = ""
    initial_delay: str = "0s"
    failure_limit: int = 0
    inconclusive_limit: int = 0
    consecutive_error_limit: int = 4
    consecutive_success_limit: int = 0
    dry_run: bool = False


class WindowWords(Words, frozen=True):
    """When steps up may be taken; the way home is always open."""

    days: list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]] = []
    begins: str = "00:00"
    ends: str = "00:00"
    zone: str = "UTC"


class GroupWords(Words, frozen=True):
    """Rollouts that are promoted together or not at all."""

    name: str
    members: list[str]


class LimiterWords(Words, frozen=True):
    """How many rollouts that name this limiter may be under way at once."""

    name: str
    cap: int


class Rules(Words, frozen=True):
    """Everything about a rollout but the version itself; kinds and files add to it."""

    strategy: StrategyWords = StrategyWords()
    checks: list[CheckWords] = []
    deadline: str = "10m"
    patience: str = "1h"
    windows: list[WindowWords] = []
    group: GroupWords | None = None
    limiter: LimiterWords | None = None
    keep: int = 10


def convert(content: object, to: type[T], at: str = "", *, about: str = "") -> T:
    """Plain data as one of these structs; Rejected with the path where its shape is wrong."""
    try:
        return msgspec.convert(content, to)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        said = problem[:1].lower() + problem[1:].replace("`", "")
        where = f"{at}{path.rstrip('`')}".lstrip(".")
        raise _refusal(where, said, about or "see docs/reference/rollouts.md") from error
    except UnicodeEncodeError as error:
        # JSON and YAML may escape half of a character; it has no bytes, so it is no text.
        raise _refusal(at, "text that is not Unicode", "remove the broken character") from error


def spec(rules: Rules, at: str = "") -> specs.Spec:
    """What the rules mean; Rejected with the path of what makes no sense."""
    with _named(_under(at, "")):
        return specs.Spec(
            strategy=_strategy(rules.strategy, _under(at, "strategy")),
            checks=_checks(rules.checks, _under(at, "checks")),
            deadline=duration(rules.deadline, _under(at, "deadline")),
            patience=duration(rules.patience, _under(at, "patience")),
            windows=_windows(rules.windows, _under(at, "windows")),
            group=_group(rules.group, _under(at, "group")),
            limiter=_limiter(rules.limiter, _under(at, "limiter")),
            keep=rules.keep,
        )


def duration(text: str, at: str) -> dt.timedelta:
    """A time such as 30s, 1m30s or 2h."""
    if not _DURATION.fullmatch(text):
        raise _refusal(at, f"not a time: {text[:40]!r}", "use 500ms, 30s, 5m, 1h30m or 2d")
    try:
        spans = [int(count) * _UNITS[unit] for count, unit in _PART.findall(text)]
        return sum(spans, dt.timedelta())
    except (OverflowError, ValueError) as error:
        raise _refusal(at, f"a time out of all bounds: {text[:40]}", "use days at most") from error


class _PathedError(errors.Rejected):
    """A refusal that names its place already."""


def _strategy(words: StrategyWords, at: str) -> strategies.Strategy:
    if words.steps and words.paces:
        raise _refusal(at, "both steps and paces are set", "use one of them")
    scale, back = strategies.Scale, words.promotion
    with _named(at):
        return strategies.Strategy(
            kind=strategies.Kind(words.kind),
            steps=_paces(words, at),
            step_weight=words.step_weight,
            max_weight=words.max_weight,
            matches=tuple(_match(each, f"{at}.matches[{n}]") for n, each in _each(words.matches)),
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
        return tuple(strategies.Pace(Percent(share)) for share in words.steps)
    return tuple(
        strategies.Pace(
            Percent(each.weight), duration(each.pause, f"{at}.paces[{n}].pause"), each.approve
        )
        for n, each in _each(words.paces)
    )


def _match(words: MatchWords, at: str) -> routes.Match:
    places = [(where, getattr(words, where.value)) for where in routes.Where]
    ways = [(how, getattr(words, how.value)) for how in routes.How]
    named = [(where, name) for where, name in places if name is not None]
    valued = [(how, value) for how, value in ways if value is not None]
    if len(named) != 1 or len(valued) != 1:
        raise _refusal(
            at, "one of header and cookie, and one of exact, prefix and regex, are needed",
            "write {header: x-beta, exact: 'yes'}",
        )  # fmt: skip
    (where, name), (how, value) = named[0], valued[0]
    with _named(at):
        return routes.Match(where, name, value, how)


def _affinity(words: AffinityWords | None, at: str) -> routes.Affinity | None:
    if words is None:
        return None
    age = duration(words.max_age, f"{at}.maxAge")
    with _named(at):
        return routes.Affinity(words.cookie, int(age.total_seconds()))


def _checks(words: Sequence[CheckWords], at: str) -> tuple[specs.Check, ...]:
    return tuple(_check(each, f"{at}[{n}]") for n, each in _each(words))


def _check(words: CheckWords, at: str) -> specs.Check:
    source, query = _source(words, at)
    with _named(at):
        return specs.Check(
            name=words.name,
            query=query,
            source=source,
            when=specs.When(words.when),
            success=words.success,
            failure=words.failure,
            low=words.low,
            high=words.high,
            no_data=NoData(words.no_data),
            limits=_limits(words, at),
            dry_run=words.dry_run,
            judge=words.judge or {},
            window=None if words.window is None else duration(words.window, f"{at}.window"),
            server=words.server,
        )


def _source(words: CheckWords, at: str) -> tuple[specs.Source, str]:
    """Who answers, and what is asked of it."""
    asked = {
        "metric": (specs.Source.QUERY, words.metric),
        "query": (specs.Source.QUERY, words.query),
        "web": (specs.Source.WEB, words.web),
        "gate": (specs.Source.GATE, words.gate),
        "judge": (specs.Source.JUDGE, None if words.judge is None else ""),
    }
    found = [(source, text) for source, text in asked.values() if text is not None]
    if len(found) != 1:
        raise _refusal(at, f"one of {', '.join(asked)} is needed", "say who answers this check")
    return found[0]


def _limits(words: CheckWords, at: str) -> Limits:
    return Limits(
        count=words.count,
        interval=None if words.interval is None else duration(words.interval, f"{at}.interval"),
        initial_delay=duration(words.initial_delay, f"{at}.initialDelay"),
        failure_limit=words.failure_limit,
        inconclusive_limit=words.inconclusive_limit,
        consecutive_error_limit=words.consecutive_error_limit,
        consecutive_success_limit=words.consecutive_success_limit,
    )


def _windows(words: Sequence[WindowWords], at: str) -> tuple[Window, ...]:
    return tuple(_window(each, f"{at}[{n}]") for n, each in _each(words))


def _window(words: WindowWords, at: str) -> Window:
    begins, ends = _clock(words.begins, f"{at}.begins"), _clock(words.ends, f"{at}.ends")
    with _named(at):
        return Window(tuple(words.days) or DAYS, begins, ends, words.zone)


def _clock(text: str, at: str) -> dt.time:
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise _refusal(at, f"not a time of day: {text[:40]!r}", "use 08:00 to 23:59, in quotes")
    return dt.time(int(found[1]), int(found[2]))


def _group(words: GroupWords | None, at: str) -> specs.Group | None:
    if words is None:
        return None
    with _named(at):
        return specs.Group(words.name, tuple(words.members))


def _limiter(words: LimiterWords | None, at: str) -> specs.Limiter | None:
    if words is None:
        return None
    with _named(at):
        return specs.Limiter(words.name, words.cap)


def _each(words: Sequence[T]) -> Iterator[tuple[int, T]]:
    return iter(enumerate(words))


def _under(at: str, field: str) -> str:
    return f"{at}.{field}".strip(".")


@contextlib.contextmanager
def _named(at: str) -> Iterator[None]:
    """What the domain refuses inside, it refuses at this place; the innermost place tells."""
    try:
        yield
    except _PathedError:
        raise
    except errors.Rejected as error:
        raise _refusal(at, error.message, error.hint) from error


def _refusal(at: str, problem: str, hint: str) -> _PathedError:
    return _PathedError(f"{at}: {problem}" if at else problem, hint=hint)
