"""An application that is a workload: what its file must hold, and what is built from it."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.deployments.domain.spec import Workload
from fairlead.areas.deployments.specs import build, reading, workload
from fairlead.areas.rollouts import workloads

MACHINE = workload.Machine("local@here", Path("/state/local/credentials"), postgres=True)
ENVIRONMENT = reading.environment({"full_name": "dev"})
APP: dict[str, Any] = {
    "name": "shop",
    "workload": {"listen": 8080, "program": {"command": ["serve"], "env": {"A": "b"}}},
    "databases": [{"name": "goods", "postgres": {"migrations": "sql"}}],
}
SQL = {"goods": {"0001_goods.sql": "CREATE TABLE goods (id int)"}}


def built(version: str = "v1", **changes: Any) -> build.Built:
    app = reading.application({**copy.deepcopy(APP), **changes})
    made = build.build_application(app, version, SQL)
    return workload.build_spec(made, ENVIRONMENT, MACHINE)


def refused(**changes: Any) -> dict[str, str]:
    app = reading.application({**copy.deepcopy(APP), **changes})
    with pytest.raises(errors.Invalid) as told:
        workload.check(app, ENVIRONMENT)
    return {each.path: each.message for each in told.value.problems}


@pytest.mark.requirement("deployer B2")
def test_the_specification_names_the_rollout_and_where_its_files_are() -> None:
    made = built()

    (goods,) = made.spec.databases
    assert made.spec.workload == Workload("dev/shop", made.spec.template.key)
    assert made.spec.template.key.startswith("dev/shop/")
    assert (goods.name, goods.secret) == ("dev_shop_goods", "dev/shop/goods.json")
    assert json.loads(made.beside[goods.sql]) == SQL["goods"]


def test_a_program_that_migrates_is_stored_beside_and_runs_as_the_workload_does() -> None:
    command = {"run": ["alembic", "upgrade", "head"], "plan": ["./pending"]}
    made = built(databases=[{"name": "goods", "postgres": {"migrate_command": command}}])

    (goods,) = made.spec.databases
    assert (goods.migrates, goods.sql) == (True, "")
    assert json.loads(made.beside[goods.command]) == {**command, "cwd": None, "env": {"A": "b"}}


def test_the_file_is_a_workload_with_a_variable_for_each_database() -> None:
    read = workloads.read(json.loads(built().template))

    assert read.name == "dev/shop"
    assert read.words.version == "v1"
    assert read.program.env == {
        "A": "b",
        "GOODS_DATABASE_FILE": "/state/local/credentials/dev/shop/goods.json",
    }


def test_the_same_input_gives_the_same_bytes_and_another_version_other_ones() -> None:
    assert built() == built()
    assert built("v2").spec.template.key != built().spec.template.key


def test_mistakes_of_the_workload_are_told_with_their_field() -> None:
    broken = {"listen": 0, "program": {"command": ["serve"]}}

    assert "application.workload.listen" in refused(workload=broken)
    named = {**APP["workload"], "version": "v7"}
    assert refused(workload=named) == {"application.workload.version": "decided by the deployment"}


def test_what_needs_a_cluster_is_refused_beside_a_workload() -> None:
    runtimes = [{"name": "web", "containers": [{"name": "a", "image_url": "x"}]}]
    container = {
        "name": "goods",
        "postgres": {"migrate_container": {"name": "m", "image_url": "x"}},
    }

    assert list(refused(runtimes=runtimes)) == ["application.runtimes"]
    at = "application.databases[0].postgres.migrate_container"
    assert refused(databases=[container]) == {at: "this machine runs no containers"}
    assert list(refused(workload={})) == ["cluster"]


def test_a_machine_without_a_server_refuses_databases_with_the_setting_to_name_one() -> None:
    bare = workload.Machine("local@here", Path("/c"), postgres=False)
    made = build.build_application(reading.application(APP), "v1", SQL)

    with pytest.raises(errors.Rejected, match="no PostgreSQL server") as told:
        workload.build_spec(made, ENVIRONMENT, bare)
    assert "FAIRLEAD_DEPLOYMENTS_POSTGRES_URL" in told.value.hint
