"""The kinds' reviews as the API server asks for them."""

import json
from typing import Any

import pytest

from fairlead.errors import Rejected
from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.objects import Object
from fairlead.kubernetes.webhook import admission
from fairlead.kubernetes.webhook.webhook import paths_of, reviewer
from tests.operator.sample_kind import BUNDLE, KIND, bundle

BAD = bundle("bay", "north", cargo="contraband")


def answer(kind: Kind, new: Object | None, old: Object | None = None) -> Any:
    request = {"uid": "u-1", "operation": "UPDATE" if old else "CREATE", "object": new}
    request |= {"oldObject": old, "namespace": "bay", "name": "north"}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    reviewed = admission.review(json.dumps(body).encode(), reviewer(kind))
    return json.loads(reviewed.answer())["response"]


def test_each_kind_has_the_path_that_its_webhook_names() -> None:
    assert paths_of(KIND) == ["/validate/bundles.tests.fairlead.dev"]


def test_a_problem_is_told_with_its_field() -> None:
    said = answer(KIND, BAD)

    assert said["allowed"] is False
    assert said["status"]["message"] == "spec.cargo: not carried: contraband"
    assert said["status"]["details"]["causes"][0]["field"] == "spec.cargo"


def test_what_was_before_is_known_to_the_review() -> None:
    held = bundle("bay", "north", hold=True, gadgets=3)

    said = answer(KIND, bundle("bay", "north", hold=True, gadgets=1), held)

    assert said["status"]["message"] == "spec.gadgets: a held bundle keeps its gadgets: 3"


def test_a_bad_object_can_still_be_deleted() -> None:
    going = {**BAD, "metadata": {**BAD["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}

    assert answer(KIND, going, BAD)["allowed"] is True
    assert answer(KIND, None, BAD)["allowed"] is True


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({"finalizers": ["tests.fairlead.dev/foreign"]}, True),
        ({"labels": {"team": "blue"}}, False),
        ({"annotations": {"fairlead.dev/approve": "1"}}, False),
    ],
    ids=["finalizer", "label", "annotation"],
)
def test_what_no_review_reads_is_not_reviewed(change: Object, *, allowed: bool) -> None:
    after = {**BAD, "metadata": {**BAD["metadata"], **change}}

    assert answer(KIND, after, BAD)["allowed"] is allowed


def test_a_review_that_refuses_as_a_whole_is_told_of_the_spec() -> None:
    def review(new: Object, _: Object | None) -> list[tuple[str, str]]:
        raise Rejected(f"no such port: {new['metadata']['name']}", hint="build one")

    kind = Kind(
        KIND.api, BUNDLE, KIND.shown, observe=KIND.observe, delete=KIND.delete, review=review
    )

    assert answer(kind, BAD)["status"]["message"] == "spec: no such port: north; build one"
