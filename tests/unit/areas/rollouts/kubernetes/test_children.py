"""The objects that a rollout owns: names that fit, labels that part, versions that can be read."""

import copy

import pytest

from fairlead.areas.rollouts.domain.plan.spec import Version
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes import children, names, parsing
from tests.unit.areas.rollouts.kubernetes.snapshot import FakeSnapshot, Json, canary

V1 = Version("r1", "t1-1", "c1", "shop:1")


def made(slot: Slot, obj: Json) -> Json:
    found = parsing.read(obj)
    template = parsing.template_of(found, FakeSnapshot())
    return children.deployment(found, found.workload, template, children.Hold(slot, V1, 2, 7))


def test_names_follow_the_original_document() -> None:
    found = names.embedded("shop")

    assert list(found.deployments.values()) == [
        "shop-deployment",
        "shop-canary-deployment",
        "shop-baseline-deployment",
    ]
    assert list(found.services.values()) == [
        "shop-service",
        "shop-canary-service",
        "shop-baseline-service",
    ]


def test_long_names_are_cut_and_stay_apart() -> None:
    one, other = names.embedded("n" * 60 + "a"), names.embedded("n" * 60 + "b")

    found = {*one.deployments.values(), *one.services.values(), *other.deployments.values()}
    assert len(found) == 9
    assert all(len(name) <= names.LONGEST for name in found)


@pytest.mark.requirement("canary R15", "canary R16")
def test_the_slots_have_labels_apart_and_the_object_stays_as_it_is() -> None:
    obj = canary(serviceSpec={"ports": [{"port": 80}], "selector": {"app": "shop"}})
    before = copy.deepcopy(obj)
    found = parsing.read(obj)

    primary, second = made(Slot.PRIMARY, obj), made(Slot.CANARY, obj)
    service = children.service(found, found.workload, Slot.CANARY)

    assert primary["spec"]["selector"]["matchLabels"] == {"app": "shop"}
    assert second["spec"]["selector"]["matchLabels"] == {"app": "shop-canary"}
    assert service["spec"]["selector"] == {"app": "shop-canary"}
    assert obj == before


def test_what_the_service_alone_selects_by_differs_as_well() -> None:
    obj = canary(serviceSpec={"ports": [{"port": 80}], "selector": {"tier": "web"}})
    obj["spec"]["deploymentSpec"]["template"]["metadata"]["labels"]["tier"] = "web"

    pods = made(Slot.CANARY, obj)["spec"]["template"]["metadata"]["labels"]

    assert pods == {"app": "shop-canary", "tier": "web-canary"}


def test_where_the_service_shares_out_the_pods_look_alike_to_it() -> None:
    obj = canary(provider={"replicas": {}})

    labels = [made(slot, obj)["spec"]["template"]["metadata"]["labels"] for slot in Slot]

    assert labels == [
        {"app": "shop", names.SLOT: "primary"},
        {"app": "shop", names.SLOT: "canary"},
        {"app": "shop", names.SLOT: "baseline"},
    ]


def test_a_version_and_its_order_are_read_again_from_what_was_made() -> None:
    obj = made(Slot.CANARY, canary())

    assert children.version_in(obj) == V1
    assert children.order_in(obj) == 7


def test_a_canary_service_takes_nothing_that_only_one_can_have() -> None:
    ports = [{"port": 80, "nodePort": 30080}]
    obj = canary(serviceSpec={"type": "NodePort", "clusterIP": "10.0.0.9", "ports": ports})
    found = parsing.read(obj)

    spec = children.service(found, found.workload, Slot.CANARY)["spec"]

    assert spec == {"ports": [{"port": 80}], "selector": {"app": "shop-canary"}}


def test_configs_change_the_version_and_the_image_names_it() -> None:
    obj = canary()
    template = obj["spec"]["deploymentSpec"]["template"]
    template["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "settings"}}]
    config = {"metadata": {"name": "settings"}, "data": {"digest": "1"}}

    one = parsing.version(template, FakeSnapshot({("ConfigMap", "settings"): [config]}))
    config["data"] = {"digest": "2"}
    other = parsing.version(template, FakeSnapshot({("ConfigMap", "settings"): [config]}))

    assert one.template == other.template
    assert one.revision != other.revision
    assert one.label == "shop:1"


def test_groups_and_limiters_are_of_the_namespace() -> None:
    obj = canary(
        group={"name": "front", "members": ["shop", "till"]}, limiter={"name": "few", "cap": 2}
    )

    spec = parsing.read(obj).spec

    assert spec.group is not None
    assert (spec.group.name, spec.group.me) == ("bay/front", "shop")
    assert spec.limiter is not None
    assert spec.limiter.name == "bay/few"


def test_rules_on_its_own_pods_follow_the_canary_s_labels() -> None:
    obj = canary()
    own, other = {"matchLabels": {"app": "shop"}}, {"matchLabels": {"app": "cache"}}
    listed = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["shop", "till"]}]}
    spec = obj["spec"]["deploymentSpec"]["template"]["spec"]
    spec["affinity"] = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": own}],
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"labelSelector": listed}}
            ],
        },
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": other}]
        },
    }
    spec["topologySpreadConstraints"] = [{"maxSkew": 1, "labelSelector": own}]
    before = copy.deepcopy(obj)

    primary, second = (made(slot, obj)["spec"]["template"]["spec"] for slot in list(Slot)[:2])

    told = str(second)
    assert obj == before
    assert primary["affinity"] == spec["affinity"]
    assert told.count("'app': 'shop-canary'") == 2
    assert "['shop-canary', 'till']" in told
    assert second["affinity"]["podAffinity"] == spec["affinity"]["podAffinity"]


def test_what_stands_beside_a_target_is_found_as_the_target_is() -> None:
    obj = canary(targetRef={"name": "shop"}, service={"name": "shop", "port": 80})
    workload = obj["spec"].pop("deploymentSpec")
    del obj["spec"]["serviceSpec"]
    meta = {
        "labels": {"team": "shop", "fairlead.dev/x": "1", "argocd.argoproj.io/instance": "a"},
        "annotations": {
            "owner": "ada",
            "deployment.kubernetes.io/revision": "3",
            "external-dns.alpha.kubernetes.io/hostname": "shop.example.com",
        },
    }
    service = {"metadata": meta, "spec": {"ports": [{"port": 80}], "selector": {"app": "shop"}}}
    found = parsing.read(obj)
    theirs = children.Theirs({"metadata": meta, "spec": workload}, service)
    hold = children.Hold(Slot.CANARY, V1, 1, 1)

    pods = children.deployment(found, workload, workload["template"], hold, theirs)
    beside = children.service(found, workload, Slot.CANARY, service)

    for one in (pods, beside):
        assert one["metadata"]["labels"].items() >= {"team": "shop"}.items()
        assert one["metadata"]["annotations"]["owner"] == "ada"
        said = {**one["metadata"]["labels"], **one["metadata"]["annotations"]}
        assert not [key for key in said if key.startswith(("argocd", "deployment", "external"))]
    assert beside["spec"]["selector"] == {"app": "shop-canary"}
