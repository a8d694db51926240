"""A generated definition at work: taken as structural, and doing its part of the checks."""

from typing import Any

import pytest

from fairlead.errors import Rejected
from fairlead.kubernetes import schema
from fairlead.kubernetes.objects import Key, Object
from tests.contract.kubernetes import Api, until
from tests.fakes.kubernetes.sample_schema import GADGET, GADGETS


def is_served(definition: Object | None) -> bool:
    conditions = ((definition or {}).get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


@pytest.fixture
async def gadgets(api: Api) -> Api:
    key = Key("", "gadgets.tests.fairlead.dev")
    await api.client.apply(schema.CRDS, schema.definition(GADGET, GADGETS), force=True)
    await until(api.client, schema.CRDS, key, is_served)
    return api


def gadget(api: Api, name: str = "a", **spec: Any) -> Object:
    return {
        "apiVersion": "tests.fairlead.dev/v1alpha1",
        "kind": "Gadget",
        "metadata": {"namespace": api.namespace, "name": name},
        "spec": {"image": "shop:1", "steps": [{"share": 10}], **spec},
    }


async def test_the_definition_is_structural(gadgets: Api) -> None:
    found = await gadgets.client.get(schema.CRDS, Key("", "gadgets.tests.fairlead.dev"))

    conditions = {c["type"]: c["status"] for c in found["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert conditions.get("NonStructuralSchema", "False") == "False"


async def test_defaults_are_filled_in_and_unknown_fields_dropped(gadgets: Api) -> None:
    made = await gadgets.client.create(GADGET, gadget(gadgets, unknown=1, port=80))

    assert made["spec"] == {
        "image": "shop:1",
        "steps": [{"share": 10, "waitSeconds": 60}],
        "mode": "Auto",
        "sort": "slow",
        "port": 80,
        "labels": {},
        "crew": [],
        "paused": False,
    }


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"steps": [{"share": 101}]}, r"spec\.steps\[0\]\.share"),
        ({"mode": "Sideways"}, r"spec\.mode"),
        ({"steps": None}, r"spec\.steps"),
    ],
)
async def test_a_wrong_field_is_named(gadgets: Api, spec: Object, field: str) -> None:
    with pytest.raises(Rejected, match=field):
        await gadgets.client.create(GADGET, gadget(gadgets, **spec))


async def test_rules_refuse_with_their_field_and_words(gadgets: Api) -> None:
    if not gadgets.real:
        pytest.skip("the fake speaks no CEL")

    with pytest.raises(Rejected, match=r"spec\.steps: .*no step over half"):
        await gadgets.client.create(GADGET, gadget(gadgets, steps=[{"share": 60}]))
    with pytest.raises(Rejected, match="name too long"):
        await gadgets.client.create(GADGET, gadget(gadgets, name="a" * 41))


async def test_status_goes_by_its_own_road(gadgets: Api) -> None:
    await gadgets.client.create(GADGET, gadget(gadgets))

    told = await gadgets.client.patch(
        GADGET, gadgets.key("a"), {"status": {"phase": "Afloat"}}, subresource="status"
    )

    assert told["status"]["phase"] == "Afloat"
    assert told["metadata"]["generation"] == 1
