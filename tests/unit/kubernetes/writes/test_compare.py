"""When the live object already says what we want, and when it does not."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.kubernetes.objects import Object
from fairlead.kubernetes.writes import compare
from tests.contract.kubernetes_samples import deployment, widget
from tests.fakes.kubernetes import kinds

SERVED = {str(kind.resource): kind for kind in kinds.BUILT_IN}


def container(**fields: Any) -> Object:
    obj = deployment("shop", "web")
    obj["spec"]["template"]["spec"]["containers"][0] |= fields
    return obj


def first(obj: Object) -> Any:
    return obj["spec"]["template"]["spec"]["containers"][0]


def defaulted(obj: Object) -> Object:
    live: Object = copy.deepcopy(obj)
    SERVED["deployments.apps"].defaults(live)
    live["metadata"] |= {"uid": "u", "resourceVersion": "5", "generation": 1}
    return live


def test_what_the_server_adds_is_no_difference() -> None:
    wanted = deployment("shop", "web")

    assert compare.differences(wanted, defaulted(wanted)) == []


@pytest.mark.parametrize(
    ("wanted", "live"),
    [
        ({"limits": {"cpu": "1000m"}}, {"limits": {"cpu": "1"}}),
        ({"limits": {"memory": "1024Mi"}}, {"limits": {"memory": "1Gi"}}),
        ({"requests": {"cpu": 2}}, {"requests": {"cpu": "2"}}),
        ({"requests": {"memory": "1e3"}}, {"requests": {"memory": "1k"}}),
    ],
)
def test_quantities_are_compared_by_value(wanted: Object, live: Object) -> None:
    assert compare.differences(container(resources=wanted), container(resources=live)) == []


def test_a_label_that_looks_like_a_quantity_is_text() -> None:
    wanted, live = deployment("shop", "web"), deployment("shop", "web")
    wanted["metadata"]["labels"], live["metadata"]["labels"] = {"size": "1000m"}, {"size": "1"}

    assert compare.differences(wanted, live) == ["metadata.labels.size"]


def test_changes_are_named_by_path() -> None:
    live = defaulted(container(image="shop:2"))
    live["spec"]["replicas"] = 3
    wanted = deployment("shop", "web")
    wanted["spec"]["replicas"] = 2

    assert compare.differences(wanted, live) == [
        *("spec.template.spec.containers[web].image", "spec.replicas")
    ]


def test_items_of_others_in_keyed_lists_are_no_difference() -> None:
    wanted = deployment("shop", "web")
    live = defaulted(wanted)
    live["spec"]["template"]["spec"]["containers"].insert(0, {"name": "mesh", "image": "proxy"})

    assert compare.differences(wanted, live) == []


def test_ports_are_told_apart_with_their_default_protocol() -> None:
    wanted = container(ports=[{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}])
    live = container(
        ports=[{"containerPort": 53, "protocol": p, "name": f"dns-{p}"} for p in ("UDP", "TCP")]
    )

    assert compare.differences(wanted, live) == []


def test_lists_without_keys_are_compared_whole() -> None:
    assert compare.differences(container(args=["a"]), container(args=["a", "b"])) == [
        "spec.template.spec.containers[web].args"
    ]
    assert compare.differences(container(args=["a", "b"]), container(args=["b", "a"])) != []


def test_typed_kinds_leave_out_zero_values() -> None:
    live = defaulted(deployment("shop", "web"))

    assert compare.differences(container(tty=False, args=[]), live) == []
    assert compare.differences(container(tty=True), live) == [
        "spec.template.spec.containers[web].tty"
    ]


def test_an_empty_map_says_something() -> None:
    wanted, live = deployment("shop", "web"), deployment("shop", "web")
    wanted["spec"]["template"]["spec"]["volumes"] = [{"name": "tmp", "emptyDir": {}}]
    live["spec"]["template"]["spec"]["volumes"] = [{"name": "tmp", "hostPath": {"path": "/"}}]

    assert compare.differences(wanted, live) == ["spec.template.spec.volumes[tmp].emptyDir"]


def test_custom_kinds_keep_what_they_are_given() -> None:
    assert compare.differences(widget("shop", "a", sails=0), widget("shop", "a")) == ["spec.sails"]
    crew = [{"name": "ann"}]
    assert compare.differences(widget("s", "a", crew=crew), widget("s", "a", crew=[*crew, {}])) == [
        "spec.crew"
    ]


def test_true_is_not_one() -> None:
    assert compare.differences(widget("s", "a", flag=True), widget("s", "a", flag=1)) == [
        "spec.flag"
    ]


def test_gateway_api_is_a_custom_kind() -> None:
    assert not compare.is_typed({"apiVersion": "gateway.networking.k8s.io/v1"})
    assert compare.is_typed({"apiVersion": "networking.k8s.io/v1"})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(spec=json_values)
def test_a_request_never_differs_from_itself(spec: Any) -> None:
    for version in ("v1", "tests.fairlead.dev/v1"):
        desired = {"apiVersion": version, "spec": spec}
        assert compare.differences(desired, copy.deepcopy(desired)) == []


@settings(deadline=None)
@given(spec=st.dictionaries(st.sampled_from("abc"), json_values), name=st.sampled_from("xyz"))
def test_fields_of_others_never_matter(spec: dict[str, Any], name: str) -> None:
    desired = {"apiVersion": "v1", "spec": spec}
    live = {"apiVersion": "v1", "spec": {**spec, name: "theirs"}}

    assert compare.differences(desired, live) == []
    assert compare.projection(live, desired) == desired


@pytest.mark.parametrize(
    ("wanted", "live"),
    [
        ({"a": 1}, {"a": True}),
        ({"a": {"b": 1}}, {"a": [1]}),
        ({"a": [1, 2]}, {"a": [1]}),
        ({"a": [1]}, {"a": {"b": 1}}),
        ({"a": "1"}, {}),
    ],
)
def test_the_short_way_sees_every_difference(wanted: Object, live: Object) -> None:
    assert compare.differences(wanted, live) == ["a"]
