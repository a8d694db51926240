"""Typed kinds: what they are called, what they show, and the document's example as it stands."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead import settings
from fairlead.areas.resources import catalogue, descriptions
from fairlead.areas.resources.host import CATALOGUE
from fairlead.areas.resources.kubernetes import generated
from fairlead.areas.resources.kubernetes.kinds import CLOUD_RESOURCES, CloudKinds
from fairlead.areas.resources.settings import ResourcesSettings
from fairlead.errors import Rejected
from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.objects import Object
from fairlead.kubernetes.schema import CRDS
from tests.architecture.sources import ROOT
from tests.unit.areas.resources.domain.scale_set import SETS
from tests.unit.areas.resources.kubernetes import operating, stories
from tests.unit.areas.resources.kubernetes.operating import ID, SETS_KIND, condition, site
from tests.unit.areas.resources.swagger import AZURE, needs_azure

VMSS = "Microsoft.Compute/virtualMachineScaleSets"
PAGE = (ROOT / "docs" / "reference" / "cloud-resources.md").read_text("utf-8")
WHOLE, DOCUMENT, *_ = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def served(folder: Path, *types: str) -> tuple[Kind, ...]:
    wanted = ResourcesSettings(resources_kinds=",".join(types))
    store = settings.StoreSettings(state_dir=folder)
    return CloudKinds().settle(settings.Settings(store=store, areas=(wanted,)))


def spec_of(crd: Object) -> Any:
    (version,) = crd["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]


@pytest.mark.requirement("resources R8")
@pytest.mark.parametrize(
    ("type_", "kind", "plural", "short"),
    [
        (VMSS, "virtualMachineScaleSet", "virtualmachinescalesets", ("vmss",)),
        ("Microsoft.Network/virtualNetworks", "virtualNetwork", "virtualnetworks", ()),
        (
            "Microsoft.Network/virtualNetworks/subnets",
            "virtualNetworkSubnet",
            "virtualnetworksubnets",
            ("vns",),
        ),
        ("Microsoft.Cache/redis", "redis", "rediss", ()),
        ("Microsoft.Network/publicIPAddresses", "publicIPAddress", "publicipaddresses", ("pipa",)),
        ("pets/policies", "petPolicy", "petpolicies", ()),
    ],
)
def test_a_kind_is_called_as_its_type(
    type_: str, kind: str, plural: str, short: tuple[str, ...]
) -> None:
    found = generated.api(type_)

    assert (found.kind, found.plural) == (kind, plural)
    assert generated.short_names(found) == short


def test_a_typed_kind_has_what_may_be_written_and_where_it_stands(tmp_path: Path) -> None:
    operating.described(tmp_path)
    *_, kind = served(tmp_path, "Acme.Toys/sets")

    spec = spec_of(generated.definition(kind, SETS.type))

    assert {"owner", "resourceId", "policy", "sku", "tags"} <= spec["properties"].keys()
    assert "etag" not in spec["properties"]
    assert spec["properties"]["sku"]["properties"]["capacity"]["type"] == "integer"
    assert spec["properties"]["tags"]["type"] == "object"
    below = spec["properties"]["properties"]["properties"]
    assert below["mode"]["description"] == "create-only"
    assert below["phrase"]["properties"]["fromSecret"]["type"] == "string"
    assert below["rules"]["items"]["properties"]["port"]["type"] == "integer"
    assert below["zones"]["items"] == {"x-kubernetes-preserve-unknown-fields": True}


async def test_its_objects_live_as_those_of_the_one_kind(tmp_path: Path) -> None:
    async with site(tmp_path, resources_kinds="Acme.Toys/sets") as there:
        *_, kind = served(tmp_path / "store", "Acme.Toys/sets")
        await there.hand.create(CRDS, generated.definition(kind, SETS.type))
        async with there.operating():
            await stories.scale_set(there, kind.api, operating.typed())


async def test_a_child_names_an_owner_of_a_typed_kind(tmp_path: Path) -> None:
    async with site(tmp_path, resources_kinds="Acme.Toys/sets") as there:
        *_, kind = served(tmp_path / "store", "Acme.Toys/sets")
        await there.hand.create(CRDS, generated.definition(kind, SETS.type))
        async with there.operating():
            rule = operating.resource(
                name="http",
                type="Acme.Toys/sets/rules",
                owner={"kind": SETS_KIND.kind, "name": "web"},
                properties={"port": 80},
            )
            await there.hand.create(CLOUD_RESOURCES, rule)
            waits = await there.seen(lambda one: bool(condition(one, "Accepted")), "http")
            assert "waits for set/web" in condition(waits, "Accepted")["message"]
            await there.hand.create(kind.api, operating.typed())

            found = await there.seen(name="http")

    assert found["status"]["resourceId"] == f"{ID}/rules/http"


@pytest.mark.requirement("resources R32", "resources R33")
async def test_an_object_of_a_typed_kind_takes_over_what_is_there(tmp_path: Path) -> None:
    async with site(tmp_path, resources_kinds="Acme.Toys/sets") as there:
        *_, kind = served(tmp_path / "store", "Acme.Toys/sets")
        await there.hand.create(CRDS, generated.definition(kind, SETS.type))
        made = operating.typed(resourceId=ID, owner={})
        body = operating.resource()["spec"]["properties"]
        there.cloud.put(ID, {**body, "theirs": "1"})
        async with there.operating():
            await there.hand.create(kind.api, made)
            found = await there.seen(api=kind.api)

    assert found["status"]["resourceId"] == ID
    assert there.cloud.writes == []


def test_a_misspelt_property_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    operating.described(tmp_path)
    every, typed = served(tmp_path, "Acme.Toys/sets")

    made = operating.typed(sku={"capcity": 3})

    told = [("spec.sku.capcity", "no such property; did you mean capacity?")]
    assert typed.review(made, None) == told
    # The webhook for all kinds of the group leads to the same.
    assert every.review(made, None) == told
    ((path, why),) = every.review({**made, "kind": "other"}, None)
    assert (path, "FAIRLEAD_RESOURCES_KINDS" in why) == ("kind", True)


def test_two_types_of_one_name_are_not_both_served(tmp_path: Path) -> None:
    operating.described(tmp_path, "Acme.Toys", "Acme.Tools")

    with pytest.raises(Rejected, match=r"two types would be called set: Acme\.Tools/sets"):
        served(tmp_path, "Acme.Toys/sets", "Acme.Tools/sets")


@needs_azure
@pytest.mark.requirement("resources R17")
async def test_the_example_of_the_document_is_applied_as_it_is_written_there(
    tmp_path: Path,
) -> None:
    made: Object = yaml.safe_load(DOCUMENT)
    files = descriptions.files([AZURE / "compute"])
    types = [each for each in descriptions.read(AZURE, files, {}) if each.type == VMSS]
    async with site(
        tmp_path, resources_kinds=VMSS, resources_owner="/subscriptions/s/resourceGroups/g"
    ) as there:
        for store in ("store", "prepared"):
            catalogue.write(tmp_path / store / CATALOGUE, types, files)
        there.describes = False
        *_, kind = served(tmp_path / "prepared", VMSS)
        await there.hand.create(CRDS, generated.definition(kind, types[0]))
        async with there.operating():
            id_ = f"/subscriptions/s/resourceGroups/g/providers/{VMSS}/web"
            await stories.scale_set(there, kind.api, made, id_)


@needs_azure
def test_the_examples_of_the_page_pass_the_review(tmp_path: Path) -> None:
    files = descriptions.files([AZURE / "compute"])
    catalogue.write(tmp_path / CATALOGUE, descriptions.read(AZURE, files, {}), files)
    every, typed = served(tmp_path, VMSS)

    assert every.review(yaml.safe_load(WHOLE), None) == ()
    assert typed.review(yaml.safe_load(DOCUMENT), None) == ()
