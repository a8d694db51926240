"""What a template means: defaults, spelling and order of keys do not; images and configs do."""

import copy
from typing import Any

import pytest

from fairlead.areas.rollouts.domain.plan import triggers

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "shop"}},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": "shop:1.2",
                "ports": [{"containerPort": 8080}],
                "resources": {"limits": {"cpu": "0.5", "memory": "1Gi"}},
                "readinessProbe": {"httpGet": {"path": "/", "port": 8080}},
                "env": [
                    {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "env", "key": "a"}}},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "b"}}},
                ],
                "envFrom": [{"secretRef": {"name": "more"}}],
            }
        ],
        "volumes": [
            {"name": "cfg", "configMap": {"name": "files"}},
            {"name": "tls", "secret": {"secretName": "tls"}},
            {"name": "both", "projected": {"sources": [{"configMap": {"name": "part"}}]}},
            {"name": "tmp", "emptyDir": {}},
        ],
    },
}
DEFAULTED: dict[str, Any] = copy.deepcopy(TEMPLATE)
DEFAULTED["metadata"] |= {"creationTimestamp": None, "annotations": {}}
DEFAULTED["spec"] |= {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "securityContext": {},
}
DEFAULTED["spec"]["containers"][0] |= {
    "imagePullPolicy": "IfNotPresent",
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
    "resources": {"limits": {"cpu": "500m", "memory": "1024Mi"}, "requests": {}},
    "readinessProbe": {
        "httpGet": {"path": "/", "port": 8080, "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    },
}
DEFAULTED["spec"]["volumes"][0]["configMap"]["defaultMode"] = 420


@pytest.mark.requirement("canary R20", "canary R23")
def test_what_the_api_server_fills_in_does_not_change_the_meaning() -> None:
    assert triggers.template_hash(DEFAULTED) == triggers.template_hash(TEMPLATE)


@pytest.mark.requirement("canary R20")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "containers", 0, "image"), "shop:1.3"),
        (("spec", "containers", 0, "resources", "limits", "cpu"), "0.6"),
        (("spec", "containers", 0, "imagePullPolicy"), "Always"),
        (("spec", "containers", 0, "env"), []),
        (("spec", "terminationGracePeriodSeconds"), 31),
        (("spec", "volumes", 3, "emptyDir"), {"medium": "Memory"}),
        (("metadata", "annotations"), {"restartedAt": "today"}),
        (("metadata", "labels", "app"), "other"),
    ],
)
def test_what_changes_a_pod_changes_the_meaning(path: tuple[Any, ...], value: object) -> None:
    changed = copy.deepcopy(TEMPLATE)
    *way, last = path
    inner: Any = changed
    for key in way:
        inner = inner[key]
    inner[last] = value

    assert triggers.template_hash(changed) != triggers.template_hash(TEMPLATE)


def test_our_own_marks_and_the_order_of_keys_do_not_count() -> None:
    marked = copy.deepcopy(TEMPLATE)
    marked["metadata"]["annotations"] = {"fairlead.dev/order": "7"}
    turned = {key: TEMPLATE[key] for key in reversed(TEMPLATE)}

    assert triggers.template_hash(marked) == triggers.template_hash(TEMPLATE)
    assert triggers.template_hash(turned) == triggers.template_hash(TEMPLATE)


def test_a_hash_names_its_rules_and_stays_the_same() -> None:
    # Written down: if this changes, every rollout in the world starts at the next upgrade.
    assert triggers.template_hash(TEMPLATE) == HASH


def test_every_config_a_pod_reads_is_tracked() -> None:
    assert triggers.tracked(TEMPLATE) == (
        "configmap/env", "configmap/files", "configmap/part",
        "secret/keys", "secret/more", "secret/tls",
    )  # fmt: skip


def test_tracking_can_be_opted_out_of_by_pod_and_by_config() -> None:
    out = {"metadata": {"annotations": {triggers.OPT_OUT: "disabled"}}}

    assert triggers.tracked(TEMPLATE | out) == ()
    assert not triggers.is_tracked(out)
    assert triggers.is_tracked({"metadata": {}})


def test_the_content_of_configs_counts_and_nothing_else_of_them() -> None:
    before = triggers.config_hash({"configmap/env": {"data": {"a": "1"}}})
    touched = {"data": {"a": "1"}, "metadata": {"resourceVersion": "9"}}

    assert triggers.config_hash({"configmap/env": touched}) == before
    assert triggers.config_hash({"configmap/env": {"data": {"a": "2"}}}) != before
    assert triggers.config_hash({}) == ""


HASH = "t1-a8f591fc37600059"
