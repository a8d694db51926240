"""What a table refuses in our words, before Envoy would in its own."""

from collections.abc import Callable

import pytest

from fairlead import errors
from fairlead.clients.envoy import (
    ByCookie,
    ByHeader,
    CookieIs,
    HeaderIs,
    Mirror,
    Rule,
    Site,
    Table,
    Version,
    Weight,
)

V1 = Version("v1", (8081,))


@pytest.mark.parametrize("percents", [(90, 11), (110, -10), (99,), (0, 0), ()])
def test_weights_that_are_not_a_whole_are_refused(percents: tuple[int, ...]) -> None:
    with pytest.raises(errors.Rejected, match="do not add up to 100 %"):
        Rule(tuple(Weight(f"v{number}", each) for number, each in enumerate(percents)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Version("V1", (1,)),
        lambda: Version("v1", ()),
        lambda: HeaderIs("x y", "1"),
        lambda: CookieIs("a;b", "1"),
        lambda: ByCookie("a=b"),
        lambda: ByHeader(""),
        lambda: Rule((Weight("v1", 100),), mirror=Mirror("v1", 101)),
    ],
)
def test_malformed_parts_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(errors.Rejected):
        make()


@pytest.mark.parametrize(
    "rule",
    [Rule((Weight("v2", 100),)), Rule((Weight("v1", 100),), mirror=Mirror("v2"))],
)
def test_a_rule_to_a_version_that_is_not_there_is_refused(rule: Rule) -> None:
    with pytest.raises(errors.Rejected, match="names a version that is not there: v2") as refused:
        Table((V1,), (Site("shop", (rule,)),))

    assert refused.value.hint == "there are: v1"


def test_versions_that_look_alike_in_the_numbers_are_refused() -> None:
    with pytest.raises(errors.Rejected, match="cannot tell apart"):
        Table((Version("shop-1.2", (1,)), Version("shop-1_2", (2,))), ())
