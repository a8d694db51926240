"""What a canary may ask of the operator's rights, and what its writer must be allowed."""

from typing import Any

import pytest

from fairlead.areas.rollouts.kubernetes import requester, wiring
from fairlead.areas.rollouts.kubernetes.routing.permitted import Permitted
from fairlead.kubernetes.kinds import InvalidSpec
from fairlead.settings import OperatorSettings
from tests.unit.areas.rollouts.kubernetes.snapshot import FakeSnapshot, Json, canary

LOOSE = requester.permitted(
    OperatorSettings(
        operator_hosts="shop.example.com, *.test",
        operator_gateways="istio-system/public,infra/*",
        operator_services="ClusterIP,LoadBalancer,externalIPs",
        operator_exports="infra, team-*",
    )
)


def refused(obj: Json, permitted: Permitted | None = None) -> list[str]:
    canaries = wiring.canaries()
    if permitted is not None:
        canaries.permitted = permitted
    return [path for path, _ in canaries.review(obj, None)]


def routed(**spec: Any) -> Json:
    return canary(provider={"istio": {"virtualService": spec}})


def served(**spec: Any) -> Json:
    return canary(serviceSpec={"ports": [{"port": 80}], **spec})


@pytest.mark.parametrize(
    "host",
    ["*", "*.example.com", "shop.example.com", "shop.other", "shop.other.svc.cluster.local",
     "*.bay.svc.cluster.local", "shop.bay.example.com"],
)  # fmt: skip
def test_a_route_in_the_mesh_claims_no_host_of_others(host: str) -> None:
    at = "spec.provider.istio.virtualService.hosts[0]"

    assert refused(routed(hosts=[host])) == [at]
    assert refused(routed(hosts=[host], gateways=["mesh", "public"])) == [at]


@pytest.mark.parametrize("host", ["shop", "shop.bay", "shop.bay.svc", "shop.bay.svc.cluster.local"])
def test_a_route_in_the_mesh_claims_services_of_its_own_namespace(host: str) -> None:
    assert refused(routed(hosts=[host])) == []


def test_which_hosts_a_gateway_serves_is_its_owners_to_say_but_never_all() -> None:
    assert refused(routed(hosts=["shop.example.com"], gateways=["public"])) == []
    assert refused(routed(hosts=["*"], gateways=["public"])) == [
        "spec.provider.istio.virtualService.hosts[0]"
    ]


@pytest.mark.parametrize(
    "gateway",
    ["istio-system/public", "public.istio-system", "public.istio-system.svc.cluster.local"],
)
def test_a_gateway_of_another_namespace_must_be_named_by_the_operator(gateway: str) -> None:
    asked = routed(hosts=["a.example.com"], gateways=["own", "./own", "bay/own", gateway])

    assert refused(asked) == ["spec.provider.istio.virtualService.gateways[3]"]
    assert refused(asked, LOOSE) == []


def test_a_route_is_exported_to_its_own_namespace_or_as_the_operator_says() -> None:
    own, others = routed(exportTo=[".", "bay", "~"]), routed(exportTo=[".", "infra", "team-a", "*"])
    at = "spec.provider.istio.virtualService.exportTo"

    assert refused(routed()) == refused(own) == []
    assert refused(others) == [f"{at}[1]", f"{at}[2]", f"{at}[3]"]
    assert refused(others, LOOSE) == [f"{at}[3]"]
    assert refused(others, Permitted(exports=("*",))) == []


def test_the_other_kind_is_held_to_the_same() -> None:
    made = {**canary(), "kind": "IstioCanaryDeployment"}
    made["spec"] = {**made["spec"], "virtualServiceSpec": {"hosts": ["*"]}}
    del made["spec"]["provider"]

    assert refused(made) == ["spec.virtualServiceSpec.hosts[0]"]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"type": "LoadBalancer"}, "type"),
        ({"type": "NodePort"}, "type"),
        ({"type": "ExternalName", "externalName": "db.example.com"}, "type"),
        ({"externalName": "db.example.com"}, "type"),
        ({"externalIPs": ["192.0.2.7"]}, "externalIPs"),
    ],
)
def test_a_service_is_reached_from_within_the_cluster(spec: Json, path: str) -> None:
    assert refused(served(**spec)) == [f"spec.serviceSpec.{path}"]


def test_settings_allow_more() -> None:
    assert refused(served(type="ClusterIP")) == []
    assert refused(served(type="LoadBalancer", externalIPs=["192.0.2.7"]), LOOSE) == []
    assert refused(served(type="NodePort"), LOOSE) == ["spec.serviceSpec.type"]
    assert refused(routed(hosts=["shop.example.com", "a.test"]), LOOSE) == []
    assert refused(routed(hosts=["*"]), Permitted(hosts=("*",))) == []


def needs(new: Json, old: Json | None = None) -> set[tuple[str, ...]]:
    found = wiring.canaries().needs(new, old)
    assert {need.namespace for need in found} == ({"bay"} if found else set())
    return {(need.path, need.verb, need.api.plural, need.name) for need in found}


def test_whoever_creates_a_canary_needs_the_rights_to_what_is_made_of_it() -> None:
    rule = {"istio": {"vsName": "front", "destinationRule": "policy"}}

    assert needs(canary()) == {
        ("spec.deploymentSpec", "create", "deployments", ""),
        ("spec.serviceSpec", "create", "services", ""),
        ("spec.provider.istio", "create", "virtualservices", ""),
    }
    assert needs(canary(provider=rule)) == {
        ("spec.deploymentSpec", "create", "deployments", ""),
        ("spec.serviceSpec", "create", "services", ""),
        ("spec.provider.istio.vsName", "patch", "virtualservices", "front"),
        ("spec.provider.istio.destinationRule", "get", "destinationrules", "policy"),
        ("spec.provider.istio", "create", "destinationrules", ""),
    }
    assert needs(canary(provider={"gatewayApi": {"routeName": "front"}})) >= {
        ("spec.provider.gatewayApi.routeName", "patch", "httproutes", "front"),
        ("spec.provider.gatewayApi", "create", "httproutes", ""),
    }


def test_whoever_names_a_target_needs_the_right_to_change_it() -> None:
    target = canary(targetRef={"name": "web"}, service={"name": "web", "port": 80})
    del target["spec"]["deploymentSpec"], target["spec"]["serviceSpec"]

    assert ("spec.targetRef", "patch", "deployments", "web") in needs(target)


def test_an_edit_needs_the_rights_to_what_it_changes() -> None:
    image = canary()
    image["spec"]["deploymentSpec"]["replicas"] = 5

    assert needs(canary(paused=True), canary()) == set()
    assert needs(image, canary()) == {("spec.deploymentSpec", "create", "deployments", "")}
    assert needs(routed(hosts=["shop"]), canary()) == {
        ("spec.provider.istio", "create", "virtualservices", "")
    }
    assert len(needs(canary(), canary(provider={"nowhere": {}}))) == 3


def test_limits_hold_for_what_came_around_the_webhook() -> None:
    with pytest.raises(InvalidSpec, match="FAIRLEAD_OPERATOR_SERVICES"):
        wiring.canaries().observe(served(type="LoadBalancer"), FakeSnapshot())
