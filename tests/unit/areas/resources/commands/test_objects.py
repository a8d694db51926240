"""`fairlead resources crd` as it is typed."""

import pytest
import yaml

from tests.unit.areas.resources.commands.test_reconcile import Type, cloud, file, run

__all__ = ["cloud", "file", "run"]


@pytest.mark.requirement("resources R2", "resources R8")
def test_the_kind_of_a_type_is_printed_for_kubectl(run: Type, file: str) -> None:
    run("resources", "ingest", file)

    said = run("resources", "crd", "Acme.Toys/robots")

    found = yaml.safe_load(said.out)
    assert found["kind"] == "CustomResourceDefinition"
    assert found["metadata"]["name"] == "robots.cloud.fairlead.dev"
    assert found["metadata"]["annotations"] == {"fairlead.dev/type": "Acme.Toys/robots@2026-01-01"}
    (version,) = found["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert spec["size"]["type"] == "string"
    assert "fromSecret" in spec["key"]["properties"]


def test_a_type_that_nobody_knows_has_no_kind(run: Type, file: str) -> None:
    run("resources", "ingest", file)

    said = run("resources", "crd", "Acme.Toys/robot")

    assert said.code != 0
    assert "did you mean Acme.Toys/robots" in said.err
