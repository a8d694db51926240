"""From a check to the query that is sent."""

import datetime as dt
from typing import Any

import pytest

from fairlead import errors
from fairlead.analysis import fields
from fairlead.checks import queries, spec
from fairlead.checks.subject import Side
from tests.unit.checks.about import MINUTE, about, naming

OWN = 'sum(rate(orders{pod=~"{{ target }}-.*",of="{{ primary-target }}"}[{{ interval }}]))'


def made(query: str, slot: Side = Side.CANARY, window: dt.timedelta = MINUTE) -> str:
    return queries.rendered(query, *queries.arguments(naming, about(), slot, window))


def test_a_built_in_metric_is_asked_of_the_slots_own_workload() -> None:
    canary, primary = (made("request-success-rate", slot) for slot in (Side.CANARY, Side.PRIMARY))

    assert 'destination_workload=~"shop-canary"' in canary
    assert 'destination_workload=~"shop"' in primary
    assert "[60s]" in canary


def test_a_template_knows_both_slots() -> None:
    assert made(OWN) == 'sum(rate(orders{pod=~"shop-canary-.*",of="shop"}[60s]))'


def test_a_template_knows_the_rollout() -> None:
    asked = made('x{of="{{ rollout }}",v="{{ revision }}"} > {{ weight }}')
    of_primary = made('x{v="{{ revision }}"}', Side.PRIMARY)

    assert asked == 'x{of="team/shop",v="v2"} > 10'
    assert of_primary == 'x{v="v1"}'


def test_a_query_without_places_is_sent_as_it_is() -> None:
    assert made("up == 1") == "up == 1"


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (dt.timedelta(minutes=5), "300s"),
        (dt.timedelta(seconds=1.9), "1s"),
        (dt.timedelta(milliseconds=10), "1s"),
        (dt.timedelta(seconds=-3), "1s"),
    ],
)
def test_a_window_has_whole_seconds(window: dt.timedelta, expected: str) -> None:
    assert queries.duration(window) == expected


@pytest.mark.parametrize("query", ["", "  "])
def test_an_empty_query_is_refused(query: str) -> None:
    with pytest.raises(errors.Rejected, match="without a query"):
        made(query)


def test_a_built_in_metric_needs_somebody_who_counts() -> None:
    with pytest.raises(errors.Rejected, match=r"nobody counts requests.*: request-duration"):
        queries.rendered("request-duration", {}, {})


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ({"name": "errors", "query": "sum(errors)"}, "sum(errors)"),
        ({"name": "request-duration"}, "request-duration"),
        ({"name": "errors", "query": {"customInlineTemplate": "PromQL:sum(e)"}}, "sum(e)"),
    ],
)
def test_the_judges_metrics_have_queries(metric: dict[str, Any], expected: str) -> None:
    assert queries.of_metric(fields.Metric(**metric)) == expected


@pytest.mark.parametrize(
    "query", [None, 7, {"metricName": "errors"}, {"customInlineTemplate": "PromQL:x{a='${scope}'}"}]
)
def test_a_metric_without_a_query_we_can_read_is_refused(query: object) -> None:
    with pytest.raises(errors.Rejected, match="errors"):
        queries.of_metric(fields.Metric(name="errors", query=query))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('sum(rate(a{b="(["}[1m])) # (', None),
        (r"a{b='\'('}", None),
        (r"a{b=`\`}", None),
        ("sum(", "("),
        ("sum)", ")"),
        ("a{b", "{"),
        ("(]", "]"),
        ('a{b="', '"'),
        ("a['", "'"),
    ],
)
def test_what_is_not_closed_is_found(query: str, expected: str | None) -> None:
    assert queries.unclosed(query) == expected


def test_every_built_in_metric_has_a_title_and_a_unit() -> None:
    assert set(spec.BUILT_IN) == queries.METRICS
