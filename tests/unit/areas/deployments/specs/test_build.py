"""From files to what a deployment is to bring."""

import hashlib
import json
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.plan.steps import works
from fairlead.areas.deployments.domain.spec import Flag, Server
from fairlead.areas.deployments.specs import build, reading
from tests.unit.areas.deployments.specs.files import APP, CLUSTER, ENV


def test_application_and_environment_make_one_specification() -> None:
    app, environment = reading.application(APP), reading.environment(ENV)

    spec = build.planned(app, environment, reading.cluster(CLUSTER), [Flag.DB_ONLY])

    assert spec.stack == "prod-eu-shop"
    assert (spec.ecs_cluster, spec.assume_role) == ("ecs", "arn:role")
    (database,) = spec.databases
    assert (database.name, database.migrates) == ("prod_eu_shop_orders", True)
    assert spec.flags == (Flag.DB_ONLY,)
    assert (spec.policy.supersede, spec.policy.approve) == (True, True)
    assert (spec.policy.at_least, spec.policy.freezes[0].reason) == (Impact.BEFORE, "rest")


def test_databases_that_come_to_one_name_are_told_apart_by_their_stack() -> None:
    mine, theirs = "prod", "prod-eu"
    entry = {"name": "one", "postgres": {"db_name_suffix": "shop_orders"}}
    adopting = {"full_name": mine, "deployments": {"adopt_databases": ["prod_eu_shop_orders"]}}

    attack = build.planned(
        reading.application({"name": "eu", "databases": [entry]}),
        reading.environment(adopting),
        None,
    )
    victim = build.planned(
        reading.application(APP), reading.environment({**ENV, "full_name": theirs}), None
    )

    ((attacks,), (victims,)) = (works(each).values() for each in (attack, victim))
    assert attacks.database == victims.database
    assert (attacks.stack, victims.stack) == ("prod/eu", "prod-eu/shop")
    assert (attacks.adopt, victims.adopt) == (True, False)


def test_quick_mode_of_an_application_is_the_flag() -> None:
    app = reading.application({**APP, "deployment_config": {"quick_mode": True}})

    spec = build.planned(app, reading.environment(ENV), None, [Flag.QUICK])

    assert spec.flags == (Flag.QUICK,)


@pytest.mark.parametrize("flag", [Flag.DESTROY_DATABASE, Flag.RECREATE_DATABASE])
def test_databases_are_destroyed_only_where_the_environment_lets_them_be(flag: Flag) -> None:
    app = reading.application(APP)
    letting = {**ENV, "deployments": {"destroy_databases": True}}

    with pytest.raises(errors.Rejected, match=f"lets nobody destroy databases: {flag.value}"):
        build.planned(app, reading.environment(ENV), None, [flag])

    assert build.planned(app, reading.environment(letting), None, [flag]).flags == (flag,)


def test_a_flag_is_known_with_hyphens_too_and_a_wrong_one_is_told() -> None:
    assert build.flag("db-only") is Flag.DB_ONLY
    with pytest.raises(errors.Rejected, match="no such flag: quik") as refused:
        build.flag("quik")
    assert "quick" in refused.value.hint


@pytest.mark.requirement("deployer B1", "deployer B2", "deployer B3", "deployer Q4")
def test_a_built_application_and_an_environment_make_template_and_specification() -> None:
    built = build.build_application(reading.application(APP), "v7")
    made = build.build_spec(
        built, reading.environment(ENV), reading.cluster(CLUSTER), "templates", [Flag.QUICK]
    )

    assert built.version == made.spec.version == "v7"
    assert made.spec.template.bucket == "templates"
    digest = hashlib.sha256(made.template.encode()).hexdigest()[:32]
    assert made.spec.template.key == f"prod-eu/shop/{digest}.json"
    assert made.spec.parameters["ImageWebApp"] == "registry.example/shop:v7"
    assert made.spec.flags == (Flag.QUICK,)
    assert made.spec.sns_topics == ("prod-eu-orders",)
    (database,) = made.spec.databases
    assert database.server == Server("main", "db.example", 5432, "rds/main")
    assert database.secret.endswith("shop/orders")
    assert database.task is not None
    assert database.task.cluster == "ecs"
    assert json.loads(made.beside[database.task.definition])["Image"] == "shop:1"


def test_variables_of_what_migrates_are_stored_beside_the_template_and_in_no_event() -> None:
    migrate = {
        "name": "migrate",
        "image_url": "shop:1",
        "env_vars": [{"name": "KEY", "value": "s3cret"}],
    }
    entry = {"name": "orders", "postgres": {"server_group": "main", "migrate_container": migrate}}
    built = build.build_application(reading.application({**APP, "databases": [entry]}), "v7")

    made = build.build_spec(built, reading.environment(ENV), reading.cluster(CLUSTER), "templates")

    assert "s3cret" not in str(made.spec)
    assert "s3cret" in str(made.beside)


def test_the_template_has_the_same_key_for_each_version_and_another_for_other_content() -> None:
    def key(version: str, app: dict[str, Any]) -> str:
        built = build.build_application(reading.application(app), version)
        env, cluster = reading.environment(ENV), reading.cluster(CLUSTER)
        return build.build_spec(built, env, cluster, "templates").spec.template.key

    assert key("v1", APP) == key("v2", APP)
    assert key("v1", APP) != key("v1", {**APP, "secrets": [*APP["secrets"], {"name": "mail"}]})


def test_sql_files_are_stored_beside_the_template_under_their_digest() -> None:
    postgres = {"server_group": "main", "migrations": "sql"}
    app = reading.application({**APP, "databases": [{"name": "orders", "postgres": postgres}]})
    sql = {"orders": {"0001_a.sql": "CREATE TABLE a ()"}}

    built = build.build_application(app, "v1", sql)
    made = build.build_spec(built, reading.environment(ENV), reading.cluster(CLUSTER), "templates")

    ((key, text),) = made.beside.items()
    assert made.spec.databases[0].sql == key
    assert key.startswith("prod-eu/shop/migrations/")
    assert json.loads(text) == sql["orders"]
    with pytest.raises(errors.Rejected, match="SQL files of a database were not brought along"):
        build.build_application(app, "v1")


def test_a_version_that_no_image_could_have_is_refused() -> None:
    with pytest.raises(errors.Rejected, match="not a version"):
        build.build_application(reading.application(APP), "v 1")


def test_a_variable_that_the_environment_lacks_is_told_with_its_field() -> None:
    built = build.build_application(reading.application(APP), "v1")
    env = reading.environment({**ENV, "vars": []})

    with pytest.raises(errors.Invalid) as refused:
        build.build_spec(built, env, reading.cluster(CLUSTER), "templates")
    (problem,) = refused.value.problems
    assert problem.path == "runtimes[0].containers[0].env_vars[3].from_env.name"
