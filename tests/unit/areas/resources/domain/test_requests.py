"""The one request that is sent, and what a person reads of it."""

from typing import Any

import pytest

from fairlead.areas.resources.domain import requests
from fairlead.areas.resources.domain.delta import Known
from fairlead.areas.resources.domain.model import Json, Model
from tests.unit.areas.resources.domain import scale_set
from tests.unit.areas.resources.domain.scale_set import DIFFER, SEAL, SETS

URL = "/subscriptions/s/resourceGroups/g/providers/Acme.Toys/sets/a"


def update(spec: Json, shown: Json | None = None, model: Model = SETS) -> requests.Request | None:
    shown = scale_set.observed() if shown is None else shown
    before = Known(SEAL.sealed(SETS, scale_set.spec()), shown)
    return requests.update(model, URL, spec, shown, DIFFER.changes(spec, before))


def changed(**more: Any) -> Json:
    spec = scale_set.spec()
    spec["properties"] |= more
    return spec


@pytest.mark.requirement("resources R26")
def test_nothing_changed_sends_nothing() -> None:
    assert update(scale_set.spec()) is None


def test_what_is_not_there_is_put_as_the_spec_says() -> None:
    assert requests.create(SETS, URL, scale_set.spec()) == requests.Request(
        *("PUT", URL, [requests.Reason("", "it does not exist")], scale_set.spec()),
        if_none_match="*",
    )


@pytest.mark.requirement("resources R18", "resources R27")
def test_a_patch_says_what_changed_and_no_more() -> None:
    spec = scale_set.spec()
    spec["tags"] = {"tag2": "new"}

    assert update(spec) == requests.Request(
        "PATCH",
        URL,
        [
            requests.Reason("tags.tag2", "not written yet"),
            requests.Reason("tags.tag1", "removed from the spec"),
        ],
        {"tags": {"tag2": "new", "tag1": None}},
        '"1"',
    )


@pytest.mark.requirement("resources R20", "resources R27")
def test_a_list_in_a_patch_is_whole_with_the_items_of_others() -> None:
    shown = scale_set.observed()
    shown["properties"]["rules"].append({"name": "theirs", "port": 1})

    sent = update(changed(rules=[{"name": "web", "port": 8080}]), shown)

    assert sent is not None
    assert (sent.method, sent.body) == (
        "PATCH",
        {"properties": {"rules": [{"name": "web", "port": 8080}, {"name": "theirs", "port": 1}]}},
    )


@pytest.mark.requirement("resources R27", "resources R28")
def test_one_path_that_patch_does_not_take_makes_it_a_put_of_all_that_was_seen() -> None:
    spec = changed(notes="new")
    spec["tags"] = {"tag1": "other"}
    shown = scale_set.observed(sku={"name": "Standard_D2_v3", "capacity": 7}, extra={"a": 1})

    sent = update(spec, shown)

    assert sent is not None
    assert sent.method == "PUT"
    assert sent.if_match == '"1"'
    assert sent.body == {
        "sku": {"name": "Standard_D2_v3", "capacity": 7},
        "tags": {"tag1": "other"},
        "properties": {
            "mode": "Flexible",
            "rules": [{"name": "web", "port": 80}],
            "notes": "new",
        },
        "id": "/sets/a",
        "extra": {"a": 1},
    }


@pytest.mark.requirement("resources R28")
def test_a_put_says_again_what_no_answer_shows() -> None:
    spec = changed(phrase="hunter2", disks=[{"size": 1, "key": "hunter3"}], notes="new")
    before = changed(phrase="hunter2", disks=[{"size": 1, "key": "hunter3"}])
    shown = scale_set.observed()
    shown["properties"]["disks"] = [{"size": 1}]
    known = Known(SEAL.sealed(SETS, before), shown, DIFFER.settled(before, shown))

    sent = requests.update(SETS, URL, spec, shown, DIFFER.changes(spec, known))

    assert sent is not None
    assert [each.path for each in sent.reasons] == ["properties.notes"]
    assert sent.body is not None
    assert sent.body["properties"]["phrase"] == "hunter2"
    assert sent.body["properties"]["disks"] == [{"size": 1, "key": "hunter3"}]


def test_a_type_without_patch_is_put() -> None:
    spec = scale_set.spec()
    spec["tags"]["tag1"] = "other"

    sent = update(spec, model=scale_set.model(patch=False))

    assert sent is not None
    assert sent.method == "PUT"


def test_a_plan_shows_no_secret_anywhere() -> None:
    spec = changed(phrase="hunter2", disks=[{"size": 1, "key": "hunter3"}])
    sent = requests.create(SETS, URL, spec)

    told = requests.shown(SETS, sent)

    assert told.body is not None
    assert told.body["properties"]["phrase"] == "(secret)"
    assert told.body["properties"]["disks"] == [{"size": 1, "key": "(secret)"}]
    assert sent.body == spec
