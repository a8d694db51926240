"""What an API shows, held against a declaration: what is told of it, and what would be sent."""

from dataclasses import replace
from typing import Any

import pytest

from fairlead.areas.resources.domain import requests
from fairlead.areas.resources.domain.model import Json
from fairlead.areas.resources.domain.reconcile.messages import LastApplied
from fairlead.areas.resources.domain.reconcile.planning import Planned, planned
from tests.unit.areas.resources.domain import scale_set
from tests.unit.areas.resources.domain.reconcile.cloud import DECLARED, changed
from tests.unit.areas.resources.domain.scale_set import SEAL, SETS

APPLIED = LastApplied(SEAL.sealed(SETS, scale_set.spec()))


def plan(observed: Json | None, last: LastApplied = APPLIED, **body: Any) -> Planned:
    spec = scale_set.spec()
    spec["properties"] |= body
    return planned(SETS, SEAL, replace(DECLARED, properties=spec), last, observed)


def state(name: str) -> Json:
    shown = scale_set.observed()
    shown["properties"]["provisioningState"] = name
    return shown


def test_what_is_not_there_is_made_and_only_if_it_is_still_not_there() -> None:
    then = plan(None, LastApplied())

    assert not then.observation.exists
    assert then.request is not None
    assert (then.request.method, then.request.if_none_match) == ("PUT", "*")


@pytest.mark.requirement("resources R33")
def test_what_nobody_applied_yet_is_taken_over_as_it_is() -> None:
    assert plan(scale_set.observed(), LastApplied()).request is None


@pytest.mark.parametrize(("name", "busy"), [("Creating", "Creating"), ("Succeeded", ""), ("", "")])
def test_a_state_that_the_api_works_on_is_busy(name: str, busy: str) -> None:
    assert plan(state(name)).observation.busy == busy


def test_what_the_api_could_not_bring_about_is_broken_unless_there_is_more_to_write() -> None:
    assert "Failed" in plan(state("Failed")).observation.broken
    again = plan(state("Failed"), notes="new").observation
    assert (again.broken, again.plan is not None) == ("", True)


@pytest.mark.requirement("resources R21")
def test_what_is_fixed_since_the_creation_is_told_and_not_asked_for() -> None:
    then = plan(scale_set.observed(), mode="Uniform")

    assert then.request is None
    assert "properties.mode: fixed once the resource exists" in then.observation.broken


@pytest.mark.requirement("resources R25")
def test_no_secret_is_told() -> None:
    then = plan(scale_set.observed(), phrase="hunter2")

    assert then.request is not None
    assert "hunter2" in str(then.request)
    assert "hunter2" not in str(then.observation)


def test_a_digest_is_of_the_whole_request_with_its_secrets_but_not_of_an_etag() -> None:
    def digest(phrase: str, etag: str) -> str:
        found = plan(scale_set.observed(etag=etag), phrase=phrase).observation.plan
        assert found is not None
        return found.digest

    assert digest("a", '"1"') == digest("a", '"2"')
    assert digest("a", '"1"') != digest("b", '"1"')


def test_what_the_api_made_of_values_is_told_sealed() -> None:
    shown = scale_set.observed(location="westus")
    then = planned(
        SETS,
        SEAL,
        replace(DECLARED, properties={**scale_set.spec(), "location": "West US"}),
        APPLIED,
        shown,
    )

    assert then.observation.settled == {"location": "westus"}


@pytest.mark.requirement("resources R26", "resources R29")
def test_what_an_attempt_may_have_brought_goes_with_its_declaration() -> None:
    tried = changed(old="x").properties
    tried["properties"] = {**tried["properties"], "rules": [{"name": "ssh", "port": 22}]}
    last = replace(APPLIED, attempted=(SEAL.sealed(SETS, tried),))
    shown = scale_set.observed()
    shown["tags"] |= {"old": "x", "theirs": "1"}
    shown["properties"]["rules"].append({"name": "ssh", "port": 22})

    then = plan(shown, last)

    assert then.request is not None
    assert {each.path for each in then.request.reasons} == {
        "tags.old",
        "properties.rules[name=ssh]",
    }
    assert then.request.body == {
        "tags": {"old": None},
        "properties": {"rules": [{"name": "web", "port": 80}]},
    }


@pytest.mark.requirement("resources R26")
def test_what_is_there_already_is_not_written_again() -> None:
    declared = changed(tag2="b")
    shown = scale_set.observed(tags={"tag2": "b"})

    assert planned(SETS, SEAL, declared, APPLIED, shown).request is None


def test_what_is_shown_of_a_request_has_its_condition() -> None:
    request = plan(None, LastApplied()).request
    assert request is not None
    assert requests.shown(SETS, request).if_none_match == "*"
