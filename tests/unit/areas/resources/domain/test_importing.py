"""What an API shows becomes a spec: what may be written, and nothing that would be a change."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.areas.resources import descriptions
from fairlead.areas.resources.domain import references, urls, validation
from fairlead.areas.resources.domain.importing import imported
from fairlead.areas.resources.domain.model import Json, Model
from fairlead.areas.resources.domain.reconcile.messages import Declared, LastApplied
from fairlead.areas.resources.domain.reconcile.planning import planned
from tests.unit.areas.resources.domain.scale_set import SEAL, model, observed, spec
from tests.unit.areas.resources.swagger import AZURE, needs_azure

SETS = model()


def shown(**more: Any) -> Json:
    return observed(
        location="westus",
        properties={
            **spec()["properties"],
            "state": "Succeeded",
            "notes": None,
            "theirs": 1,
            "phrase": "hunter2",
            "disks": [{"size": 4, "key": "abc"}],
            **more,
        },
    )


def test_only_what_may_be_written_is_taken_with_secrets_by_name() -> None:
    found = imported(SETS, SEAL, "web.1", shown())

    body = {
        **spec()["properties"],
        "phrase": {"fromSecret": "web-1-properties-phrase"},
        "disks": [{"size": 4, "key": {"fromSecret": "web-1-properties-disks-0-key"}}],
    }
    assert found.properties == {**spec(), "location": "westus", "properties": body}
    assert [*found.secrets] == ["properties.phrase", "properties.disks.0.key"]
    assert found.differing == ()
    assert "hunter2" not in repr(found)


@pytest.mark.requirement("resources R33")
@pytest.mark.parametrize("model_", [model(), model(patch=False)], ids=["PATCH", "PUT"])
def test_what_was_imported_plans_to_nothing_and_its_change_to_one_request(model_: Model) -> None:
    found = imported(model_, SEAL, "web", shown())
    values = {"web-properties-phrase": "hunter2", "web-properties-disks-0-key": "abc"}
    properties = references.resolved(found.properties, values.__getitem__)

    told = Declared("Acme.Toys/sets", "1", "/sets/a", properties)
    then = planned(model_, SEAL, told, LastApplied(), shown())

    unnamed = references.resolved(found.properties, lambda name: name)
    assert list(validation.problems(model_, unnamed)) == []
    assert then.request is None
    properties["tags"] = {"tag1": "new"}
    changed = planned(model_, SEAL, told, LastApplied(), shown()).request
    assert changed is not None
    assert [each.path for each in changed.reasons] == ["tags.tag1"]


def test_a_list_that_is_shown_with_more_than_may_be_written_is_left_out_and_told() -> None:
    found = imported(SETS, SEAL, "web", shown(disks=[{"size": 4, "made": "today"}]))

    assert "disks" not in found.properties["properties"]
    assert found.differing == ("properties.disks",)


@needs_azure
@pytest.mark.requirement("resources R1", "resources R33")
def test_whatever_the_real_descriptions_give_as_an_example_plans_to_nothing() -> None:
    models = [Model.of(each) for each in descriptions.read(AZURE, descriptions.files([AZURE]), {})]
    seen = 0
    for id_, answer in examples():
        for of_type in [each for each in models if urls.fits(each.type.url, id_)][:1]:
            found = imported(of_type, SEAL, "web", answer)
            unnamed = references.resolved(found.properties, lambda name: name)
            told = Declared(of_type.type.type, "1", id_, unnamed)
            assert list(references.problems(of_type, found.properties)) == []
            if not found.secrets:
                assert planned(of_type, SEAL, told, LastApplied(), answer).request is None
                seen += 1
    assert seen > 300


def examples() -> Iterator[tuple[str, Json]]:
    """What GET, PUT and PATCH answer in the examples of the descriptions."""
    for file in AZURE.rglob("examples/**/*.json"):
        answers = json.loads(file.read_text(encoding="utf-8-sig")).get("responses", {})
        for each in answers.values():
            body = each.get("body") if isinstance(each, dict) else None
            if isinstance(body, dict) and isinstance(body.get("id"), str):
                yield f"/{body['id'].strip('/')}", body
