"""A deployment's file, and the files that it names."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead import errors
from fairlead.areas.deployments.commands import manifest
from tests.unit.areas.deployments.asked import WORDS

FILE = {
    "kind": "deployment",
    "version": "v1",
    "application": "shop/app.yaml",
    "environment": "env.yaml",
    "cluster": "cluster.yaml",
}


def write(folder: Path, app: dict[str, Any] | None = None) -> None:
    (folder / "shop" / "sql").mkdir(parents=True)
    contents = {
        "shop/app.yaml": app or WORDS["application"],
        "env.yaml": WORDS["environment"],
        "cluster.yaml": WORDS["cluster"],
    }
    for name, content in contents.items():
        (folder / name).write_text(yaml.safe_dump(content, sort_keys=False))


def with_sql(folder: str) -> dict[str, Any]:
    postgres = {"server_group": "main", "migrations": folder}
    return {**WORDS["application"], "databases": [{"name": "orders", "postgres": postgres}]}


def test_the_files_that_it_names_are_brought_along(tmp_path: Path) -> None:
    write(tmp_path)

    declared = manifest.read(FILE, tmp_path)

    assert declared.name == "prod-eu/shop/v1"
    assert declared.content["application"]["name"] == "shop"
    assert declared.content["environment"]["full_name"] == "prod-eu"


def test_sql_files_lie_beside_the_application(tmp_path: Path) -> None:
    write(tmp_path, with_sql("sql"))
    (tmp_path / "shop" / "sql" / "0001_a.sql").write_text("CREATE TABLE a ()")

    declared = manifest.read(FILE, tmp_path)

    assert declared.content["migrations"] == {"orders": {"0001_a.sql": "CREATE TABLE a ()"}}


@pytest.mark.parametrize("folder", ["../..", "/etc"])
def test_sql_of_elsewhere_is_not_read(tmp_path: Path, folder: str) -> None:
    write(tmp_path, with_sql(folder))

    with pytest.raises(errors.Rejected, match="outside of the application's folder"):
        manifest.read(FILE, tmp_path)


def test_a_mistake_in_another_file_is_told_with_that_file_and_its_line(tmp_path: Path) -> None:
    write(tmp_path, {**WORDS["application"], "runtime": []})

    with pytest.raises(errors.Rejected, match=r"app\.yaml:\d+:1: runtime: unknown field"):
        manifest.read(FILE, tmp_path)


def test_the_starter_is_a_deployment_of_files() -> None:
    started = yaml.safe_load(manifest.STARTER)

    assert {*FILE} == {*started}
