"""Which streams a scope holds."""

import pytest

from fairlead import errors
from fairlead.access import scopes
from fairlead.engine.messages import parse_stream


@pytest.mark.parametrize(
    ("stream", "scope"),
    [
        ("rollout/payments/shop/2b1e", "payments"),
        ("deployment/payments/shop", "payments"),
        ("rollout/shop", ""),
    ],
)
def test_a_stream_belongs_to_what_its_key_begins_with(stream: str, scope: str) -> None:
    assert scopes.of(parse_stream(stream)) == scope


@pytest.mark.parametrize("stream", ["rollout/payments/shop/2b1e", "rollout/shop"])
def test_without_a_scope_everything_is_covered(stream: str) -> None:
    assert scopes.covers(scopes.EVERYWHERE, parse_stream(stream))


@pytest.mark.parametrize(
    "stream", ["rollout/payments-2/shop/1", "rollout/pay/shop/1", "rollout/payments", "payments/a"]
)
def test_what_only_looks_alike_is_outside_and_not_told_of(stream: str) -> None:
    with pytest.raises(errors.NotFound, match="no such stream"):
        scopes.check("payments", parse_stream(stream))


@pytest.mark.parametrize("text", ["a/b", "*", "payments%", " x", "-", "p" * 80])
def test_what_is_no_project_or_namespace_is_refused(text: str) -> None:
    with pytest.raises(errors.Rejected, match="not a project or namespace"):
        scopes.parse(text)
