"""A plan's version written into an object, or into the target that it looks after."""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.rollouts.domain import plan_step
from fairlead.areas.rollouts.kubernetes import names, plan_steps
from fairlead.areas.rollouts.kubernetes.kinds import CANARIES
from fairlead.engine import outbox
from fairlead.kubernetes.objects import Key, Object
from tests.fakes.kubernetes.server import Fault
from tests.unit.areas.rollouts.kubernetes.cluster import RolloutHarness, set_up
from tests.unit.areas.rollouts.kubernetes.snapshot import canary

SHOP = Key("bay", "shop")
WHERE = {"namespace": "bay", "name": "shop"}


def template() -> Object:
    env = [{"name": "LEVEL", "value": "info"}, {"name": "KEY", "valueFrom": {"secretKeyRef": {}}}]
    web = {"name": "web", "image": "shop:1", "ports": [{"containerPort": 8080}], "env": env}
    beside = {"name": "proxy", "image": "proxy:7"}
    return {"metadata": {"labels": {"app": "shop"}}, "spec": {"containers": [web, beside]}}


def workload() -> Object:
    labels = {"matchLabels": {"app": "shop"}}
    return {"replicas": 3, "selector": labels, "template": template()}


def embedded() -> Object:
    made = canary(deploymentSpec=workload())
    del made["metadata"]["uid"]
    return made


def target() -> contextlib.AbstractAsyncContextManager[RolloutHarness]:
    """An object that names a Deployment, which somebody else made."""
    obj = canary(targetRef={"name": "shop"}, service={"name": "shop", "port": 80})
    del obj["spec"]["deploymentSpec"], obj["spec"]["serviceSpec"], obj["metadata"]["uid"]
    service = {"ports": [{"port": 80}], "selector": {"app": "shop"}}
    deployment = (names.DEPLOYMENTS, {"metadata": WHERE, "spec": workload()})
    return set_up(obj, deployment, (names.SERVICES, {"metadata": WHERE, "spec": service}))


@pytest.fixture(params=["embedded", "target"])
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[RolloutHarness]:
    async with target() if request.param == "target" else set_up(embedded()) as made:
        yield made


async def performed(
    harness: RolloutHarness, image: str = "shop:2", *, asleep: bool = False, **changes: Any
) -> Any:
    one = {"name": "web", "image": image, **changes}
    return await told(harness, json.dumps({"containers": [one]}), asleep=asleep)


async def told(
    harness: RolloutHarness, content: str, rollout: str = "bay/shop", *, asleep: bool = False
) -> Any:
    effect = plan_step.ApplyVersion(rollout, "", "deployment/v2", content, asleep)
    handler: Any = plan_steps.handlers(harness.contexts, harness.canaries)[type(effect)]
    return await handler.perform(effect, outbox.EffectContext)


async def spec_of(harness: RolloutHarness) -> tuple[Object, Object]:
    """The spec of the workload as it stands on the server, and the metadata beside it."""
    obj = await harness.hand.get(CANARIES, SHOP)
    if "deploymentSpec" in obj["spec"]:
        return obj["spec"]["deploymentSpec"], obj["metadata"]
    target = await harness.get("shop")
    return target["spec"], target["metadata"]


async def test_the_object_gets_the_image_and_asks_for_that_version(harness: RolloutHarness) -> None:
    answer = await performed(harness)

    spec, _ = await spec_of(harness)
    web, beside = spec["template"]["spec"]["containers"]
    mine = template()["spec"]["containers"][0]
    assert (web["image"], web["env"]) == ("shop:2", mine["env"])
    assert web["ports"][0]["containerPort"] == 8080
    assert (beside["image"], spec["replicas"]) == ("proxy:7", 3)
    # What the reconciler is about to find is what the rollout is asked for, under its whole name.
    assert str(answer.request.version) == "shop:2"
    assert (answer.request.by, answer.request.replicas) == ("deployment/v2", 3)
    assert answer.rollout == answer.request.name == harness.name


async def test_a_second_delivery_writes_nothing_new(harness: RolloutHarness) -> None:
    first = await performed(harness)
    _, before = await spec_of(harness)

    again = await performed(harness)

    _, after = await spec_of(harness)
    assert again == first
    assert after["resourceVersion"] == before["resourceVersion"]


async def test_variables_that_are_named_change_and_no_others(harness: RolloutHarness) -> None:
    before = await performed(harness)

    after = await performed(harness, env={"LEVEL": "debug", "PAGE": "9"})

    spec, _ = await spec_of(harness)
    env = {one["name"]: one for one in spec["template"]["spec"]["containers"][0]["env"]}
    values = {name: one.get("value") for name, one in env.items()}
    assert values == {"LEVEL": "debug", "PAGE": "9", "KEY": None}
    assert "valueFrom" in env["KEY"]
    # The same image with other variables is another version.
    assert after.request.version.meaning != before.request.version.meaning


async def test_what_a_plan_stops_comes_back_as_it_was(harness: RolloutHarness) -> None:
    stopped = await performed(harness, asleep=True)
    again = await performed(harness, asleep=True)
    asleep, meta = await spec_of(harness)
    images = [one["image"] for one in asleep["template"]["spec"]["containers"]]
    up = await performed(harness)
    awake, after = await spec_of(harness)

    assert stopped.request.replicas == again.request.replicas == 0
    assert (asleep["replicas"], meta["annotations"][plan_steps.SCALED_FROM]) == (0, "3")
    assert images == ["shop:1", "proxy:7"], "it only stops"
    assert (awake["replicas"], up.request.replicas) == (3, 3)
    assert plan_steps.SCALED_FROM not in (after.get("annotations") or {})
    assert str(up.request.version) == "shop:2"


async def test_what_a_person_scaled_meanwhile_stays(harness: RolloutHarness) -> None:
    await performed(harness, asleep=True)
    by_hand: Object = {"spec": {"replicas": 5}}
    obj = await harness.hand.get(CANARIES, SHOP)
    if "deploymentSpec" in obj["spec"]:
        change = {"spec": {"deploymentSpec": by_hand["spec"]}}
        done = await harness.hand.patch(CANARIES, SHOP, change)
        harness.context().controller.held.objects.wrote(done)
    else:
        await harness.edit("shop", by_hand)

    await performed(harness)

    spec, meta = await spec_of(harness)
    assert spec["replicas"] == 5
    assert plan_steps.SCALED_FROM not in (meta.get("annotations") or {})


async def test_what_cannot_be_applied_says_why_and_changes_nothing(harness: RolloutHarness) -> None:
    _, before = await spec_of(harness)
    content = json.dumps({"containers": [{"name": "app", "image": "shop:2"}]})

    unknown = await told(harness, content)
    missing = await told(harness, content, "bay/till")
    elsewhere = await told(harness, content, "harbour/shop")
    senseless = await told(harness, "{}")

    _, after = await spec_of(harness)
    assert unknown == plan_step.NotApplied("no such container: app")
    assert missing == plan_step.NotApplied("no such rollout in this cluster: bay/till")
    assert elsewhere == plan_step.NotApplied("no such rollout in this cluster: harbour/shop")
    assert "containers" in senseless.reason
    assert after["resourceVersion"] == before["resourceVersion"]


async def test_an_image_of_a_target_is_the_plans_and_whoever_applies_it_hears_of_that() -> None:
    async with target() as harness:
        await performed(harness)

        web = {"name": "web", "image": "shop:1"}
        theirs = {"metadata": WHERE, "spec": {"template": {"spec": {"containers": [web]}}}}
        with pytest.raises(errors.Conflict, match=plan_steps.MANAGER):
            await harness.hand.apply(names.DEPLOYMENTS, theirs)


async def test_a_conflict_is_no_answer_but_an_error_that_the_outbox_tries_again() -> None:
    async with set_up(embedded()) as harness:
        only = Fault(409, reason="Conflict", only=lambda request: request.method == "PATCH")
        harness.server.faults.append(only)

        with pytest.raises(errors.Conflict):
            await performed(harness)
        answer = await performed(harness)

    assert str(answer.request.version) == "shop:2"


async def test_a_rollout_that_is_being_deleted_takes_no_version() -> None:
    made = embedded()
    made["metadata"]["finalizers"] = ["test/holds"]
    async with set_up(made) as harness:
        await harness.hand.delete(CANARIES, SHOP)
        harness.context().controller.held.objects.wrote(await harness.hand.get(CANARIES, SHOP))

        answer = await performed(harness)

    assert answer == plan_step.NotApplied("it is being deleted: bay/shop")
