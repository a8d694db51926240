"""What is refused before anything is made of it, each with the path of its field."""

from typing import Any

import pytest

from fairlead.areas.rollouts.kubernetes import parsing, validation, wiring
from fairlead.kubernetes.kinds import InvalidSpec
from tests.unit.areas.rollouts.kubernetes.snapshot import FakeSnapshot, Json, canary, deployment

SELECTOR = "spec.deploymentSpec.selector.matchLabels"


def problems(obj: Json) -> dict[str, str]:
    return dict(wiring.canaries().review(obj, None))


def with_(path: str, value: Any) -> Json:
    obj = canary()
    *parents, last = path.split(".")
    place = obj["spec"]
    for part in parents:
        place = place[part]
    place[last] = value
    return obj


def test_a_good_object_has_no_problem() -> None:
    assert problems(canary()) == {}


@pytest.mark.requirement("canary R8")
@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("deploymentSpec.selector", {"matchLabels": {"app": "till"}}, SELECTOR),
        ("deploymentSpec.selector", {}, SELECTOR),
        (
            "deploymentSpec.selector",
            {"matchLabels": {"app": "shop"}, "matchExpressions": [{"key": "a"}]},
            "spec.deploymentSpec.selector.matchExpressions",
        ),
        ("serviceSpec.selector", {"app": "till"}, "spec.serviceSpec.selector"),
        ("serviceSpec.ports", [], "spec.serviceSpec.ports"),
        ("serviceSpec.ports", [{"port": 70000}], "spec.serviceSpec.ports[0].port"),
        ("deploymentSpec.replicas", -1, "spec.deploymentSpec.replicas"),
        (
            "deploymentSpec.template",
            {"metadata": {"labels": {"app": "shop"}}},
            "spec.deploymentSpec.template.spec.containers",
        ),
        ("strategy", {"steps": [101]}, "spec.strategy.steps[0]"),
        ("strategy", {"steps": [50, 20]}, "spec.strategy"),
        ("strategy", {"steps": [50], "pause": "soon"}, "spec.strategy.pause"),
        ("windows", [{"zone": "Nowhere/Else"}], "spec.windows[0]"),
        ("checks", [{"name": "a", "query": "up", "success": "result <"}], "spec.checks[0]"),
        ("checks", [{"name": "a", "judge": {"metrics": 7}}], "spec.checks[0].judge.metrics"),
        ("targetRef", {"name": "shop"}, "spec.targetRef"),
        ("service", {"name": "shop", "port": 80}, "spec.service"),
        ("provider", {"smoke": {}}, "spec.provider.smoke"),
        ("provider", {"istio": {}, "replicas": {}}, "spec.provider"),
        ("stratgy", {}, "spec.stratgy"),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_field(path: str, value: Any, field: str) -> None:
    assert list(problems(with_(path, value))) == [field]


def test_all_fields_that_make_no_sense_are_told_at_once() -> None:
    wrong = canary(stratgy={}, deadline="soon", strategy={"pause": 30})

    assert list(problems(wrong)) == ["spec.stratgy", "spec.strategy.pause"]


def test_a_service_alone_knows_no_headers() -> None:
    obj = canary(
        provider={"replicas": {}},
        strategy={"kind": "ab", "matches": [{"header": "x-beta", "exact": "yes"}]},
    )

    assert list(problems(obj)) == ["spec.strategy"]


@pytest.mark.requirement("canary R8")
def test_a_service_alone_knows_no_baseline() -> None:
    obj = canary(provider={"replicas": {}}, strategy={"steps": [10], "baseline": True})

    assert list(problems(obj)) == ["spec.strategy.baseline"]
    assert problems(canary(strategy={"steps": [10], "baseline": True})) == {}


def test_a_service_of_others_cannot_be_the_route() -> None:
    obj = canary(provider={"replicas": {}})
    del obj["spec"]["deploymentSpec"], obj["spec"]["serviceSpec"]
    obj["spec"] |= {"targetRef": {"name": "shop"}, "service": {"name": "shop", "port": 80}}

    assert list(problems(obj)) == ["spec.provider.replicas"]


def test_an_edit_of_metadata_is_let_pass_whatever_stands_there() -> None:
    bad = with_("deploymentSpec.selector", {})

    assert wiring.canaries().review({**bad, "metadata": {"labels": {}}}, bad) == ()


def test_a_provider_that_the_cluster_does_not_know_is_named() -> None:
    canaries = wiring.canaries()
    snapshot = FakeSnapshot(absent=frozenset({"VirtualService"}))

    told = validation.of_snapshot(parsing.read(canary()), canaries.providers["istio"], snapshot)

    assert [path for path, _ in told] == ["spec.provider.istio"]


@pytest.mark.parametrize(
    ("service", "field"),
    [
        ([], "spec.service.name"),
        ([{"spec": {"ports": [{"port": 81}], "selector": {"app": "shop"}}}], "spec.service.port"),
        ([{"spec": {"ports": [{"port": 80}], "selector": {"app": "x"}}}], "spec.service.name"),
    ],
    ids=["absent", "port", "selector"],
)
def test_a_target_needs_a_service_that_leads_to_it(service: list[Json], field: str) -> None:
    obj = canary()
    del obj["spec"]["deploymentSpec"], obj["spec"]["serviceSpec"]
    obj["spec"] |= {"targetRef": {"name": "shop"}, "service": {"name": "shop", "port": 80}}
    target = deployment("shop")
    target["spec"]["template"] = canary()["spec"]["deploymentSpec"]["template"]
    snapshot = FakeSnapshot({("Deployment", "shop"): [target], ("Service", "shop"): service})
    canaries = wiring.canaries()

    told = validation.of_snapshot(parsing.read(obj), canaries.providers["istio"], snapshot)

    assert [path for path, _ in told] == [field]


@pytest.mark.requirement("canary R8")
def test_a_look_refuses_what_admission_would_have_refused() -> None:
    bad = with_("deploymentSpec.selector", {"matchLabels": {"app": "till"}})

    with pytest.raises(InvalidSpec, match=SELECTOR):
        wiring.canaries().observe(bad, FakeSnapshot())


def test_what_is_wrong_with_a_route_is_told_by_the_field_of_its_own_kind() -> None:
    wrong = {"hosts": ["shop"], "http": [{"route": [{"destination": {"host": ""}}]}]}
    made = {**canary(), "kind": "IstioCanaryDeployment"}
    made["spec"] = {**made["spec"], "virtualServiceSpec": wrong}
    del made["spec"]["provider"]

    told = validation.of_snapshot(
        parsing.read(made), wiring.canaries().providers["istio"], FakeSnapshot()
    )

    at = "spec.virtualServiceSpec.http[0].route[0].destination.host"
    assert (at, "must name a host") in told


def owned(uid: str, kind: str = "CanaryDeployment", name: str = "shop") -> Json:
    owner = {"uid": uid, "kind": kind, "name": name, "controller": True}
    return {"ownerReferences": [owner]}


@pytest.mark.parametrize(
    ("meta", "reasons"),
    [
        (owned("u1"), []),
        ({"labels": {"fairlead.dev/rollout": "shop"}}, []),
        (owned("u0"), []),
        ({}, [""]),
        ({"labels": {"fairlead.dev/rollout": "till"}}, [""]),
        (owned("u2", "Application"), [" of Application shop"]),
        (owned("u2", name="till"), [" of CanaryDeployment till"]),
    ],
    ids=[
        "ours",
        "left over",
        "a predecessor's",
        "nobody's",
        "of another",
        "a kind's",
        "a canary's",
    ],
)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Deployment", "shop-canary-deployment"),
        ("Service", "shop-service"),
        ("VirtualService", "shop"),
    ],
)
def test_what_stands_under_the_name_of_a_child_is_ours_or_named(
    meta: Json, reasons: list[str], kind: str, name: str
) -> None:
    live = {"metadata": {"namespace": "bay", "name": name, **meta}, "spec": {}}
    istio = wiring.canaries().providers["istio"]

    told = validation.of_snapshot(
        parsing.read(canary()), istio, FakeSnapshot({(kind, name): [live]})
    )

    said = "is in the way: it was not made for this object"
    assert told == [("metadata.name", f"{kind} {name}{of} {said}") for of in reasons]


def test_a_route_of_others_that_is_adopted_is_not_in_the_way() -> None:
    live = {
        "metadata": {"namespace": "bay", "name": "front"},
        "spec": {"http": [{"route": [{"destination": {"host": "shop-service"}}]}]},
    }
    parsed = parsing.read(canary(provider={"istio": {"vsName": "front"}}))
    istio = wiring.canaries().providers["istio"]

    told = validation.of_snapshot(
        parsed, istio, FakeSnapshot({("VirtualService", "front"): [live]})
    )

    assert told == []


TARGET = {"targetRef": {"name": "shop"}, "service": {"name": "shop", "port": 80}}


def held(**spec: Any) -> Any:
    made = canary(**{**TARGET, "provider": {"istio": {"vsName": "front"}}, **spec})
    if "targetRef" in made["spec"]:
        del made["spec"]["deploymentSpec"], made["spec"]["serviceSpec"]
    return made


@pytest.mark.requirement("canary R8")
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"targetRef": {"name": "till"}}, "spec.targetRef.name"),
        ({"service": {"name": "till", "port": 80}}, "spec.service.name"),
        ({"provider": {"istio": {"vsName": "back"}}}, "spec.provider.istio.vsName"),
        ({"provider": {"istio": {}}}, "spec.provider.istio.vsName"),
        ({"provider": {"gatewayApi": {"routeName": "front"}}}, "spec.provider.istio.vsName"),
    ],
)
def test_a_write_that_leaves_what_is_held_is_refused(change: Any, field: str) -> None:
    found = wiring.canaries().review(held(**change), held())

    assert [path for path, _ in found] == [field]


def test_a_write_that_keeps_what_is_held_is_let_pass() -> None:
    kinds = wiring.canaries()

    assert not kinds.review(held(keep=3, service={"name": "shop", "port": 81}), held())
    assert not kinds.review(canary(provider={"gatewayApi": {}}), canary())
