"""What the webhook says of an object of a resource, before it is stored."""

from pathlib import Path
from typing import Any

import pytest

from fairlead import settings
from fairlead.areas.resources.kubernetes.kinds import CloudKinds, kept_secret
from fairlead.areas.resources.settings import ResourcesSettings
from fairlead.kubernetes import rbac
from fairlead.kubernetes.kinds import Kind, Need
from fairlead.kubernetes.objects import Object
from tests.unit.areas.resources.kubernetes.operating import GROUP, ID, described, resource


def kind(folder: Path, **more: Any) -> Kind:
    described(folder)
    store = settings.StoreSettings(state_dir=folder)
    chosen = settings.Settings(store=store, areas=(ResourcesSettings(**more),))
    (made,) = CloudKinds().settle(chosen)
    return made


def made(**properties: Any) -> Object:
    """One that exists in the cloud."""
    return {**resource(properties=properties), "status": {"resourceId": ID}}


@pytest.mark.requirement("resources R3", "resources R21")
@pytest.mark.parametrize(
    ("spec", "path", "told"),
    [
        ({"properties": {"sku": {"capcity": 3}}}, "spec.properties.sku.capcity", "did you mean"),
        ({"properties": {"etag": "1"}}, "spec.properties.etag", "read-only"),
        ({"properties": {"sku": {"capacity": "3"}}}, "spec.properties.sku.capacity", "whole"),
        (
            {"properties": {"properties": {"phrase": "hunter2"}}},
            "spec.properties.properties.phrase",
            "written out",
        ),
        (
            {"properties": {"properties": {"phrase": {"fromSecret": "web"}}}},
            "spec.properties.properties.phrase",
            "SECRET/KEY",
        ),
        ({"type": "Acme.Toys/sett"}, "spec.type", "did you mean Acme.Toys/sets"),
        ({"apiVersion": "1999-01-01"}, "spec.type", "there are: 2026-01-01"),
        ({"policy": {"drift": {"tags": "undo"}}}, "spec.policy.drift", "undo"),
        ({"policy": {"refresh": "often"}}, "spec.policy.refresh", "often"),
        ({"resourceId": "/subscriptions/s"}, "spec.resourceId", "it looks like"),
        (
            {"owner": {"name": "net", "namespace": "other"}},
            "spec.owner.namespace",
            "another namespace",
        ),
    ],
)
def test_a_mistake_is_refused_by_its_field(
    tmp_path: Path, spec: Object, path: str, told: str
) -> None:
    ((at, why),) = kind(tmp_path).review(resource(**spec), None)

    assert at.startswith(path)
    assert told in why
    assert "hunter2" not in why


def test_what_makes_sense_passes(tmp_path: Path) -> None:
    spec = {"tags": {"a": {"fromResource": "net/tags.a"}}, "location": "westus"}

    assert kind(tmp_path).review(resource(properties=spec), None) == ()


@pytest.mark.requirement("resources R21", "resources R33")
@pytest.mark.parametrize(
    ("new", "path"),
    [
        ({"properties": {"properties": {"mode": "Uniform"}}}, "spec.properties.properties.mode"),
        ({"resourceId": f"{ID}2"}, "spec.resourceId"),
        ({"owner": {"name": "other"}}, "spec.owner"),
        ({"resourceName": "other"}, "spec.resourceName"),
    ],
)
def test_what_was_for_the_creation_stays_as_it_was(tmp_path: Path, new: Object, path: str) -> None:
    old = made(properties={"mode": "Flexible"})
    changed = {**old, "spec": {**old["spec"], **new}}
    review = kind(tmp_path).review

    assert [at for at, _ in review(changed, old)] == [path]
    assert review(changed, {**old, "status": {}}) == ()


def test_a_type_may_be_moved_to_another_version_of_its_api(tmp_path: Path) -> None:
    old = made(location="westus")
    changed = {**old, "spec": {**old["spec"], "apiVersion": "2026-01-01"}}

    assert not kind(tmp_path).review(changed, old)


@pytest.mark.parametrize(
    "spec", [{"owner": {"resourceId": "/subscriptions/t/resourceGroups/g"}}, {"resourceId": ID}]
)
def test_a_namespace_has_only_what_it_was_given(tmp_path: Path, spec: Object) -> None:
    within = "/subscriptions/s/resourceGroups/{namespace}, /subscriptions/s/resourceGroups/shared"

    found = kind(tmp_path, resources_within=within).review(resource(**spec), None)

    assert "outside of what this namespace may have" in found[0][1]


def test_the_beginning_of_a_name_is_no_place_of_its_own(tmp_path: Path) -> None:
    within = kind(tmp_path, resources_within="/subscriptions/s/resourceGroups/g")
    review = within.review

    near = resource(owner={"resourceId": f"{GROUP}2"})

    assert "outside" in review(near, None)[0][1]
    assert review(resource(), None) == ()


def test_who_names_a_secret_must_be_able_to_read_it(tmp_path: Path) -> None:
    named = resource(properties={"properties": {"phrase": {"fromSecret": "web-admin/phrase"}}})

    (need,) = kind(tmp_path).needs(named, None)

    path = "spec.properties.properties.phrase"
    assert need == Need(path, "get", rbac.SECRETS, "default", "web-admin")


def test_of_a_secret_a_digest_is_kept() -> None:
    meta = {"namespace": "a", "name": "b", "uid": "u", "resourceVersion": "1"}
    one = kept_secret({"metadata": meta, "data": {"a": "aHVudGVyMg=="}})
    other = kept_secret({"metadata": meta, "data": {"a": "aHVudGVyMw=="}})

    assert one["data"] != other["data"]
    assert "aHVudGVyMg" not in str(one)
