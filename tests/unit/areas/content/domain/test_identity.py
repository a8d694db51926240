"""The id of a cluster in a User-Agent."""

import pytest

from fairlead.areas.content.domain import identity

CLUSTER = "f9fbc65a-52e6-4781-979d-1d5c6b124f9b"


@pytest.mark.parametrize(
    ("agent", "found"),
    [
        (f"insights-operator/4.14.27-$Format:%H$ cluster/{CLUSTER}", CLUSTER),
        (f"cluster/{CLUSTER} more", CLUSTER),
        (f"cluster/{CLUSTER},more", CLUSTER),
        ("cluster/a cluster/b", "a"),
        ("cluster/", ""),
        ("curl/8", ""),
        ("", ""),
    ],
)
def test_it_is_what_follows_the_first_mark(agent: str, found: str) -> None:
    assert identity.cluster(agent) == found
