"""What a case to judge looks like as JSON, and what is refused, with its path and a hint."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead import errors
from fairlead.analysis import classify, document, judge, looks, samples, verdict

TEXT = st.text(st.characters(exclude_categories=()), max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner),
)


def case(**config: Any) -> dict[str, Any]:
    metrics = [{"name": "latency", "groups": ["speed"]}]
    return {
        "config": {"metrics": metrics} | config,
        "control": {"latency": [1, 2, 3]},
        "experiment": {"latency": [1, 2, None]},
    }


def canary(**fields: Any) -> dict[str, Any]:
    return case(metrics=[{"name": "latency", "analysisConfigurations": {"canary": fields}}])


def refused(content: object) -> errors.Rejected:
    with pytest.raises(errors.Rejected) as caught:
        document.read(content)
    return caught.value


def test_defaults() -> None:
    then = document.read(case())

    (rule,) = then.rules
    assert rule == classify.Rule("latency", groups=("speed",))
    assert then.thresholds == verdict.Thresholds(75, 95)
    assert then.bench == judge.Bench()


def test_every_field_of_a_metric_is_heard() -> None:
    fields = {
        "direction": "increase",
        "nanStrategy": "replace",
        "critical": True,
        "mustHaveData": True,
        "muted": True,
        "noData": "wait",
        "outliers": {"strategy": "remove", "outlierFactor": 2},
        "effectSize": {
            "measure": "cles",
            "allowedIncrease": 0.6,
            "allowedDecrease": 0.4,
            "criticalIncrease": 0.8,
        },
    }

    (rule,) = document.read(canary(**fields)).rules

    assert rule == classify.Rule(
        "latency",
        groups=("default",),
        direction=classify.Direction.INCREASE,
        missing=samples.Missing.REPLACE,
        outliers=samples.Outliers(remove=True, factor=2.0),
        effect=classify.EffectLimits(classify.Measure.COMMON_LANGUAGE, 0.6, 0.4, 0.8, 0.5),
        critical=True,
        must_have_data=True,
        muted=True,
        no_data=verdict.NoData.WAIT,
    )


@pytest.mark.parametrize("name", ["kayenta", "NetflixACAJudge-v1.0"])
def test_the_judge_of_kayenta_goes_by_both_names(name: str) -> None:
    assert document.read(case(judge={"name": name, "judgeConfigurations": {}})).bench == (
        judge.KAYENTA
    )


def test_our_judge_can_be_set() -> None:
    given_judge = {
        "name": "fairlead",
        "confidence": 0.9,
        "tolerance": 0.1,
        "spread": 2,
        "plan": {"samples": 30, "every": 3, "steps": 2, "share": 0.1},
    }

    then = document.read(case(judge=given_judge)).bench

    assert then.strictness == classify.Strictness(0.9, 0.1, as_kayenta=False)
    assert then.spread == 2
    assert then.plan == looks.Plan(samples=30, every=3, parts=2, share=0.1)


def test_a_configuration_as_kayenta_stores_it_is_taken() -> None:
    then = document.read(
        case(
            id="1",
            name="shop",
            description="",
            applications=["shop"],
            configVersion="1",
            templates={},
            createdTimestamp=1,
            metrics=[{"name": "latency", "query": {"type": "prometheus"}, "scopeName": "default"}],
            classifier={"scoreThresholds": {"pass": 90, "marginal": 50}},
        )
    )

    assert then.thresholds == verdict.Thresholds(50, 90)


@pytest.mark.parametrize(
    ("given_limits", "expected"),
    [({"pass": 60}, (60, 60)), ({"marginal": 99}, (99, 99)), ({}, (75, 95))],
)
def test_a_missing_limit_never_crosses_the_given_one(
    given_limits: dict[str, float], expected: tuple[float, float]
) -> None:
    then = document.read(case(scoreThresholds=given_limits)).thresholds

    assert (then.marginal, then.passing) == expected


def test_missing_samples_have_three_spellings() -> None:
    then = document.parse(
        b'{"config": {"metrics": [{"name": "m"}]}, "control": {"m": [null, NaN, "NaN", 1]},'
        b'"experiment": {"m": ["Infinity", -Infinity, 1e999]}}'
    )

    control = then.control["m"]
    assert isinstance(control, list)
    assert [math.isnan(value) for value in control] == [True, True, True, False]
    assert then.experiment["m"] == [math.inf, -math.inf, math.inf]


def test_a_metric_without_samples_is_a_case_of_no_data() -> None:
    content = case() | {"experiment": {}}

    assert judge.judge(document.read(content)).findings[0].label is verdict.Label.NO_DATA


def test_an_empty_list_of_groups_is_kept_for_kayenta_only() -> None:
    metrics = [{"name": "latency", "groups": []}]

    theirs = document.read(case(metrics=metrics, judge={"name": "kayenta"}))
    ours = document.read(case(metrics=metrics))

    assert (theirs.rules[0].groups, ours.rules[0].groups) == ((), ("default",))


@pytest.mark.parametrize(
    ("content", "problem", "path"),
    [
        ([], "an object with config, control and experiment is needed", ""),
        (case() | {"extra": 1}, "unknown field", "extra"),
        ({"config": {}, "control": {}}, "missing", "experiment"),
        (case() | {"config": 3}, "expected object, got int", "config"),
        (case(metrics=[]), "no metric", "config.metrics"),
        (case(**{"\ud800": 1}), "text that is not Unicode, '\\ud800'", "config"),
        (case(metric=[]), "object contains unknown field metric", "config"),
        (case(metrics=[{}]), "object missing required field name", "config.metrics[0]"),
        (case(metrics=[{"name": ""}]), "empty name", "config.metrics[0].name"),
        (
            case(metrics=[{"name": "a\n"}]),
            "name with control characters 'a\\n'",
            "config.metrics[0]",
        ),
        (
            case(metrics=[{"name": "a", "groups": ["\ud800"]}]),
            "name with control characters '\\ud800'",
            "config.metrics[0]",
        ),
        (
            case(metrics=[{"name": "a"}, {"name": "a"}]),
            "second metric named 'a'",
            "config.metrics[1].name",
        ),
        (
            canary(dirction="up"),
            "object contains unknown field dirction",
            "config.metrics[0].analysisConfigurations.canary",
        ),
        (
            canary(direction="up"),
            "invalid enum value 'up'",
            "config.metrics[0].analysisConfigurations.canary.direction",
        ),
        (
            canary(critical="yes"),
            "expected bool, got str",
            "config.metrics[0].analysisConfigurations.canary.critical",
        ),
        (
            canary(effectSize={"allowedIncrease": -1}),
            "-1 is out of range",
            "config.metrics[0].analysisConfigurations.canary.effectSize.allowedIncrease",
        ),
        (
            canary(outliers={"outlierFactor": 0}),
            "0 is out of range",
            "config.metrics[0].analysisConfigurations.canary.outliers.outlierFactor",
        ),
        (case(judge={"name": "solomon"}), "unknown judge 'solomon'", "config.judge.name"),
        (case(judge={"confidence": 1}), "1 is out of range", "config.judge.confidence"),
        (case(judge={"confidence": math.nan}), "nan is out of range", "config.judge.confidence"),
        (case(judge={"tolerance": -0.1}), "-0.1 is out of range", "config.judge.tolerance"),
        (case(judge={"spread": 0.5}), "0.5 is out of range", "config.judge.spread"),
        (
            case(judge={"name": "kayenta", "plan": {"samples": 30}}),
            "the kayenta judge knows no such thing",
            "config.judge.plan",
        ),
        (case(judge={"plan": {"samples": 0}}), "0 is out of range", "config.judge.plan.samples"),
        (case(judge={"plan": {"share": 1}}), "1 is out of range", "config.judge.plan.share"),
        (
            case(classifier={"groupWeights": {"speed": 101}}),
            "weights add up to 101",
            "config.classifier.groupWeights",
        ),
        (
            case(classifier={"groupWeights": {"speed": -1}}),
            "-1 is out of range",
            "config.classifier.groupWeights.speed",
        ),
        (
            case(classifier={"groupWeights": {"sped": 50}}),
            "no metric is in this group",
            "config.classifier.groupWeights.sped",
        ),
        (
            case(scoreThresholds={"marginal": 90, "pass": 80}),
            "marginal 90 is above pass 80",
            "config.scoreThresholds",
        ),
        (
            case(scoreThresholds={"marginal": 90, "pass": 180}),
            "180 is out of range",
            "config.scoreThresholds.pass",
        ),
        (
            case(scoreThresholds={"pass": 80}, classifier={"scoreThresholds": {"pass": 90}}),
            "differs from config.classifier.scoreThresholds",
            "config.scoreThresholds",
        ),
        (case() | {"control": []}, "an object of metric names and samples is needed", "control"),
        (
            case() | {"control": {"latency": 3}},
            "a list of samples, or an object",
            "control.latency",
        ),
        (
            case() | {"control": {"other": []}},
            "no metric of the config has this name",
            "control.other",
        ),
        (case() | {"control": {"latency": [1, "2"]}}, "'2' is no sample", "control.latency[1]"),
        (
            case() | {"experiment": {"latency": [True]}},
            "True is no sample",
            "experiment.latency[0]",
        ),
        (
            case() | {"control": {"latency": [1.0] * 20_001}},
            "more than 20000 samples",
            "control.latency",
        ),
    ],
)
def test_refused_with_path_and_hint(content: object, problem: str, path: str) -> None:
    error = refused(content)

    assert problem in error.message
    assert error.message.endswith(f" at: {path}" if path else problem)
    assert error.hint


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "input is not JSON"),
        (b"{", "input is not JSON"),
        (b"\xff\xfe", "input is not JSON"),
        (b"[" * 100_000, "input is nested too deeply"),
        (b'{"config": 1, "config": 2}', "input names a field twice: config"),
    ],
)
def test_what_is_not_json_is_refused(text: bytes, problem: str) -> None:
    with pytest.raises(errors.Rejected, match=problem):
        document.parse(text)


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MOST_BYTES", 10)

    with pytest.raises(errors.Rejected, match="input larger than 10 bytes: 11"):
        document.parse(b" " * 11)


def test_too_many_metrics_are_refused() -> None:
    metrics = [{"name": str(number)} for number in range(10_001)]

    assert "more than 10000 metrics" in refused(case(metrics=metrics)).message


def test_numbers_of_any_length_are_numbers() -> None:
    text = json.dumps(case()).replace("[1, 2, 3]", f"[{'9' * 5000}, 2, 3]")

    assert document.parse(text.encode()).control["latency"] == [math.inf, 2, 3]


@given(JSON)
def test_whatever_it_is_it_is_judged_or_refused(content: object) -> None:
    hints = []
    for place in ("config", "control", "experiment"):
        try:
            document.read(case() | {place: content})
        except errors.Rejected as error:
            hints.append(error.hint)

    assert all(hints)


def test_what_is_told_has_the_promised_fields_and_only_json_numbers() -> None:
    content = case() | {"control": {"latency": [0, 0, 0]}, "experiment": {"latency": [1, 2, 3]}}

    then = document.told(judge.judge(document.read(content)))

    assert list(then) == ["verdict", "score", "reason", "groups", "metrics"]
    assert list(then["metrics"][0]) == [
        *("name", "label", "critical", "ratio", "low", "high", "estimate", "reason")
    ]
    assert then["metrics"][0]["ratio"] is None
    assert json.loads(json.dumps(then, allow_nan=False)) == then
