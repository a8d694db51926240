"""`fairlead operator manifests` prints what kubectl takes."""

import pytest
import yaml

from tests.unit.cli.conftest import Run


def test_what_is_printed_can_be_applied(run: Run) -> None:
    image = f"registry.test/fairlead@sha256:{'0' * 64}"
    ran = run("operator", "manifests", "--image", image, "--replicas", "2")

    found = {each["kind"]: each for each in yaml.safe_load_all(ran.out)}
    deployment = found["Deployment"]["spec"]
    assert (ran.code, ran.err) == (0, "")
    assert deployment["replicas"] == 2
    assert deployment["template"]["spec"]["containers"][0]["image"] == image
    assert {"Role", "NetworkPolicy", "PodDisruptionBudget"} <= found.keys()


def test_rights_over_the_cluster_are_asked_for(run: Run) -> None:
    narrow = run("operator", "manifests", "--no-webhooks")
    wide = run("operator", "manifests", "--no-webhooks", "--all-namespaces")
    both = run("operator", "manifests", "--watch", "shop", "--all-namespaces")

    assert "ClusterRole" not in {each["kind"] for each in yaml.safe_load_all(narrow.out)}
    assert "ClusterRole" in {each["kind"] for each in yaml.safe_load_all(wide.out)}
    assert (both.code, both.out) == (3, "")


@pytest.mark.parametrize(
    "image",
    ["fairlead", "fairlead:latest", "registry.test:5000/fairlead", "fairlead@sha256:abc", "a@b"],
)
def test_an_image_that_may_change_is_refused(run: Run, image: str) -> None:
    ran = run("operator", "manifests", "--image", image)

    assert (ran.code, ran.out) == (3, "")
    assert "NAME@sha256:DIGEST" in ran.err


def test_a_tag_is_taken_and_told(run: Run) -> None:
    ran = run("operator", "manifests", "--image", "registry.test:5000/fairlead:9")

    assert (ran.code, ran.err.count("digest")) == (0, 1)


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
    over_secrets = [rule for rule in rules if "secrets" in rule["resources"]]
    # Of secrets only the one that is its own: the key of what it writes into statuses.
    read = [rule for rule in over_secrets if rule["verbs"] != ["create"]]
    assert [rule["resourceNames"] for rule in read] == [["fairlead-operator-status"]]
    assert "FAIRLEAD_OPERATOR_SECRETS" in ran.out
