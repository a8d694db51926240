"""Files of a tree, hostile ones too, and the real ones of Azure where they are at hand."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.resources import descriptions
from fairlead.areas.resources.domain.reading import ResourceType
from tests.unit.areas.resources.swagger import AZURE, needs_azure, robots

ROBOT = {"Robot": {"properties": {"name": {"type": "string"}}}}


def put(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def read(root: Path, *paths: Path) -> list[ResourceType]:
    return list(descriptions.read(root, descriptions.files(paths or (root,)), {}))


def test_a_folder_is_read_with_all_below_it_but_examples(tmp_path: Path) -> None:
    put(tmp_path / "toys" / "robots.json", robots(ROBOT))
    put(tmp_path / "toys" / "examples" / "broken.json", b"{")
    put(tmp_path / "common" / "types.json", {"definitions": {}})

    assert [each.type for each in read(tmp_path)] == ["Acme.Toys/robots"]


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path / "a.json", b"\xef\xbb\xbf" + json.dumps(robots(ROBOT)).encode())

    assert len(read(tmp_path)) == 1


@pytest.mark.requirement("resources R2")
def test_definitions_come_from_other_folders_of_the_tree(tmp_path: Path) -> None:
    document = robots({"Robot": {"$ref": "../../common/types.json#/definitions/Robot"}})
    one = put(tmp_path / "toys" / "v1" / "robots.json", document)
    put(tmp_path / "common" / "types.json", {"definitions": ROBOT})

    assert [each.path for each in read(tmp_path, one)[0].properties] == ["name"]


def test_a_link_out_of_the_tree_is_not_followed(tmp_path: Path) -> None:
    put(tmp_path / "secret.json", {"definitions": ROBOT})
    tree = tmp_path / "tree"
    put(tree / "a.json", robots({"Robot": {"$ref": "link.json#/definitions/Robot"}}))
    (tree / "link.json").symlink_to(tmp_path / "secret.json")

    with pytest.raises(errors.Invalid, match="leads out of the tree"):
        read(tree, tree / "a.json")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "no JSON: Input data was truncated"),
        (b"[" * 100_000, "no JSON"),
        (b"\xff", "no JSON"),
    ],
)
def test_what_is_no_json_is_refused_with_its_file(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    put(tmp_path / "a.json", content)

    with pytest.raises(errors.Invalid, match=problem) as refused:
        read(tmp_path)
    assert refused.value.problems[0].file == "a.json"


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(descriptions.LARGEST + 1)

    with pytest.raises(errors.Invalid, match=r"a\.json: larger than 32 MiB"):
        read(tmp_path)


def test_what_is_wrong_is_told_of_all_folders_at_once(tmp_path: Path) -> None:
    put(tmp_path / "a" / "a.json", robots({}))
    put(tmp_path / "b" / "b.json", b"{")
    put(tmp_path / "c" / "c.json", robots(ROBOT))

    with pytest.raises(errors.Invalid) as refused:
        read(tmp_path)

    assert [each.file for each in refused.value.problems] == ["a/a.json", "b/b.json"]


def test_a_path_that_is_not_there_or_not_in_the_tree_is_named(tmp_path: Path) -> None:
    outside = put(tmp_path / "a.json", robots(ROBOT))
    (tmp_path / "tree").mkdir()

    with pytest.raises(errors.NotFound, match="no such file or folder"):
        read(tmp_path, tmp_path / "none")
    with pytest.raises(errors.Invalid, match="not in the tree"):
        read(tmp_path / "tree", outside)


def test_overrides_of_what_is_not_there_are_refused_with_the_nearest_name(tmp_path: Path) -> None:
    put(tmp_path / "a.json", robots(ROBOT))
    overrides: Any = {"Acme.Toys/robots": {"nam": "read-only"}, "Acme.Toys/rabbits": {}}

    with pytest.raises(errors.Invalid) as refused:
        list(descriptions.read(tmp_path, descriptions.files([tmp_path]), overrides))

    assert [(each.path, each.hint) for each in refused.value.problems] == [
        ("Acme.Toys/robots: nam", "did you mean name?"),
        ("Acme.Toys/rabbits", "check its name"),
    ]


COMPUTE = "compute/resource-manager/Microsoft.Compute/ComputeRP/stable/2022-03-01"
NETWORK = "network/resource-manager/Microsoft.Network/stable/2020-11-01"
STORAGE = "storage/resource-manager/Microsoft.Storage/stable/2021-04-01"
VAULT = "keyvault/resource-manager/Microsoft.KeyVault/preview/2021-04-01-preview"
REDIS = "redis/resource-manager/Microsoft.Cache/stable/2020-12-01"
POSTGRES = "postgresql/resource-manager/Microsoft.DBforPostgreSQL/stable/2021-06-01"
FIGURES = {
    # Paths, how many PATCH takes (not counting those in its schema that it marks as read-only),
    # and how many are read-only.
    "Microsoft.Compute/virtualMachineScaleSets": (COMPUTE, 261, 202, 14),
    "Microsoft.Compute/virtualMachineScaleSets/extensions": (COMPUTE, 19, 15, 3),
    "Microsoft.Compute/virtualMachineScaleSets/virtualMachines": (COMPUTE, 387, 0, 144),
    "Microsoft.Storage/storageAccounts": (STORAGE, 166, 72, 88),
    "Microsoft.KeyVault/vaults": (VAULT, 56, 31, 22),
    "Microsoft.Cache/redis": (REDIS, 64, 27, 33),
    "Microsoft.DBforPostgreSQL/flexibleServers": (POSTGRES, 45, 21, 16),
    "Microsoft.Network/virtualNetworks": (NETWORK, 572, 1, 448),
    "Microsoft.Network/virtualNetworks/subnets": (NETWORK, 885, 0, 798),
    "Microsoft.Network/virtualNetworks/virtualNetworkPeerings": (NETWORK, 20, 0, 4),
}


@needs_azure
@pytest.mark.requirement("resources R2", "resources R7", "resources R10", "resources R12")
@pytest.mark.parametrize("type_", FIGURES)
def test_real_types_have_the_measured_figures(type_: str) -> None:
    folder, paths, patched, read_only = FIGURES[type_]

    (then,) = [each for each in read(AZURE, AZURE / folder) if each.type == type_]

    found = Counter(each.class_ for each in then.properties)
    assert (found.total(), found["read-only"]) == (paths, read_only)
    assert sum(each.patch for each in then.properties) == patched


@needs_azure
@pytest.mark.requirement("resources R2")
def test_every_real_file_reads_without_an_unresolved_reference() -> None:
    found = descriptions.files([AZURE])

    then = list(descriptions.read(AZURE, found, {}))

    assert (len(found), len(then)) == (106, 122)
    parents = {each.type: each.parent for each in then}
    assert parents["Microsoft.Network/virtualNetworks/subnets"] == (
        "Microsoft.Network/virtualNetworks"
    )
    containers = "Microsoft.Storage/storageAccounts/blobServices/containers"
    assert parents[containers] == "Microsoft.Storage/storageAccounts/blobServices"


@needs_azure
@pytest.mark.requirement("resources R13")
def test_what_is_for_the_start_only_is_what_the_real_files_mark() -> None:
    def paths(folder: str, type_: str) -> set[str]:
        (then,) = [each for each in read(AZURE, AZURE / folder) if each.type == type_]
        return {each.path for each in then.properties if each.class_ == "create-only"}

    assert paths(REDIS, "Microsoft.Cache/redis") == {"location", "properties.staticIP"}
    assert paths(STORAGE, "Microsoft.Storage/storageAccounts") == {
        f"properties.encryption.services.{each}.keyType"
        for each in ("blob", "file", "queue", "table")
    }
    assert paths(COMPUTE, "Microsoft.Compute/virtualMachineScaleSets") == set()
