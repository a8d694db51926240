"""Which pushes a target takes, and what it may not say."""

import time
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.deployments.specs import reading, target

TARGET: dict[str, Any] = {
    "environment": "prod",
    "application": "shop",
    "repository": "acme/shop",
    "branches": ["main", "release/*"],
    "tags": ["v*.*"],
}


@pytest.mark.parametrize(
    ("ref", "taken"),
    [
        ("refs/heads/main", True),
        ("refs/heads/main2", False),
        ("refs/heads/release/1", True),
        ("refs/heads/release/1/2", True),
        ("refs/heads/release", False),
        ("refs/tags/main", False),
        ("refs/tags/v1.2", True),
        ("refs/tags/v1", False),
        ("refs/pull/1/head", False),
        ("main", False),
    ],
)
def test_a_push_is_for_the_targets_whose_patterns_it_fits(ref: str, taken: bool) -> None:  # noqa: FBT001 - a column of the table
    assert reading.push_target(TARGET).takes(ref) is taken


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("*", "", True),
        ("*", "any/thing", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*c", "a-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("*b*", "abc", True),
        ("ab*bc", "abc", False),
        ("[ab]", "a", False),
        ("a?c", "abc", False),
    ],
)
def test_only_a_star_stands_for_others(pattern: str, name: str, fits: bool) -> None:  # noqa: FBT001 - a column of the table
    assert target.fits(pattern, name) is fits


def test_a_pattern_made_to_take_long_does_not() -> None:
    began = time.process_time()

    assert not target.fits("*a" * 5 + "b", "a" * 100_000)

    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("path", "../secrets.yaml"),
        ("path", "/etc/passwd"),
        ("path", "a/.git/config"),
        ("repository", "acme"),
        ("repository", "acme/../other/shop"),
        ("repository", 'acme/shop" or "1'),
        ("repository", "https://elsewhere.example/acme/shop"),
        ("environment", "Prod"),
        ("application", "shop-2"),
        ("application", "s" * 150),
        ("provider", "elsewhere"),
        ("branches", ["*" * 6]),
        ("branches", [""]),
        ("paths", ["x"]),
    ],
)
def test_what_leads_elsewhere_is_refused_with_its_field(field: str, said: Any) -> None:
    with pytest.raises(errors.Invalid) as refused:
        reading.push_target({**TARGET, field: said})

    assert refused.value.problems[0].path.startswith(field)
    assert refused.value.hint
