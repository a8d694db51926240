"""The three forms of a rollout's name."""

import pytest

from fairlead.areas.rollouts.domain import names


@pytest.mark.parametrize(
    ("name", "title", "scope", "of_cluster"),
    [
        ("shop", "shop", "", False),
        ("payments/shop", "payments/shop", "payments", False),
        ("payments/shop/7f3c", "payments/shop", "payments", True),
    ],
)
def test_a_name_tells_where_it_belongs(
    name: str, title: str, scope: str, *, of_cluster: bool
) -> None:
    assert names.title(name) == title
    assert names.scope(name) == scope
    assert names.is_of_cluster(name) is of_cluster
