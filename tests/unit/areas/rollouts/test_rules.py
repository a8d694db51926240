"""The words in which people write a rollout, what they mean, and how they are refused."""

import datetime as dt
from typing import Any

import pytest

from fairlead import errors
from fairlead.adapters.kubernetes import schema
from fairlead.domain.analysis.limits import Limits
from fairlead.domain.analysis.verdict import NoData
from fairlead.domain.rollouts.spec import Check, Group, Limiter, Source, Spec, When
from fairlead.domain.rollouts.strategy import Kind, Pace, Scale, Strategy
from fairlead.domain.rollouts.windows import DAYS, Window
from fairlead.domain.traffic.routes import Affinity, How, Match, Where
from fairlead.domain.values import Percent
from fairlead.intents import rollouts


def read(**fields: Any) -> Spec:
    return rollouts.spec(rollouts.convert(fields, rollouts.Rules, "spec"), "spec")


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
    shares = (Pace(Percent(5)), Pace(Percent(20)))

    assert read(strategy={"steps": [5, 20]}).strategy.steps == shares
    assert read(strategy={"paces": [{"weight": 5}, {"weight": 20}]}).strategy.steps == shares
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
    )


@pytest.mark.parametrize(
    ("words", "source", "query"),
    [
        ({"metric": "request-duration"}, Source.QUERY, "request-duration"),
        ({"query": "up{}", "success": "result > 1"}, Source.QUERY, "up{}"),
        ({"web": "http://checks/shop"}, Source.WEB, "http://checks/shop"),
        ({"gate": "http://gate/shop"}, Source.GATE, "http://gate/shop"),
        ({"judge": {"metrics": [{"name": "errors"}]}}, Source.JUDGE, ""),
    ],
)
def test_a_check_says_who_answers_it(words: Any, source: Source, query: str) -> None:
    (then,) = read(checks=[{"name": "one"} | words]).checks

    assert (then.source, then.query) == (source, query)


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
        ({"strategie": {}}, "spec: object contains unknown field strategie"),
        ({"strategy": {"stepz": [5]}}, "spec.strategy: object contains unknown field stepz"),
        ({"strategy": {"steps": [5, 101]}}, "spec.strategy.steps[1]: expected int <= 100"),
        ({"strategy": {"steps": [20, 5]}}, "spec.strategy: steps that go down: [20, 5]"),
        ({"strategy": {"steps": [5], "paces": [{"weight": 5}]}}, "spec.strategy: both steps and"),
        ({"strategy": {"pause": 30}}, "spec.strategy.pause: expected str, got int"),
        ({"strategy": {"pause": "30"}}, "spec.strategy.pause: not a time: '30'"),
        ({"strategy": {"paces": [{"weight": 5, "pause": "x"}]}}, "spec.strategy.paces[0].pause: "),
        ({"strategy": {"bake": "9" * 40 + "d"}}, "spec.strategy.bake: a time out of all bounds"),
        ({"strategy": {"kind": "ab"}}, "spec.strategy: an A/B test without a match"),
        (
            {"strategy": {"kind": "ab", "matches": [{"header": "a"}]}},
            "spec.strategy.matches[0]: one of header and cookie",
        ),
        (
            {"strategy": {"kind": "ab", "matches": [{"header": "a", "regex": "("}]}},
            "spec.strategy.matches[0]: not a regular expression",
        ),
        ({"strategy": {"affinity": {"cookie": ";"}}}, "spec.strategy.affinity: not a cookie"),
        ({"checks": [{"name": "a"}]}, "spec.checks[0]: one of metric, query, web, gate, judge"),
        (
            {"checks": [{"name": "a", "query": "b", "success": "result >"}]},
            "spec.checks[0]: ",
        ),
        (
            {"checks": [{"name": "a", "query": "b", "count": 2}]},
            "spec.checks[0]: count without an interval",
        ),
        ({"checks": [{"name": "a", "metric": "b"}]}, "spec.checks[0].metric: invalid enum value"),
        (
            {"checks": [{"name": "a", "judge": {"metrics": [{"nam": "b"}]}}]},
            "spec.checks[0]: input is not a case to judge: object contains unknown field nam",
        ),
        (
            {"checks": [{"name": "a", "query": "b", "window": "10ms"}]},
            "spec.checks[0]: window of a check below 0:00:01: 0:00:00.010000",
        ),
        ({"windows": [{"begins": "25:00"}]}, "spec.windows[0].begins: not a time of day"),
        ({"windows": [{"zone": "Mars"}]}, "spec.windows[0]: no such time zone: Mars"),
        ({"group": {"name": "a", "members": []}}, "spec.group: members of a group missing"),
        ({"limiter": {"name": "a", "cap": 0}}, "spec.limiter: cap below 1: 0"),
        ({"keep": 0}, "spec: kept revisions below 1: 0"),
    ],
)  # fmt: skip
def test_what_does_not_hold_is_refused_with_its_path(fields: Any, said: str) -> None:
    then = refused(**fields)

    assert then.message.startswith(said)
    assert then.hint


def test_the_words_make_a_structural_schema() -> None:
    made = schema.structural(rollouts.Rules)

    assert made["properties"]["strategy"]["properties"]["steps"]["items"]["maximum"] == 100
    assert made["properties"]["checks"]["items"]["required"] == ["name"]
