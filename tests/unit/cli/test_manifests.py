"""`fairlead operator manifests` prints what kubectl takes."""

import yaml

from tests.unit.cli.conftest import Run


def test_what_is_printed_can_be_applied(run: Run) -> None:
    ran = run("operator", "manifests", "--image", "registry.test/fairlead:9", "--replicas", "2")

    found = {each["kind"]: each for each in yaml.safe_load_all(ran.out)}
    deployment = found["Deployment"]["spec"]
    assert (ran.code, ran.err) == (0, "")
    assert deployment["replicas"] == 2
    assert deployment["template"]["spec"]["containers"][0]["image"] == "registry.test/fairlead:9"
    assert {"ClusterRole", "NetworkPolicy", "PodDisruptionBudget"} <= found.keys()


def test_one_namespace_and_a_database(run: Run) -> None:
    ran = run(
        *("operator", "manifests", "--watch", "shop", "--database", "store/url"), "--no-webhooks"
    )

    assert "ClusterRole" not in {each["kind"] for each in yaml.safe_load_all(ran.out)}
    assert "FAIRLEAD_DATABASE_URL" in ran.out


def test_a_secret_without_a_key_is_refused_with_a_hint(run: Run) -> None:
    ran = run("operator", "manifests", "--database", "store")

    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "error: not a Secret and a key in it: store\nhint: write NAME/KEY\n"


def test_secrets_can_be_left_out(run: Run) -> None:
    ran = run("operator", "manifests", "--no-secrets", "--no-webhooks")

    rules = [rule for each in yaml.safe_load_all(ran.out) for rule in each.get("rules") or ()]
    assert rules
    assert not [rule for rule in rules if "secrets" in rule["resources"]]
    assert "FAIRLEAD_OPERATOR_SECRETS" in ran.out
