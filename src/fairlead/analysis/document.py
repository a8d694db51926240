"""A case as a JSON document, and a judgement as one.

This is where `fairlead judge` and its users meet: everything that does not hold is refused here,
with the path of what is wrong and a hint, so that the judge itself only sees sound cases.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from fairlead import errors
from fairlead.analysis import classify, fields, judge, looks, samples, verdict
from fairlead.analysis import measured_sides as measured

MOST_BYTES = 32 * 1024 * 1024
MOST_METRICS = 10_000
MOST_SAMPLES = 20_000
PARTS = ("config", "control", "experiment")
SPOKEN = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
KAYENTA_NAMES = ("kayenta", "NetflixACAJudge-v1.0")


def parse(text: bytes) -> judge.Case:
    """The case in these bytes, or Rejected."""
    if len(text) > MOST_BYTES:
        raise errors.Rejected(
            f"input larger than {MOST_BYTES} bytes: {len(text)}",
            hint="judge fewer metrics at once, or a shorter time",
        )
    try:
        # Whole numbers of any length become floats, as all samples are.
        content = json.loads(text, object_pairs_hook=_unique, parse_int=float)
    except RecursionError as error:
        raise errors.Rejected(
            "input is nested too deeply", hint="see docs/reference/judge.md for the format"
        ) from error
    except ValueError as error:
        raise errors.Rejected(
            f"input is not JSON: {error}", hint="see docs/reference/judge.md for the format"
        ) from error
    return read(content)


def read(content: object) -> judge.Case:
    """The case in a parsed document, or Rejected."""
    if not isinstance(content, dict):
        _refuse("", "an object with config, control and experiment is needed")
    for name in content:
        if name not in PARTS:
            _refuse(name, "unknown field", hint=f"known are {', '.join(PARTS)}")
    for name in PARTS:
        if name not in content:
            _refuse(name, "missing")
    config = _config(content["config"])
    bench = _bench(config.judge)
    return judge.Case(
        rules=_rules(config.metrics, bench.name),
        control=_side("control", content["control"], config, bench.name),
        experiment=_side("experiment", content["experiment"], config, bench.name),
        weights=_weights(config, bench.name),
        thresholds=_thresholds(config),
        bench=bench,
    )


def check(config: object) -> None:
    """Rejected where no case could ever be read with this configuration."""
    read({"config": config, "control": {}, "experiment": {}})


def told(judgement: verdict.Judgement) -> dict[str, Any]:
    """The judgement as the fields that `fairlead judge -o json` prints."""
    return {
        "verdict": judgement.verdict.value,
        "score": judgement.score,
        "reason": judgement.reason,
        "groups": [
            {"name": group.name, "score": round(group.score, 2), "weight": round(group.weight, 2)}
            for group in judgement.groups
        ],
        "metrics": [_told(finding) for finding in judgement.findings],
    }


def _told(finding: verdict.Finding) -> dict[str, Any]:
    interval = finding.interval
    return {
        "name": finding.name,
        "label": finding.label.value,
        "critical": finding.critical,
        "ratio": _number(finding.ratio),
        "low": _number(interval.low if interval else None),
        "high": _number(interval.high if interval else None),
        "estimate": _number(interval.estimate if interval else None),
        "reason": finding.reason,
    }


def _number(value: float | None) -> float | None:
    """JSON knows neither infinity nor not-a-number."""
    return value if value is not None and math.isfinite(value) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise errors.Rejected(
            f"input names a field twice: {twice}", hint="JSON keeps only one of them; remove one"
        )
    return found


def _refuse(path: str, problem: str, *, hint: str | None = None) -> NoReturn:
    raise errors.Rejected(
        f"input is not a case to judge: {problem}" + (f" at: {path}" if path else ""),
        hint=hint or "see docs/reference/judge.md for the fields",
    )


def _config(given: object) -> fields.Config:
    try:
        config = msgspec.convert(given, fields.Config)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        _refuse(f"config{path.rstrip('`')}", problem[:1].lower() + problem[1:].replace("`", ""))
    except UnicodeEncodeError as error:
        # JSON may escape half of a character; it has no bytes, so it is no text.
        _refuse("config", f"text that is not Unicode, {error.object!a}")
    if not config.metrics:
        _refuse("config.metrics", "no metric", hint="name at least one metric")
    if len(config.metrics) > MOST_METRICS:
        _refuse("config.metrics", f"more than {MOST_METRICS} metrics")
    return config


def _bench(given: fields.Judge) -> judge.Bench:
    at = "config.judge"
    own = given.name == judge.Name.FAIRLEAD.value
    if not own and given.name not in KAYENTA_NAMES:
        _refuse(f"{at}.name", f"unknown judge {given.name!r}", hint="use fairlead or kayenta")
    usual = judge.OWN_STRICTNESS if own else judge.KAYENTA.strictness
    strictness = classify.Strictness(
        confidence=_within(given.confidence, usual.confidence, (0.5, 1), f"{at}.confidence"),
        tolerance=_within(given.tolerance, usual.tolerance, (0, math.inf), f"{at}.tolerance"),
        as_kayenta=usual.as_kayenta,
    )
    if own:
        spread = _within(given.spread, judge.Bench().spread, (1, math.inf), f"{at}.spread")
        return judge.Bench(strictness=strictness, plan=_plan(given.plan), spread=spread)
    for name in ("spread", "plan"):
        if getattr(given, name) is not None:
            _refuse(f"{at}.{name}", "the kayenta judge knows no such thing")
    return judge.Bench(judge.Name.KAYENTA, strictness)


def _plan(given: fields.PlannedLooks | None) -> looks.Plan:
    if given is None:
        return looks.ONCE
    at = "config.judge.plan"
    most = (1, MOST_SAMPLES)
    samples = None if given.samples is None else _within(given.samples, 1, most, f"{at}.samples")
    share = given.share
    if share is not None and not 0 < share < 1:
        _refuse(f"{at}.share", f"{share:g} is out of range", hint="use a part, such as 0.1")
    return looks.Plan(
        samples=None if samples is None else int(samples),
        every=int(_within(given.every, 1, most, f"{at}.every")),
        parts=int(_within(given.steps, 1, most, f"{at}.steps")),
        share=share,
    )


def _within(given: float | None, usual: float, limits: tuple[float, float], path: str) -> float:
    if given is None:
        return usual
    low, high = limits
    if not (low <= given < high and math.isfinite(given)):
        bounds = f"from {low:g}" + (f" to less than {high:g}" if high < math.inf else "")
        _refuse(path, f"{given:g} is out of range", hint=f"use a number {bounds}")
    return given


def _rules(metrics: Sequence[fields.Metric], name: judge.Name) -> tuple[classify.Rule, ...]:
    seen: set[str] = set()
    for index, metric in enumerate(metrics):
        path = f"config.metrics[{index}].name"
        if not metric.name:
            _refuse(path, "empty name")
        for word in (metric.name, *(metric.groups or ())):
            # What cannot be shown would confuse a terminal, or not be written at all.
            if not word.isprintable():
                _refuse(f"config.metrics[{index}]", f"name with control characters {word!a}")
        if metric.name in seen:
            _refuse(path, f"second metric named {metric.name!r}", hint="give each its own name")
        seen.add(metric.name)
    return tuple(_rule(metric, index, name) for index, metric in enumerate(metrics))


def _rule(metric: fields.Metric, index: int, name: judge.Name) -> classify.Rule:
    given = metric.analysis_configurations.canary
    path = f"config.metrics[{index}].analysisConfigurations.canary"
    # At Kayenta a metric in no group counts for nothing; that is kept if it is said so.
    alone = metric.groups is None or (not metric.groups and name is judge.Name.FAIRLEAD)
    return classify.Rule(
        name=metric.name,
        groups=("default",) if alone else tuple(dict.fromkeys(metric.groups or ())),
        direction=classify.Direction(given.direction),
        missing=samples.Missing(given.nan_strategy),
        outliers=samples.Outliers(
            remove=given.outliers.strategy == "remove",
            factor=_factor(given.outliers.outlier_factor, f"{path}.outliers.outlierFactor"),
        ),
        effect=_effect(given.effect_size, f"{path}.effectSize"),
        critical=given.critical,
        must_have_data=given.must_have_data,
        muted=given.muted,
        no_data=verdict.NoData(given.no_data) if given.no_data else None,
    )


def _factor(given: float, path: str) -> float:
    if not 0 < given < math.inf:
        _refuse(path, f"{given:g} is out of range", hint="use a number above 0")
    return given


def _effect(given: fields.EffectSize, path: str) -> classify.EffectLimits:
    usual = 0.5 if given.measure == "cles" else 1.0
    most = (0, math.inf)
    return classify.EffectLimits(
        measure=classify.Measure(given.measure),
        allowed_increase=_within(given.allowed_increase, usual, most, f"{path}.allowedIncrease"),
        allowed_decrease=_within(given.allowed_decrease, usual, most, f"{path}.allowedDecrease"),
        critical_increase=_within(given.critical_increase, usual, most, f"{path}.criticalIncrease"),
        critical_decrease=_within(given.critical_decrease, usual, most, f"{path}.criticalDecrease"),
        detectable=_within(given.detectable, 2.0, (1.01, math.inf), f"{path}.detectable"),
    )


def _weights(config: fields.Config, name: judge.Name) -> Mapping[str, float]:
    path, weights = "config.classifier.groupWeights", config.classifier.group_weights
    for group, weight in weights.items():
        _within(weight, 0.0, (0, math.inf), f"{path}.{group}")
    total = sum(weights.values())
    if total > 100 and not math.isclose(total, 100):  # noqa: PLR2004 - weights are percent
        hint = "weights are percent; together at most 100"
        _refuse(path, f"weights add up to {total:g}", hint=hint)
    named = {group for metric in config.metrics for group in metric.groups or ("default",)}
    for group in weights:
        if group not in named and name is judge.Name.FAIRLEAD:
            hint = f"groups of the metrics are {', '.join(sorted(named))}"
            _refuse(f"{path}.{group}", "no metric is in this group", hint=hint)
    return weights


def _thresholds(config: fields.Config) -> verdict.Thresholds:
    path, given = "config.scoreThresholds", config.score_thresholds
    other = config.classifier.score_thresholds
    if given is not None and other is not None and given != other:
        _refuse(path, "differs from config.classifier.scoreThresholds", hint="keep one of them")
    given = given or other or fields.ScoreThresholds()
    for name, value in (("marginal", given.marginal), ("pass", given.passing)):
        if value is not None and not 0 <= value <= 100:  # noqa: PLR2004 - a score's range
            _refuse(f"{path}.{name}", f"{value:g} is out of range", hint="use 0 to 100")
    marginal, passing = given.marginal, given.passing
    if marginal is None:
        marginal = min(verdict.USUAL.marginal, 100.0 if passing is None else passing)
    if passing is None:
        passing = max(verdict.USUAL.passing, marginal)
    if marginal > passing:
        problem = f"marginal {marginal:g} is above pass {passing:g}"
        _refuse(path, problem, hint="a marginal score is one that does not yet pass")
    return verdict.Thresholds(marginal, passing)


def _side(
    side: str, given: object, config: fields.Config, name: judge.Name
) -> dict[str, judge.Samples]:
    if not isinstance(given, dict):
        _refuse(side, "an object of metric names and samples is needed")
    known = {metric.name for metric in config.metrics}
    for metric in given:
        if metric not in known:
            hint = "add it to config.metrics, or leave its samples out"
            _refuse(f"{side}.{metric}", "no metric of the config has this name", hint=hint)
    return {metric: _samples(f"{side}.{metric}", each, name) for metric, each in given.items()}


def _samples(path: str, given: object, name: judge.Name) -> judge.Samples:
    if isinstance(given, list):
        return _series(path, given)
    if name is judge.Name.KAYENTA:
        if isinstance(given, samples.Counted):
            return given.rates
        _refuse(path, "the kayenta judge takes a list of samples")
    try:
        return measured.read(given, MOST_SAMPLES)
    except ValueError as error:
        _refuse(path, str(error), hint="see docs/reference/judge.md for the three forms")


def _series(path: str, given: list[object]) -> list[float]:
    if len(given) > MOST_SAMPLES:
        _refuse(path, f"more than {MOST_SAMPLES} samples", hint="use a coarser step")
    return [
        value if type(value) is float else _sample(f"{path}[{index}]", value)
        for index, value in enumerate(given)
    ]


def _sample(path: str, given: object) -> float:
    if given is None:
        return math.nan
    if isinstance(given, int | float) and not isinstance(given, bool):
        return float(given)
    if isinstance(given, str) and given in SPOKEN:
        return SPOKEN[given]
    _refuse(path, f"{given!r} is no sample", hint="use a number, or null where one is missing")
