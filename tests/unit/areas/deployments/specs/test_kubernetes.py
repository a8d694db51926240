"""An application in Kubernetes: what is refused, and what its operator gets."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.deployments.domain.spec import Workload
from fairlead.areas.deployments.specs import build, reading, workload

MACHINE = workload.Machine("local@here", Path("/state/local/credentials"), postgres=True)
PLACE = {"queue": "kubernetes@east", "namespace": "shops", "default_registry": "registry.example"}
ENVIRONMENT = {"full_name": "dev", "kubernetes": PLACE}
APP: dict[str, Any] = {
    "name": "shop",
    "kubernetes": {
        "containers": [
            {"name": "web", "image": {"name": "shop"}, "env": {"LEVEL": "info"}},
            {"name": "proxy", "image_url": "proxy:7"},
        ]
    },
    "databases": [{"name": "goods", "postgres": {"migrations": "sql"}}],
}
SQL = {"goods": {"0001_goods.sql": "CREATE TABLE goods (id int)"}}


def built(version: str = "v1", **changes: Any) -> build.Built:
    app = reading.application({**copy.deepcopy(APP), **changes})
    made = build.build_application(app, version, SQL)
    return workload.build_spec(made, reading.environment(ENVIRONMENT), MACHINE)


def check(environment: Any, changes: dict[str, Any]) -> None:
    app = reading.application({**copy.deepcopy(APP), **changes})
    workload.check(app, reading.environment(environment))


def refused(environment: Any = ENVIRONMENT, **changes: Any) -> str:
    with pytest.raises(errors.Invalid) as told:
        check(environment, changes)
    (problem,) = told.value.problems
    return f"{problem.path}: {problem.message}"


@pytest.mark.requirement("deployer B2")
def test_its_operator_gets_images_of_that_version_by_the_name_of_the_application() -> None:
    made = built()

    assert made.spec.workload == Workload(
        "shops/shop", made.spec.template.key, "kubernetes@east", made.template
    )
    assert json.loads(made.template) == {
        "containers": [
            {"name": "web", "image": "registry.example/shop:v1", "env": {"LEVEL": "info"}},
            {"name": "proxy", "image": "proxy:7"},
        ]
    }


def test_the_same_input_gives_the_same_bytes_and_another_version_other_ones() -> None:
    assert built() == built()
    assert built("v2").spec.template.key != built().spec.template.key


def test_its_databases_are_this_machines() -> None:
    (goods,) = built().spec.databases

    assert (goods.name, goods.secret) == ("dev_shop_goods", "dev/shop/goods.json")


def test_mistakes_are_told_with_their_field() -> None:
    at = "application.kubernetes.containers[0]"
    image = {"containers": [{"name": "web", "image": {"name": "shop"}}]}
    nowhere = {"full_name": "dev", "kubernetes": {**PLACE, "default_registry": ""}}
    command = {"postgres": {"migrate_command": {"run": ["migrate"]}}}

    assert refused({"full_name": "dev"}) == "application.kubernetes: dev is not in Kubernetes"
    assert refused(workload={"listen": 1}) == "application.workload: beside kubernetes"
    assert refused(nowhere, kubernetes=image).startswith(f"{at}.image.registry: missing")
    assert refused(databases=[{"name": "goods", **command}]).startswith(
        "application.databases[0].postgres.migrate_command: it would run"
    )
    assert refused(kubernetes={"containers": [{"name": "web"}]}) == (
        "kubernetes.containers[0]: needs either image_url or image"
    )
    assert refused(kubernetes={"containers": image["containers"] * 2}) == (
        "kubernetes.containers[1].name: used twice: web"
    )


@pytest.mark.parametrize("queue", ["local@here", "kubernetes@", "aws@default"])
def test_an_environment_names_the_queue_of_an_operator(queue: str) -> None:
    with pytest.raises(errors.Invalid, match=r"kubernetes\.queue"):
        reading.environment({"full_name": "dev", "kubernetes": {**PLACE, "queue": queue}})
