"""Deployments that would take each other's pods: found both ways, whatever the selector's form."""

import pytest

from fairlead.areas.rollouts.kubernetes import names, parsing, selector_overlap, validation, wiring
from fairlead.kubernetes.objects import Key
from tests.unit.areas.rollouts.kubernetes.cluster import DEPLOYMENTS, RolloutHarness, set_up
from tests.unit.areas.rollouts.kubernetes.snapshot import FakeSnapshot, Json, canary

FIELD = "spec.deploymentSpec.selector.matchLabels"


def labels(**found: str) -> Json:
    return {"matchLabels": found}


def express(*needs: tuple[str, str, list[str]]) -> Json:
    return {"matchExpressions": [{"key": k, "operator": op, "values": v} for k, op, v in needs]}


def other(selector: Json, pods: Json, name: str = "till") -> Json:
    template = {"metadata": {"labels": pods}}
    meta = {"namespace": "bay", "name": name}
    return {"metadata": meta, "spec": {"selector": selector, "template": template}}


def shop(**more: str) -> Json:
    """Pods app=shop, tier=web, selected by app, and by more if so asked."""
    obj = canary()
    work = obj["spec"]["deploymentSpec"]
    work["selector"]["matchLabels"] = {"app": "shop", **more}
    work["template"]["metadata"]["labels"] = {"app": "shop", "tier": "web", **more}
    return obj


def snapshot(*deployments: Json) -> FakeSnapshot:
    things: dict[tuple[str, str], list[Json]] = {}
    for one in deployments:
        for term in (one["metadata"]["name"], *selector_overlap.traits(one)):
            things.setdefault(("Deployment", term), []).append(one)
    return FakeSnapshot(things)


def told(obj: Json, *deployments: Json) -> list[tuple[str, str]]:
    istio = wiring.canaries().providers["istio"]
    return list(validation.of_snapshot(parsing.read(obj), istio, snapshot(*deployments)))


@pytest.mark.requirement("canary R8")
@pytest.mark.parametrize(
    "selector",
    [
        labels(app="shop"),
        labels(tier="web"),
        labels(app="shop", tier="web"),
        express(("app", "In", ["shop", "till"])),
        express(("tier", "Exists", [])),
        express(("app", "NotIn", ["harbor"])),
        express(("team", "DoesNotExist", [])),
        labels(app="shop") | express(("tier", "In", ["web"])),
        labels(app="shop-canary"),
        express(("app", "In", ["shop-canary"])),
    ],
    ids=str,
)
def test_one_that_would_select_our_pods_is_in_the_way(selector: Json) -> None:
    (problem,) = told(shop(), other(selector, {"app": "elsewhere", "tier": "none", "team": "b"}))

    assert problem[0] == FIELD
    assert problem[1].startswith("Deployment till selects these pods too: ")


@pytest.mark.requirement("canary R8")
@pytest.mark.parametrize(
    "pods",
    [
        {"app": "shop", "role": "debug"},
        {"app": "shop-canary", "role": "debug"},
    ],
    ids=["primary", "canary"],
)
def test_one_whose_pods_we_would_select_is_in_the_way(pods: Json) -> None:
    selector = labels(role="debug", name="unlike")

    assert told(shop(), other(selector, {**pods, "name": "unlike"})) == [
        (FIELD, "it would also select the pods of Deployment till")
    ]


@pytest.mark.parametrize(
    ("selector", "pods"),
    [
        (labels(app="till"), {"app": "till", "tier": "web"}),
        (labels(app="shop", role="debug"), {"app": "harbor", "role": "debug"}),
        (express(("app", "In", ["till"])), {"app": "till"}),
        (express(("app", "NotIn", ["shop", "shop-canary"])), {"app": "till"}),
        (express(("tier", "DoesNotExist", [])), {"app": "till"}),
        (express(("team", "Exists", [])), {"app": "till", "team": "a"}),
        (labels(app="shop") | express(("tier", "In", ["db"])), {"app": "x", "tier": "db"}),
        ({}, {"app": "till"}),
        (express(("app", "Sounds", ["like"])), {"app": "till"}),
    ],
    ids=str,
)
def test_who_shares_no_pod_is_not_in_the_way(selector: Json, pods: Json) -> None:
    assert told(shop(), other(selector, pods)) == []


def test_our_own_children_are_never_in_the_way() -> None:
    primary, canary_, _ = names.embedded("shop").deployments.values()
    kin = other(labels(app="shop"), {"app": "shop"}, "anything")
    one = other(labels(app="shop"), {"app": "shop"}, primary)
    two = other(labels(app="shop-canary"), {"app": "shop-canary"}, canary_)
    for each in (one, two, kin):
        each["metadata"]["ownerReferences"] = [{"uid": "u1", "controller": True}]

    assert told(shop(), one, two, kin) == []


def target(selector: Json) -> tuple[Json, FakeSnapshot]:
    obj = canary(targetRef={"name": "shop"}, service={"name": "shop", "port": 80})
    del obj["spec"]["deploymentSpec"], obj["spec"]["serviceSpec"]
    mine = other(selector, {"app": "shop", "tier": "web"}, "shop")
    found = snapshot(mine, other(labels(x="y"), {"app": "shop", "tier": "db", "x": "y"}))
    service = {"spec": {"ports": [{"port": 80}], "selector": {"app": "shop"}}}
    found.things["Service", "shop"] = [service]
    return obj, found


@pytest.mark.parametrize(
    ("selector", "overlapping"),
    [
        (labels(app="shop"), True),
        (labels(app="shop") | express(("tier", "In", ["web"])), False),
        (labels(app="shop") | express(("tier", "In", ["web", "db"])), True),
    ],
    ids=["labels", "apart by an expression", "together by one"],
)
def test_a_target_selects_by_its_expressions_too(selector: Json, overlapping: bool) -> None:  # noqa: FBT001 - a table
    obj, found = target(selector)
    istio = wiring.canaries().providers["istio"]

    problems = validation.of_snapshot(parsing.read(obj), istio, found)

    assert [path for path, _ in problems] == (["spec.targetRef.name"] if overlapping else [])


def refusal(harness: RolloutHarness) -> str:
    """What a look says of it."""
    context = harness.context()
    context_of = harness.canaries.observe(context.obj, context.snapshot)
    return context_of.refusal.message if context_of.refusal is not None else ""


@pytest.mark.requirement("canary R8")
async def test_it_is_well_again_once_the_other_is_gone() -> None:
    obj = shop()
    del obj["metadata"]["uid"]
    async with set_up(obj) as harness:
        assert refusal(harness) == ""
        cache = harness.contexts.cache(harness.context(), names.DEPLOYMENTS)

        made = other(labels(tier="web"), {"tier": "web"})
        cache.wrote(await harness.hand.apply(DEPLOYMENTS, made))
        assert "Deployment till selects these pods too: tier=web" in refusal(harness)

        cache.remove(Key("bay", "till"), 10_000)
        assert refusal(harness) == ""
