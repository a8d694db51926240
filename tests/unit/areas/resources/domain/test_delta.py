"""What has to change: by the spec, by what was applied, and by what others did."""

from dataclasses import replace
from typing import Any

import pytest

from fairlead.areas.resources.domain.delta import Change, Known
from fairlead.areas.resources.domain.model import NOTHING, Json, written
from tests.unit.areas.resources.domain import scale_set
from tests.unit.areas.resources.domain.scale_set import DIFFER, SEAL, SETS


def known(shown: Json | None = None) -> Known:
    return Known(SEAL.sealed(SETS, scale_set.spec()), shown)


def told(spec: Json, beside: Known) -> dict[str, Any]:
    return {written(each.path): each.value for each in DIFFER.changes(spec, beside)}


@pytest.mark.requirement("resources R26")
def test_a_spec_that_was_applied_changes_nothing() -> None:
    assert told(scale_set.spec(), known()) == {}
    assert told(scale_set.spec(), known(scale_set.observed())) == {}


@pytest.mark.requirement("resources R26")
def test_what_the_owner_changed_is_written_and_nothing_else() -> None:
    spec = scale_set.spec()
    spec["tags"] = {"tag1": "other", "tag2": "new"}
    spec["properties"]["rules"].append({"name": "admin", "port": 22})

    assert told(spec, known(scale_set.observed())) == {
        "tags.tag1": "other",
        "tags.tag2": "new",
        "properties.rules[name=admin]": {"name": "admin", "port": 22},
    }


@pytest.mark.requirement("resources R18", "resources R19")
def test_an_autoscaler_keeps_its_capacity_through_a_change_of_tags() -> None:
    spec = scale_set.spec()
    spec["tags"]["tag1"] = "other"
    shown = scale_set.observed(sku={"name": "Standard_D2_v3", "capacity": 7})

    assert told(spec, known(shown)) == {"tags.tag1": "other"}


@pytest.mark.requirement("resources R19")
def test_a_capacity_that_the_owner_edits_is_written_once() -> None:
    spec = scale_set.spec()
    spec["sku"]["capacity"] = 5

    assert told(spec, known(scale_set.observed())) == {"sku.capacity": 5}
    assert told(spec, Known(SEAL.sealed(SETS, spec), scale_set.observed())) == {}


@pytest.mark.requirement("resources R19", "resources R20")
def test_a_property_that_is_left_out_is_handed_over_and_a_key_of_a_map_removed() -> None:
    spec = scale_set.spec()
    del spec["sku"]["capacity"]
    spec["tags"] = {}

    assert told(spec, known(scale_set.observed())) == {"tags.tag1": NOTHING}


@pytest.mark.requirement("resources R20")
def test_the_last_item_of_a_list_is_removed_and_those_of_others_stay() -> None:
    spec, shown = scale_set.spec(), scale_set.observed()
    spec["properties"]["rules"] = []
    shown["properties"]["rules"].append({"name": "theirs", "port": 1})

    assert told(spec, known(shown)) == {"properties.rules[name=web]": NOTHING}


def test_an_item_is_known_by_its_key_wherever_it_stands() -> None:
    spec, shown = scale_set.spec(), scale_set.observed()
    shown["properties"]["rules"].insert(0, {"name": "theirs", "port": 1})
    spec["properties"]["rules"][0]["port"] = 8080

    assert told(spec, known(shown)) == {"properties.rules[name=web].port": 8080}


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        ({"tags": {"tag1": "by hand"}}, "drifted: it is 'by hand'"),
        ({"tags": {}}, "drifted: it is gone"),
    ],
)
def test_a_drift_is_written_back_with_what_was_seen(shown: Json, why: str) -> None:
    changes = DIFFER.changes(scale_set.spec(), known(scale_set.observed(**shown)))

    assert changes == (Change(("tags", "tag1"), "value", why),)


def test_an_item_that_somebody_removed_is_written_back() -> None:
    shown = scale_set.observed()
    shown["properties"]["rules"] = []

    assert told(scale_set.spec(), known(shown)) == {
        "properties.rules[name=web]": {"name": "web", "port": 80}
    }


@pytest.mark.parametrize(("policy", "written_back"), [("ignore", {}), ("init-only", {})])
def test_a_policy_leaves_a_drift_to_others(policy: Any, written_back: Json) -> None:
    shown = scale_set.observed(tags={"tag1": "by hand"})
    differ = replace(DIFFER, policies={"tags": policy})

    assert differ.changes(scale_set.spec(), known(shown)) == ()


def test_what_is_for_the_creation_only_is_not_written_later_whatever_the_spec_says() -> None:
    spec = scale_set.spec()
    spec["tags"]["tag1"] = "other"
    differ = replace(DIFFER, policies={"tags": "init-only"})

    assert differ.changes(spec, known(scale_set.observed())) == ()
    assert [each.path for each in differ.changes(spec, Known({}))][1:3] == [
        ("sku", "capacity"),
        ("tags", "tag1"),
    ]


@pytest.mark.requirement("resources R20")
def test_what_the_api_made_of_a_value_is_no_drift_until_it_changes_again() -> None:
    spec = scale_set.spec() | {"location": "West US"}
    shown = scale_set.observed(location="westus")
    beside = Known(SEAL.sealed(SETS, spec), shown, DIFFER.settled(spec, shown))

    assert told(spec, beside) == {}
    moved = replace(beside, observed=scale_set.observed(location="eastus"))
    assert told(spec, moved) == {"location": "West US"}


def test_a_value_that_the_api_left_out_is_no_drift_either() -> None:
    spec = scale_set.spec()
    spec["properties"]["notes"] = "x"
    settled = DIFFER.settled(spec, scale_set.observed())

    assert settled == {"properties.notes": None}
    assert told(spec, Known(SEAL.sealed(SETS, spec), scale_set.observed(), settled)) == {}


def test_a_secret_is_no_drift_for_it_is_never_shown_and_a_new_one_is_written() -> None:
    spec = scale_set.spec()
    spec["properties"]["phrase"] = "hunter2"
    beside = Known(SEAL.sealed(SETS, spec), scale_set.observed())

    assert told(spec, beside) == {}
    spec["properties"]["phrase"] = "hunter3"
    assert told(spec, beside) == {"properties.phrase": "hunter3"}


def test_a_list_without_keys_is_one_value() -> None:
    spec, shown = scale_set.spec(), scale_set.observed()
    spec["properties"]["zones"] = shown["properties"]["zones"] = ["1", "2"]
    beside = Known(SEAL.sealed(SETS, spec), shown)

    assert told(spec, beside) == {}
    spec["properties"]["zones"] = ["2"]
    assert told(spec, beside) == {"properties.zones": ["2"]}


@pytest.mark.requirement("resources R26")
def test_what_somebody_did_already_is_no_change() -> None:
    spec = scale_set.spec()
    spec["tags"] = {"tag2": "new"}
    spec["properties"]["rules"] = []
    shown = scale_set.observed(tags={"tag2": "new"})
    shown["properties"]["rules"] = []

    known = Known(SEAL.sealed(SETS, scale_set.spec()), shown)

    assert DIFFER.changes(spec, known) == ()
