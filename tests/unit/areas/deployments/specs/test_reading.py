"""Files of applications, environments and clusters: what they say, and what is wrong in them."""

from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.deployments.specs import build, reading
from tests.unit.areas.deployments.specs.files import APP, CLUSTER, ENV


def problems(refused: pytest.ExceptionInfo[errors.Invalid]) -> dict[str, str]:
    return {each.path: each.message for each in refused.value.problems}


def with_variable(**variable: Any) -> dict[str, Any]:
    container = {"name": "app", "image": {"name": "shop"}, "env_vars": [{"name": "X", **variable}]}
    return {**APP, "runtimes": [{"name": "web", "containers": [container]}]}


def test_an_application_with_all_it_may_say_is_read() -> None:
    app = reading.application(APP)

    assert app.databases[0].postgres.db_extensions == ["pg_trgm"]
    assert app.runtimes[0].routes[0].port == 8080
    assert app.runtimes[0].worker_config is not None


def test_every_mistake_is_told_at_once() -> None:
    content = {"name": "shop", "runtimes": [{"name": "web", "contaners": []}], "secret": []}

    with pytest.raises(errors.Invalid) as refused:
        reading.application(content)

    assert problems(refused) == {
        "runtimes[0].containers": "missing",
        "runtimes[0].contaners": "unknown field",
        "secret": "unknown field",
    }


@pytest.mark.parametrize(
    ("variable", "path", "message"),
    [
        ({}, "", "needs exactly one source, has: none"),
        ({"value": "1", "database": "orders"}, "", "exactly one source, has: value, database"),
        ({"database": "order"}, ".database", "not declared: order"),
        ({"blobstore": {"name": "x"}}, ".blobstore.name", "not declared: x"),
        (
            {"secret": {"secret_name": "x", "json_key": "y"}},
            ".secret.secret_name",
            "not declared: x",
        ),
    ],
)
def test_a_variable_has_one_source_that_is_declared(
    variable: dict[str, Any], path: str, message: str
) -> None:
    with pytest.raises(errors.Invalid) as refused:
        reading.application(with_variable(**variable))

    told = problems(refused)
    assert message in told[f"runtimes[0].containers[0].env_vars[0]{path}"]


def test_names_are_used_once_and_routes_find_their_container() -> None:
    runtime = {
        "name": "web",
        "containers": [{"name": "app", "image": {"name": "shop"}}, {"name": "app"}],
        "routes": [{"prefix": "/", "target_container": "ap"}],
    }

    with pytest.raises(errors.Invalid) as refused:
        reading.application({"name": "shop", "runtimes": [runtime]})

    assert problems(refused) == {
        "runtimes[0].containers[1].name": "used twice: app",
        "runtimes[0].containers[1]": "needs either image_url or image",
        "runtimes[0].routes[0].target_container": "unknown container: ap",
    }


def test_two_entries_do_not_share_one_database() -> None:
    entries = [
        {"name": "orders", "postgres": {}},
        {"name": "stock", "postgres": {"db_name_suffix": "Orders"}},
    ]

    with pytest.raises(errors.Invalid) as refused:
        reading.application({"name": "shop", "databases": entries})

    assert problems(refused) == {"databases[1].name": "used twice: Orders"}


@pytest.mark.parametrize("name", ["Shop", "s", "my-shop", "1shop"])
def test_a_name_that_would_part_a_stacks_name_wrongly_is_refused(name: str) -> None:
    with pytest.raises(errors.Invalid, match="name"):
        reading.application({"name": name})


def test_a_database_is_migrated_in_one_way_and_in_a_cluster_by_no_command() -> None:
    command = {"migrate_command": {"run": ["migrate"]}, "server_group": "main"}
    both = {**command, "migrations": "sql"}

    with pytest.raises(errors.Invalid) as refused:
        reading.application({"name": "shop", "databases": [{"name": "a", "postgres": both}]})
    app = reading.application({"name": "shop", "databases": [{"name": "a", "postgres": command}]})
    with pytest.raises(errors.Invalid) as elsewhere:
        reading.check_servers(app, reading.cluster(CLUSTER))

    (problem,) = refused.value.problems
    assert (problem.path, problem.message) == (
        "databases[0].postgres.migrations",
        "beside migrate_command",
    )
    assert elsewhere.value.problems[0].path == "databases[0].postgres.migrate_command"


def test_a_freeze_has_a_time_zone_and_ends_after_it_begins() -> None:
    freeze = {"from": "2030-01-02T00:00:00Z", "until": "2030-01-01T00:00:00Z"}
    naive = {"from": "2030-01-01T00:00:00", "until": "2030-01-02T00:00:00Z"}

    with pytest.raises(errors.Invalid, match="ends before it begins"):
        reading.environment({**ENV, "deployments": {"freezes": [freeze]}})
    with pytest.raises(errors.Invalid, match="timezone"):
        reading.environment({**ENV, "deployments": {"freezes": [naive]}})


def test_what_is_not_in_the_cluster_is_told() -> None:
    cluster = reading.cluster(CLUSTER)
    elsewhere = {"name": "x", "postgres": {"server_group": "mian"}}

    with pytest.raises(errors.Invalid, match="unknown server group: mian") as refused:
        reading.check_servers(
            reading.application({"name": "shop", "databases": [elsewhere]}), cluster
        )
    assert "did you mean main?" in refused.value.hint
    with pytest.raises(errors.Invalid, match="unknown cluster: west"):
        reading.check_environment(reading.environment({**ENV, "cluster_name": "west"}), cluster)
    reading.check_environment(reading.environment(ENV), cluster)
    reading.check_servers(reading.application(APP), cluster)


def refused_store(ref: dict[str, Any], store: str = "images", shared: Any = ()) -> dict[str, str]:
    """What is said of an application of prod-eu that names a bucket of somebody else."""
    content = {"name": "evil", "blobstores": [{"name": store, "ref": ref}]}
    env = reading.environment({**ENV, "aws": {"shared_buckets": [*shared]}})
    with pytest.raises(errors.Invalid) as refused:
        build.template_text(reading.application(content), env, reading.cluster(CLUSTER))
    assert all(each.hint for each in refused.value.problems)
    return problems(refused)


VICTIM = "images-shop-acme-prod"
READ = {"bucket_name": "reports"}


@pytest.mark.parametrize("name", [VICTIM, "*", "images-*", "reports/../other", "Reports", "report"])
def test_no_application_names_a_bucket_that_its_environment_does_not_share(name: str) -> None:
    told = refused_store({"read_permission": True, "bucket_name": name}, shared=[READ])

    assert told == {"blobstores[0].ref.bucket_name": f"not a shared bucket of prod-eu: {name}"}


def test_the_refusal_says_what_is_shared_and_by_whom() -> None:
    content = {"name": "evil", "blobstores": [{"name": "x", "ref": {"bucket_name": VICTIM}}]}
    app = reading.application(content)

    for shared, hint in (
        ([], "its operator shares one by aws.shared_buckets"),
        ([READ], "use one of: reports; its operator shares one by aws.shared_buckets"),
    ):
        env = reading.environment({**ENV, "aws": {"shared_buckets": shared}})
        with pytest.raises(errors.Invalid) as refused:
            reading.check_references(app, env)
        assert [each.hint for each in refused.value.problems] == [hint]


def test_a_bucket_that_is_shared_to_be_read_is_not_written() -> None:
    told = refused_store({**READ, "write_permission": True}, shared=[READ])

    assert told == {
        "blobstores[0].ref.write_permission": "prod-eu shares it to be read only: reports"
    }


@pytest.mark.parametrize(
    ("store", "ref", "path"),
    [
        # Each would lead to images-shop-acme-prod-eu, or to the buckets of all.
        ("images", {"application": "shop-acme"}, ".application"),
        ("images-shop", {"application": "acme"}, ".application"),
        ("images_shop", {"application": "acme"}, ".application"),
        ("images", {"application": "*"}, ".application"),
        ("images-shop-acme", {}, ""),
        ("images", {"application": "shop", "bucket_name": VICTIM}, ""),
    ],
)
def test_no_application_puts_another_environments_bucket_together(
    store: str, ref: dict[str, Any], path: str
) -> None:
    told = refused_store({"read_permission": True, **ref}, store)

    assert [*told] == [f"blobstores[0].ref{path}"]


@pytest.mark.parametrize("name", ["eu-orders", "*", "", "prod-eu/orders", "1orders"])
def test_no_application_puts_another_environments_topic_together(name: str) -> None:
    subscribing = {
        "name": "web",
        "containers": [{"name": "app", "image_url": "a"}],
        "subscriptions": [{"name": name}],
    }

    with pytest.raises(errors.Invalid) as refused:
        reading.application({"name": "evil", "runtimes": [subscribing]})
    with pytest.raises(errors.Invalid) as publishing:
        reading.application({"name": "evil", "targets": [{"name": name}]})

    assert [*problems(refused)] == ["runtimes[0].subscriptions[0].name"]
    assert [*problems(publishing)] == ["targets[0].name"]


def test_what_reaches_beyond_an_environment_its_operator_gives() -> None:
    container = {"name": "app", "image_url": "a", "mount_docker_socket": True}
    everything = {
        "name": "evil",
        "runtimes": [
            {
                "name": "web",
                "containers": [container],
                "subscriptions": [{"name": "global/*", "env_name": "*"}],
            }
        ],
        "databases": [{"name": "main", "postgres": {"migrate_container": container}}],
    }
    app = reading.application(everything)
    given = {"all_environments": True, "docker_socket": True}

    with pytest.raises(errors.Invalid) as refused:
        reading.check_references(app, reading.environment(ENV))

    assert problems(refused) == {
        "runtimes[0].subscriptions[0].env_name": "prod-eu does not hear all environments: global/*",
        "runtimes[0].containers[0].mount_docker_socket": (
            "prod-eu gives no container the socket of Docker: app"
        ),
        "databases[0].postgres.migrate_container.mount_docker_socket": (
            "prod-eu gives no container the socket of Docker: app"
        ),
    }
    reading.check_references(app, reading.environment({**ENV, "aws": given}))


def test_a_bucket_that_is_shared_must_have_a_buckets_name() -> None:
    with pytest.raises(errors.Invalid) as refused:
        reading.environment({**ENV, "aws": {"shared_buckets": [{"bucket_name": "*"}]}})

    assert [*problems(refused)] == ["aws.shared_buckets[0].bucket_name"]
