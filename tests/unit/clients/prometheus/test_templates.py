"""An argument stays an argument, whatever it holds."""

import pytest

from fairlead import errors
from fairlead.clients.prometheus import ENVOY, render


def test_a_counter_and_a_histogram_make_all_metrics_and_need_no_other_argument() -> None:
    rendered = [render(text, {"cluster": "v1", "interval": "1m"}) for text in ENVOY.values()]

    assert sorted(ENVOY) == ["request-count", "request-duration", "request-success-rate"]
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
