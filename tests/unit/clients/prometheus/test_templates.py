"""An argument stays an argument, whatever it holds."""

import pytest

from fairlead import errors
from fairlead.clients.prometheus import BUILT_IN, render

ARGUMENTS = {
    "namespace": "shop",
    "target": "web",
    "service": "web",
    "port": "80",
    "cluster": "v1",
    "interval": "1m",
}


def test_the_istio_metrics_are_those_of_the_reference() -> None:
    rate = render(BUILT_IN["istio"]["request-success-rate"], ARGUMENTS)
    duration = render(BUILT_IN["istio"]["request-duration"], ARGUMENTS)

    labels = (
        'reporter="destination",destination_workload_namespace="shop",destination_workload=~"web"'
    )
    assert rate == (
        f'(sum(rate(istio_requests_total{{{labels},response_code!~"5.*"}}[1m])) or vector(0))'
        f" / sum(rate(istio_requests_total{{{labels}}}[1m])) * 100"
    )
    assert duration == (
        "histogram_quantile(0.99, sum(rate("
        f"istio_request_duration_milliseconds_bucket{{{labels}}}[1m])) by (le))"
    )


def test_every_provider_has_all_metrics_and_needs_no_other_argument() -> None:
    for metrics in BUILT_IN.values():
        rendered = [render(text, ARGUMENTS) for text in metrics.values()]

        assert sorted(metrics) == ["request-count", "request-duration", "request-success-rate"]
        assert not any("{{" in query for query in rendered)


@pytest.mark.parametrize(
    ("template", "value", "query"),
    [
        ('up{a="{{ x }}"}', 'b"} or vector(1) #', 'up{a="b\\"} or vector(1) #"}'),
        ('up{a="{{ x }}"}', "b\\", 'up{a="b\\\\"}'),
        ('up{a="{{ x }}"}', "two\nlines", 'up{a="two\\nlines"}'),
        ("up{a='{{ x }}'}", "it's", "up{a='it\\'s'}"),
        ('up{a=~"{{ x }}"}', "a.b|.*", 'up{a=~"a\\\\.b\\\\|\\\\.\\\\*"}'),
        ('up{a=~"x",b="{{ x }}"}', "a.b", 'up{a=~"x",b="a.b"}'),
        ('up{a!~ "{{x}}"}', "a.b", 'up{a!~ "a\\\\.b"}'),
        ("up{a=~`{{ x }}`}", "a.b", "up{a=~`a\\.b`}"),
        ("rate(up[{{ x }}])", "1m30s", "rate(up[1m30s])"),
        ("up > {{ x }}", "-1.5e3", "up > -1.5e3"),
        ("sum({{ x }})", "http_requests:rate5m", "sum(http_requests:rate5m)"),
        ('up{a="[{{ x }}]"}', "any thing", 'up{a="[any thing]"}'),
    ],
)
def test_an_argument_is_fitted_to_its_place(template: str, value: str, query: str) -> None:
    assert render(template, {"x": value}) == query


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("rate(up[{{ x }}])", "1m]) or vector(1"),
        ("rate(up[{{ x }}])", "web"),
        ("sum({{ x }})", "up) or vector(1"),
        ("sum({{ x }})", 'up{a="b"}'),
        ("up # {{ x }}", "\nor vector(1)"),
        ("up{a=`{{ x }}`}", "`} or vector(1)"),
        ('up{a="\\{{ x }}"}', '"} or vector(1) or up{a="'),
        ('up{a="{{ x }}"}', "a\x00b"),
        ("{{ x }}", ""),
    ],
)
def test_an_argument_that_does_not_fit_is_refused(template: str, value: str) -> None:
    with pytest.raises(errors.Rejected, match="argument x"):
        render(template, {"x": value})


def test_a_missing_argument_is_named() -> None:
    with pytest.raises(errors.Rejected, match="missing query argument: target"):
        render('up{a="{{ target }}"}', {"namespace": "shop"})
