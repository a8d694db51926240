"""The CloudFormation template: same input, same bytes; fields of the files have their effect."""

import copy
import json
from typing import Any

import pytest

from fairlead.areas.deployments.specs import build, reading, template
from fairlead.areas.deployments.specs.naming import Site
from tests.unit.areas.deployments.specs.files import APP, CLUSTER, ENV

PLAIN = {"name": "app", "image": {"name": "shop"}}


def site(app: Any = APP, env: Any = ENV, cluster: Any = CLUSTER) -> Site:
    return Site(reading.application(app), reading.environment(env), reading.cluster(cluster).aws)


def made(**changes: Any) -> dict[str, Any]:
    resources: dict[str, Any] = template.template(site(changed(APP, **changes)))["Resources"]
    return resources


def changed(app: dict[str, Any], **runtime: Any) -> dict[str, Any]:
    """The application with other words in its only runtime."""
    found = copy.deepcopy(app)
    found["runtimes"][0] |= runtime
    return found


def properties(resources: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = resources[name]["Properties"]
    return found


def test_the_same_files_give_the_same_bytes_in_whatever_order_they_were_written() -> None:
    turned = dict(reversed(APP.items()))

    assert template.text(site()) == template.text(site(turned))
    assert json.loads(template.text(site()))["AWSTemplateFormatVersion"] == "2010-09-09"


def test_what_a_version_changes_is_a_parameter() -> None:
    found = template.template(site())
    given = template.parameters(site(), "v2")

    assert given["ImageWebApp"] == "registry.example/shop:v2"
    assert (given["DesiredCountWeb"], given["ScaledFromWeb"]) == ("1", "")
    assert {*given} == {*found["Parameters"]}
    service = properties(found["Resources"], "WebService")
    assert service["DesiredCount"] == {"Ref": "DesiredCountWeb"}


def test_containers_get_their_variables_and_secrets() -> None:
    (container,) = properties(made(), "WebTask")["ContainerDefinitions"]

    assert container["Image"] == {"Ref": "ImageWebApp"}
    assert container["Environment"] == [
        {"Name": "IMAGES", "Value": "s3://images-shop-prod-eu"},
        {"Name": "REGION", "Value": "eu"},
    ]
    place = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod-eu/shop"
    assert container["Secrets"] == [
        {"Name": "DB", "ValueFrom": f"{place}/orders:dburl::"},
        {"Name": "KEY", "ValueFrom": f"{place}/api:key::"},
    ]


def test_what_holds_data_outlives_its_stack() -> None:
    kept = {name for name, each in made().items() if each.get("DeletionPolicy") == "Retain"}

    assert kept == {"ApiSecret", "ImagesBucket"}


@pytest.mark.parametrize(("group", "lowest"), [("FIRST", 1), ("NORMAL", 1000), ("FALLBACK", 2000)])
def test_a_route_group_decides_the_range_of_a_rule(group: str, lowest: int) -> None:
    app = changed(APP, routes=[{"prefix": "/shop", "route_group": group}])

    priority = int(template.parameters(site(app), "v1")["PriorityWeb0"])

    assert lowest <= priority < lowest + 999


def test_a_route_leads_to_its_container() -> None:
    found = made(routes=[{"prefix": "/shop", "protocol": "GRPC", "port": 9000}])

    assert properties(found, "WebTargetGroup0")["ProtocolVersion"] == "GRPC"
    (balancer,) = properties(found, "WebService")["LoadBalancers"]
    assert (balancer["ContainerName"], balancer["ContainerPort"]) == ("app", 9000)
    paths = properties(found, "WebRule0")["Conditions"][0]["Values"]
    assert paths == ["/shop/*", "/shop"]


def test_a_sidecar_takes_requests_unless_a_route_bypasses_it() -> None:
    with_sidecar = copy.deepcopy(CLUSTER)
    with_sidecar["aws"]["o5_sidecar"] = {"image_version": "3"}
    app = changed(APP, routes=[{"prefix": "/a"}, {"prefix": "/b", "bypass_ingress": True}])

    found = template.template(site(app, cluster=with_sidecar))["Resources"]

    targets = [each["ContainerName"] for each in properties(found, "WebService")["LoadBalancers"]]
    assert targets == ["sidecar", "app"]
    names = [each["Name"] for each in properties(found, "WebTask")["ContainerDefinitions"]]
    assert names == ["app", "sidecar"]


def test_policies_of_the_environment_reach_the_role() -> None:
    env = {**ENV, "aws": {"iam_policies": [{"name": "mail", "policy_arn": "arn:mail"}]}}
    app = changed(APP, named_env_policies=["mail"])

    found = template.template(site(app, env))["Resources"]

    assert properties(found, "WebRole")["ManagedPolicyArns"] == ["arn:mail"]


def test_a_demand_is_processor_and_memory() -> None:
    containers = [{**APP["runtimes"][0]["containers"][0], "demand": "HEAVY", "command": ["run"]}]

    (container,) = properties(made(containers=containers), "WebTask")["ContainerDefinitions"]

    assert (container["Cpu"], container["Memory"], container["Command"]) == (512, 1024, ["run"])


def test_rights_to_foreign_buckets_are_those_that_were_asked_for() -> None:
    shared = [{"bucket_name": "reports", "write_permission": True}]
    env = {**ENV, "aws": {"shared_buckets": shared}}
    stores = [
        {"name": "reports", "ref": {"bucket_name": "reports", "write_permission": True}},
        {"name": "photos", "ref": {"application": "cart", "read_permission": True}},
    ]
    app = reading.application({**changed(APP, containers=[PLAIN]), "blobstores": stores})

    text = build.template_text(app, reading.environment(env), reading.cluster(CLUSTER))

    resources = json.loads(text)["Resources"]
    (policy,) = properties(resources, "WebRole")["Policies"]
    rights = [each for each in policy["PolicyDocument"]["Statement"] if "s3:" in str(each)]
    assert [(each["Action"], each["Resource"]) for each in rights] == [
        (["s3:PutObject", "s3:DeleteObject"], ["arn:aws:s3:::reports/*"]),
        (
            ["s3:GetObject", "s3:ListBucket"],
            ["arn:aws:s3:::photos-cart-prod-eu", "arn:aws:s3:::photos-cart-prod-eu/*"],
        ),
    ]
    assert not [name for name in resources if name.endswith("Bucket")]
