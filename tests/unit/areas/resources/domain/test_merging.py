"""Changes in a body: what was named differs, everything else is as it was."""

from typing import Any

import pytest

from fairlead.areas.resources.domain import merging
from fairlead.areas.resources.domain.delta import Change
from fairlead.areas.resources.domain.model import NOTHING, Path
from tests.unit.areas.resources.domain import scale_set
from tests.unit.areas.resources.domain.scale_set import SETS, rule

WEB: Path = ("properties", "rules", rule("web"))


def merged(path: Path, value: Any) -> Any:
    return merging.merged(scale_set.spec(), [Change(path, value, "")])


@pytest.mark.parametrize(
    ("path", "value", "rules"),
    [
        ((*WEB, "port"), 8080, [{"name": "web", "port": 8080}]),
        (WEB, {"name": "web", "to": "all"}, [{"name": "web", "to": "all"}]),
        (WEB, NOTHING, []),
        (("properties", "rules"), [], []),
    ],
)
def test_a_change_in_a_list_leaves_what_it_does_not_name(
    path: Path, value: Any, rules: list[Any]
) -> None:
    body = merged(path, value)

    assert body["properties"] == {"mode": "Flexible", "rules": rules}
    assert body["sku"] == scale_set.spec()["sku"]


def test_what_is_not_there_is_made_on_the_way_and_not_removed_twice() -> None:
    assert merged(("new", "list", rule("a")), {"name": "a"})["new"] == {"list": [{"name": "a"}]}
    assert merged(("new", "thing"), NOTHING) == scale_set.spec()


def test_what_was_observed_is_never_changed_itself() -> None:
    observed = scale_set.observed()

    merging.merged(observed, [Change((*WEB, "port"), 1, "")])

    assert observed == scale_set.observed()


@pytest.mark.requirement("resources R28")
def test_what_the_api_alone_says_is_not_sent_back() -> None:
    kept = merging.taken(SETS, scale_set.observed())

    assert "state" not in kept["properties"]
    assert "etag" not in kept
    assert kept["tags"] == {"tag1": "value"}


@pytest.mark.requirement("resources R20")
def test_a_merge_patch_removes_by_null_and_sends_a_list_whole() -> None:
    changes = [Change(("tags", "tag1"), NOTHING, ""), Change((*WEB, "port"), 1, "")]
    body = merging.merged(scale_set.spec(), changes)

    assert merging.patch(body, changes) == {
        "tags": {"tag1": None},
        "properties": {"rules": [{"name": "web", "port": 1}]},
    }
