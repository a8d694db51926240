"""The chart says what the plain manifests say, for every choice that both offer."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead import __version__
from fairlead.kubernetes.install import manifests
from fairlead.kubernetes.install.workload import Options
from fairlead.kubernetes.kinds import Related
from fairlead.kubernetes.objects import Object, Resource
from tests.contract.sample_kinds import GIZMO, WIDGET
from tests.deploy import chart as charts

SECRETS = Resource("", "v1", "secrets", "Secret")
KINDS = [dataclasses.replace(WIDGET, related=(*WIDGET.related, Related(SECRETS))), GIZMO]
# What Helm marks its own by; nothing selects by these.
HELMS_OWN = ("app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart")
PLAIN = {"image": f"fairlead:{__version__}", "namespace": "ops"}


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    return charts.chart_for(KINDS, tmp_path)


def named(found: list[Object]) -> dict[tuple[str, str], Any]:
    return {
        (each["kind"], each["metadata"]["name"]): unmarked(each)
        for each in found
        # Helm makes the namespace by --create-namespace, without a template.
        if each["kind"] != "Namespace"
    }


def unmarked(value: Any) -> Any:
    """Without Helm's labels and without what only the chart offers to choose."""
    if isinstance(value, dict):
        left_out = (*HELMS_OWN, "imagePullPolicy")
        return {key: unmarked(below) for key, below in value.items() if key not in left_out}
    if isinstance(value, list):
        return [unmarked(each) for each in value]
    return value


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ({}, {}),
        ({"watchNamespace": "shop"}, {"watched": "shop"}),
        ({"allNamespaces": True}, {"everywhere": True}),
        ({"replicas": 3, "name": "lead"}, {"replicas": 3, "name": "lead"}),
        ({"database": {"secret": "store"}}, {"database": ("store", "url")}),
        ({"webhooks": {"enabled": False}}, {"webhooks": False}),
        (
            {"webhooks": {"failurePolicy": "Fail"}, "watchNamespace": "shop"},
            {"failure_policy": "Fail", "watched": "shop"},
        ),
        ({"shards": 3}, {"shards": 3}),
        ({"secrets": False}, {"secrets": False}),
        ({"networkPolicy": {"egressPorts": [9090]}}, {"egress": (9090,)}),
        (
            {"image": {"repository": "registry.test/fairlead", "tag": "9"}},
            {"image": "registry.test/fairlead:9"},
        ),
    ],
    ids=[
        *("default", "narrow", "wide", "named", "database", "unreviewed", "strict", "shards"),
        *("no secrets", "egress", "image"),
    ],
)
def test_chart_and_plain_manifests_are_the_same(
    chart: Path, values: dict[str, Any], options: dict[str, Any]
) -> None:
    plain = manifests.documents(KINDS, Options(**{**PLAIN, **options}))

    assert named(charts.rendered(chart, "ops", values)) == named(plain)


def test_what_only_the_chart_offers(chart: Path) -> None:
    digest = f"sha256:{'0' * 64}"
    values = {
        "image": {"digest": digest},
        "settings": {"FAIRLEAD_IN_FLIGHT": 64},
        "networkPolicy": {"enabled": False},
        "nodeSelector": {"disk": "fast"},
    }

    found = named(charts.rendered(chart, "ops", values))

    pod = found["Deployment", "fairlead-operator"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == f"fairlead@{digest}"
    assert {"name": "FAIRLEAD_IN_FLIGHT", "value": "64"} in pod["containers"][0]["env"]
    assert pod["nodeSelector"] == {"disk": "fast"}
    assert "NetworkPolicy" not in {kind for kind, _ in found}


@pytest.mark.parametrize(
    "values",
    [
        {"replicas": 0},
        {"shards": 0},
        {"replica": 2},
        {"webhooks": {"failurePolicy": "ignore"}},
        {"image": {"digest": "latest"}},
        {"settings": {"PATH": "/"}},
    ],
    ids=["none", "no-shard", "misspelt", "policy", "digest", "foreign-setting"],
)
def test_values_that_make_no_sense_are_refused(chart: Path, values: dict[str, Any]) -> None:
    with pytest.raises(charts.Refused, match="values don't meet the specifications"):
        charts.rendered(chart, "ops", values)


def test_the_chart_in_the_repository_renders_with_the_kinds_there_are() -> None:
    found = charts.rendered(charts.SOURCE, "ops", {"webhooks": {"enabled": True}})

    assert {"Deployment", "Role"} <= {each["kind"] for each in found}


def test_chart_and_program_have_one_version() -> None:
    about = yaml.safe_load((charts.SOURCE / "Chart.yaml").read_text(encoding="utf-8"))

    assert about["version"] == about["appVersion"] == __version__
