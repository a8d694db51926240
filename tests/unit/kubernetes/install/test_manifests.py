"""What installs the operator: enough rights, no more, and a pod that can do no harm."""

from dataclasses import replace
from typing import Any

import yaml

from fairlead import settings
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.install import manifests, workload
from fairlead.kubernetes.install.workload import Options
from fairlead.kubernetes.objects import Key, Object
from fairlead.kubernetes.operator import operator
from fairlead.kubernetes.webhook.webhook import WebhookPlace
from tests.contract.sample_kinds import GIZMO, WIDGET
from tools import manifests as written

OPTIONS = Options(
    image="registry.test/fairlead:1", namespace="ops", webhooks=False, everywhere=True
)
HOOKED = replace(OPTIONS, webhooks=True)


def made(options: Options = OPTIONS) -> list[Object]:
    return manifests.documents([WIDGET, GIZMO], options)


def only(kind: str, options: Options = OPTIONS) -> Any:
    (found,) = [each for each in made(options) if each["kind"] == kind]
    return found


def kinds_of(options: Options) -> set[str]:
    return {each["kind"] for each in made(options)}


def granted(options: Options) -> list[Object]:
    roles = [each for each in made(options) if each["kind"] in {"Role", "ClusterRole"}]
    return [rule for role in roles for rule in role["rules"]]


def test_generated_files_are_fresh() -> None:
    assert written.stale() == [], "hint: run make manifests"


def test_all_that_an_operator_needs_is_there() -> None:
    assert kinds_of(OPTIONS) == {
        *("CustomResourceDefinition", "Namespace", "ServiceAccount"),
        *("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
        *("Deployment", "PodDisruptionBudget", "NetworkPolicy"),
    }
    assert kinds_of(HOOKED) - kinds_of(OPTIONS) == {"Service", "ValidatingWebhookConfiguration"}


def test_the_text_reads_back_as_the_same_objects() -> None:
    text = manifests.text(made(HOOKED))

    assert list(yaml.safe_load_all(text)) == made(HOOKED)
    assert "&id" not in text


def test_no_right_is_a_wildcard_and_none_is_over_secrets_but_our_own() -> None:
    rules = granted(HOOKED)

    assert not [rule for rule in rules if "*" in str(rule)]
    about_secrets = [rule for rule in rules if "secrets" in rule["resources"]]
    assert [(rule["verbs"], rule.get("resourceNames")) for rule in about_secrets] == [
        (["create"], None),
        (["get"], ["fairlead-operator-status"]),
        (["get", "update"], ["fairlead-operator-webhook"]),
    ]
    assert [rule for rule in granted(OPTIONS) if "secrets" in rule["resources"]] == [
        *about_secrets[:2]
    ]


def test_whoever_reviews_may_ask_what_others_may_do() -> None:
    asking = [r for r in granted(HOOKED) if "subjectaccessreviews" in r["resources"]]

    assert [rule["verbs"] for rule in asking] == [["create"]]
    assert not [r for r in granted(OPTIONS) if "subjectaccessreviews" in r["resources"]]


def test_the_webhook_configuration_is_ours_by_name_only() -> None:
    (rule,) = [r for r in granted(HOOKED) if "validatingwebhookconfigurations" in r["resources"]]

    assert rule["resourceNames"] == [
        only("ValidatingWebhookConfiguration", HOOKED)["metadata"]["name"]
    ]
    assert rule["verbs"] == ["get", "patch"]


def test_only_a_kind_with_a_finalizer_may_be_written() -> None:
    rules = {tuple(rule["resources"]): rule["verbs"] for rule in granted(OPTIONS)}

    assert "patch" not in rules["widgets",]
    assert "patch" in rules["gizmos",]
    assert rules["widgets/status",] == ["patch"]


def test_one_watched_namespace_needs_no_right_over_the_cluster() -> None:
    narrow = replace(OPTIONS, watched="shop", everywhere=False)
    there = [each for each in made(narrow) if each["metadata"].get("namespace") == "shop"]

    assert "ClusterRole" not in kinds_of(narrow)
    assert [each["kind"] for each in there] == ["Role", "RoleBinding"]
    assert there[1]["subjects"][0]["namespace"] == "ops"


def test_by_default_an_operator_has_rights_in_its_own_namespace_only() -> None:
    usual = Options(image="registry.test/fairlead:1", namespace="ops", webhooks=False)
    roles = [each for each in made(usual) if "Role" in each["kind"]]

    assert {each["kind"] for each in roles} == {"Role", "RoleBinding"}
    assert {each["metadata"]["namespace"] for each in roles} == {"ops"}
    (container,) = only("Deployment", usual)["spec"]["template"]["spec"]["containers"]
    assert {"name": "FAIRLEAD_OPERATOR_NAMESPACE", "value": "ops"} in container["env"]


def test_the_pod_can_do_no_harm() -> None:
    pod = only("Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"emptyDir", "name"} == {key for volume in pod["volumes"] for key in volume}
    assert container["resources"]["limits"]["memory"]
    assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()


def test_the_database_comes_from_a_secret_and_its_port_is_opened() -> None:
    shared = replace(OPTIONS, database=("store", "url"))
    (container,) = only("Deployment", shared)["spec"]["template"]["spec"]["containers"]
    (given,) = [each for each in container["env"] if each["name"] == "FAIRLEAD_DATABASE_URL"]
    (rule,) = only("NetworkPolicy", shared)["spec"]["egress"]

    assert given["valueFrom"]["secretKeyRef"] == {"name": "store", "key": "url"}
    assert {"protocol": "TCP", "port": 5432} in rule["ports"]


def test_without_an_operator_objects_come_in_unless_told_otherwise() -> None:
    strict = replace(HOOKED, failure_policy="Fail", watched="shop", everywhere=False)
    kept_out = only("ValidatingWebhookConfiguration", strict)["webhooks"][0]

    assert (
        only("ValidatingWebhookConfiguration", HOOKED)["webhooks"][0]["failurePolicy"] == "Ignore"
    )
    assert kept_out["failurePolicy"] == "Fail"
    # Strictness in one namespace must not reach the others.
    assert kept_out["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "shop"}


def test_one_pod_may_always_be_drained() -> None:
    assert only("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def settings_of(pod: Object) -> settings.Settings:
    (container,) = pod["spec"]["template"]["spec"]["containers"]
    return settings.from_environment({one["name"]: one["value"] for one in container["env"]})


def test_each_shard_has_a_deployment_and_may_hold_its_lease() -> None:
    sharded = replace(OPTIONS, shards=3)
    pods = [each for each in made(sharded) if each["kind"] == "Deployment"]
    here = Connection("https://nowhere.test", credentials.Fixed(), namespace="ops")
    told = [
        operator.orders(settings_of(pod).operator, [WIDGET], here, elect=True).candidacy
        for pod in pods
    ]
    named = [r for r in granted(sharded) if r.get("resourceNames")]
    (rule,) = [r for r in named if r["resources"] == ["leases"]]

    assert [pod["metadata"]["name"] for pod in pods] == [f"fairlead-operator-{n}" for n in range(3)]
    assert [one.key.name for one in told if one] == rule["resourceNames"]
    assert len({str(pod["spec"]["selector"]) for pod in pods}) == 3
    for pod in pods:
        chosen = pod["spec"]["selector"]["matchLabels"].items()
        assert chosen <= pod["spec"]["template"]["metadata"]["labels"].items()


def test_the_pod_reviews_under_the_names_that_its_rights_have() -> None:
    here = Connection("https://nowhere.test", credentials.Fixed(), namespace="ops")
    admission_server = operator.orders(
        settings_of(only("Deployment", HOOKED)).operator, [], here, elect=True
    )
    hook = only("ValidatingWebhookConfiguration", HOOKED)
    secrets = [rule for rule in granted(HOOKED) if "secrets" in rule["resources"]]

    assert admission_server.status_key == secrets[1]["resourceNames"][0]
    assert admission_server.admission_server == WebhookPlace(
        "0.0.0.0",  # noqa: S104 - the pod's own network
        workload.WEBHOOK_PORT,
        hook["metadata"]["name"],
        Key("ops", secrets[2]["resourceNames"][0]),
    )
    assert not settings_of(only("Deployment")).operator.operator_webhooks_listen
