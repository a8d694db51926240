"""The words in which people write a rollout, what they mean, and how they are refused."""

import datetime as dt
from typing import Any

import pytest

from fairlead import errors
from fairlead.analysis.limits import Limits
from fairlead.analysis.verdict import NoData
from fairlead.areas.rollouts import rules
from fairlead.areas.rollouts.domain.plan.spec import Group, Limiter, Spec
from fairlead.areas.rollouts.domain.plan.strategy import Kind, Pace, Scale, Strategy
from fairlead.areas.rollouts.domain.plan.windows import DAYS, Window
from fairlead.checks.spec import Check, CheckKind, When
from fairlead.kubernetes import schema
from fairlead.traffic.routes import Affinity, How, Match, Where
from fairlead.values import Percent


def read(**fields: Any) -> Spec:
    return rules.spec(rules.convert(fields, rules.Rules, "spec"), "spec")


def refused(**fields: Any) -> errors.Rejected:
    with pytest.raises(errors.Rejected) as caught:
        read(**fields)
    return caught.value


def check(**fields: Any) -> Check:
    (found,) = read(checks=[{"name": "success", "metric": "request-success-rate"} | fields]).checks
    return found


def test_no_word_at_all_is_the_usual_rollout() -> None:
    assert read() == Spec()


def test_every_word_of_a_strategy_is_heard() -> None:
    then = read(
        strategy={
            "paces": [{"weight": 5, "pause": "30s"}, {"weight": 20, "approve": True}],
            "mirror": 30,
            "affinity": {"cookie": "shop", "maxAge": "1h"},
            "canaryReplicas": 2,
            "pause": "1m30s",
            "approve": True,
            "bake": "500ms",
            "promotion": [50, 0],
        }
    ).strategy

    assert then == Strategy(
        steps=(Pace(Percent(5), dt.timedelta(seconds=30)), Pace(Percent(20), approve=True)),
        mirror=Percent(30),
        affinity=Affinity("shop", 3600),
        scale=Scale(2),
        pause=dt.timedelta(seconds=90),
        approve=True,
        bake=dt.timedelta(milliseconds=500),
        promotion=(Percent(50), Percent(0)),
    )


def test_weights_can_be_written_in_three_ways() -> None:
    weights = (Pace(Percent(5)), Pace(Percent(20)))

    assert read(strategy={"steps": [5, 20]}).strategy.steps == weights
    assert read(strategy={"paces": [{"weight": 5}, {"weight": 20}]}).strategy.steps == weights
    assert read(strategy={"stepWeight": 10, "maxWeight": 50}).strategy.step_weight == 10


def test_an_a_b_test_names_its_headers_and_cookies() -> None:
    matches = [{"header": "x-beta", "exact": "yes"}, {"cookie": "group", "regex": "b.*"}]

    then = read(strategy={"kind": "ab", "matches": matches}).strategy

    assert then.kind is Kind.AB
    assert then.matches == (
        Match(Where.HEADER, "x-beta", "yes"),
        Match(Where.COOKIE, "group", "b.*", How.REGEX),
    )


def test_every_word_of_a_check_is_heard() -> None:
    then = check(
        when="promotion",
        low=99,
        noData="fail",
        count=5,
        interval="10s",
        initialDelay="3s",
        failureLimit=1,
        inconclusiveLimit=2,
        consecutiveErrorLimit=3,
        consecutiveSuccessLimit=4,
        dryRun=True,
        window="30s",
        server="payments",
        source="prometheus",
    )

    second = dt.timedelta(seconds=1)
    assert then == Check(
        "success",
        "request-success-rate",
        when=When.PROMOTION,
        low=99,
        no_data=NoData.FAIL,
        limits=Limits(5, 10 * second, 3 * second, 1, 2, 3, 4),
        dry_run=True,
        window=30 * second,
        server="payments",
        source="prometheus",
    )


@pytest.mark.parametrize(
    ("words", "asked", "query"),
    [
        ({"metric": "request-duration"}, (CheckKind.METRIC, ""), "request-duration"),
        ({"query": "up{}", "success": "result > 1"}, (CheckKind.METRIC, ""), "up{}"),
        ({"query": "up{}", "server": "pay"}, (CheckKind.METRIC, "prometheus"), "up{}"),
        ({"query": "avg:load", "source": "datadog"}, (CheckKind.METRIC, "datadog"), "avg:load"),
        ({"web": "http://checks/shop"}, (CheckKind.METRIC, "web"), "http://checks/shop"),
        ({"gate": "http://gate/shop"}, (CheckKind.GATE, ""), "http://gate/shop"),
        ({"judge": {"metrics": [{"name": "errors"}]}}, (CheckKind.JUDGE, ""), ""),
    ],
)
def test_a_check_says_who_answers_it(words: Any, asked: tuple[CheckKind, str], query: str) -> None:
    (then,) = read(checks=[{"name": "one"} | words]).checks

    assert ((then.kind, then.source), then.query) == (asked, query)


def test_what_is_around_a_rollout_is_heard() -> None:
    then = read(
        deadline="2m",
        patience="1d",
        windows=[
            {"days": ["mon"], "begins": "08:00", "ends": "17:30", "zone": "Europe/Berlin"},
            {},
        ],
        group={"name": "shop", "members": ["web", "api"]},
        limiter={"name": "all", "cap": 2},
        keep=3,
    )

    assert then == Spec(
        deadline=dt.timedelta(minutes=2),
        patience=dt.timedelta(days=1),
        windows=(Window(("mon",), dt.time(8), dt.time(17, 30), "Europe/Berlin"), Window(DAYS)),
        group=Group("shop", ("web", "api")),
        limiter=Limiter("all", 2),
        keep=3,
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"strategie": {}}, "spec.strategie: unknown field"),
        ({"strategy": {"stepz": [5]}}, "spec.strategy.stepz: unknown field"),
        ({"strategy": {"steps": [5, 101]}}, "spec.strategy.steps[1]: expected at most 100: 101"),
        ({"strategy": {"steps": [20, 5]}}, "spec.strategy: weights of steps go down: [20, 5]"),
        ({"strategy": {"steps": [5], "paces": [{"weight": 5}]}}, "spec.strategy: both steps and"),
        ({"strategy": {"pause": 30}}, "spec.strategy.pause: expected text, got a number: 30"),
        ({"strategy": {"pause": "30"}}, "spec.strategy.pause: not a duration: '30'"),
        ({"strategy": {"paces": [{"weight": 5, "pause": "x"}]}}, "spec.strategy.paces[0].pause: "),
        ({"strategy": {"bake": "9" * 40 + "d"}}, "spec.strategy.bake: longer than 366 d: 9999"),
        ({"strategy": {"bake": "9" * 9000 + "d"}}, "spec.strategy.bake: longer than 366 d: 9999"),
        ({"strategy": {"pause": "999999999d"}}, "spec.strategy.pause: longer than 366 d: 99999"),
        (
            {"strategy": {"paces": [{"weight": 5, "pause": "367d"}]}},
            "spec.strategy.paces[0].pause: longer than 366 d: 367d",
        ),
        ({"deadline": "3000000d"}, "spec.deadline: longer than 366 d: 3000000d"),
        ({"patience": "8785h"}, "spec.patience: longer than 366 d: 8785h"),
        (
            {"checks": [{"name": "a", "query": "b", "interval": "9999999d"}]},
            "spec.checks[0].interval: longer than 366 d: 9999999d",
        ),
        (
            {"strategy": {"affinity": {"cookie": "a", "maxAge": "99999d"}}},
            "spec.strategy.affinity.maxAge: longer than 366 d: 99999d",
        ),
        ({"strategy": {"kind": "ab"}}, "spec.strategy: A/B test without a match"),
        (
            {"strategy": {"kind": "ab", "matches": [{"header": "a"}]}},
            "spec.strategy.matches[0]: set one of header and cookie",
        ),
        (
            {"strategy": {"kind": "ab", "matches": [{"header": "a", "regex": "("}]}},
            "spec.strategy.matches[0]: not a regular expression",
        ),
        (
            {"strategy": {"kind": "ab", "matches": [{"header": "a", "regex": f"a{{{9**30}}}"}]}},
            "spec.strategy.matches[0]: not a regular expression",
        ),
        ({"strategy": {"affinity": {"cookie": ";"}}}, "spec.strategy.affinity: not a cookie"),
        ({"checks": [{"name": "a"}]}, "spec.checks[0]: set one of metric, query, web, gate, judge"),
        (
            {"checks": [{"name": "a", "query": "b", "success": "result >"}]},
            "spec.checks[0]: ",
        ),
        (
            {"checks": [{"name": "a", "query": "b", "count": 2}]},
            "spec.checks[0]: count without an interval",
        ),
        ({"checks": [{"name": "a", "metric": "b"}]}, "spec.checks[0].metric: unknown value: b"),
        (
            {"checks": [{"name": "a", "judge": {"metrics": [{"nam": "b"}]}}]},
            "spec.checks[0].judge.metrics[0].name: missing",
        ),
        (
            {"checks": [{"name": "a", "query": "b", "window": "10ms"}]},
            "spec.checks[0]: check window below 1 s: 10 ms",
        ),
        ({"windows": [{"begins": "25:00"}]}, "spec.windows[0].begins: not a time of day"),
        ({"windows": [{"zone": "Mars"}]}, "spec.windows[0]: no such time zone: Mars"),
        ({"group": {"name": "a", "members": []}}, "spec.group: group members missing"),
        ({"limiter": {"name": "a", "cap": 0}}, "spec.limiter: cap below 1: 0"),
        ({"keep": 0}, "spec: kept revisions below 1: 0"),
    ],
)  # fmt: skip
def test_what_does_not_hold_is_refused_with_its_path(fields: Any, said: str) -> None:
    then = refused(**fields)

    assert then.message.startswith(said)
    assert then.hint


def test_the_words_make_a_structural_schema() -> None:
    made = schema.structural(rules.Rules)

    assert made["properties"]["strategy"]["properties"]["steps"]["items"]["maximum"] == 100
    assert made["properties"]["checks"]["items"]["required"] == ["name"]
