"""A Deployment of somebody else: held, let go, held again, and an edit that comes between."""

from collections.abc import AsyncIterator

import pytest

from fairlead.areas.rollouts.domain.messages import EnsureVersion
from fairlead.areas.rollouts.domain.plan import triggers
from fairlead.areas.rollouts.domain.plan.spec import Version
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes import adopted_deployment, names, parsing
from fairlead.areas.rollouts.kubernetes.child_reconciler import ChildReconciler
from fairlead.areas.rollouts.kubernetes.collectors import RolloutMetrics
from fairlead.errors import NotFound
from fairlead.kubernetes.objects import Key, Object, Selection
from tests.fakes.kubernetes.server import Fault, Request
from tests.unit.areas.rollouts.kubernetes.cluster import (
    DEPLOYMENTS,
    REVISIONS,
    RolloutHarness,
    set_up,
)
from tests.unit.areas.rollouts.kubernetes.snapshot import canary

PARKED = "fairlead.dev/parked"


def template(image: str) -> Object:
    container = {"name": "web", "image": image}
    return {"metadata": {"labels": {"app": "shop"}}, "spec": {"containers": [container]}}


def image(deployment: Object) -> str:
    said: str = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    return said


@pytest.fixture
async def harness() -> AsyncIterator[RolloutHarness]:
    """A target at version 1, all of it rolled and held."""
    obj = canary(targetRef={"name": "shop"}, service={"name": "shop", "port": 80}, keep=1)
    del obj["spec"]["deploymentSpec"], obj["spec"]["serviceSpec"], obj["metadata"]["uid"]
    where = {"namespace": "bay", "name": "shop"}
    work = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "shop"}},
        "template": template("shop:1"),
    }
    service = {"ports": [{"port": 80}], "selector": {"app": "shop"}}
    async with set_up(
        obj,
        (names.DEPLOYMENTS, {"metadata": where, "spec": work}),
        (names.SERVICES, {"metadata": where, "spec": service}),
    ) as made:
        await made.rolled("shop")
        await ensure(made, 1)
        assert (await made.get("shop"))["spec"]["paused"] is True
        yield made


def wanted(harness: RolloutHarness) -> Version:
    context = harness.context()
    return parsing.desired(context.parsed, context.snapshot)


async def ensure(harness: RolloutHarness, order: int, version: Version | None = None) -> Version:
    asked = version or wanted(harness)
    await harness.platform.ensure(EnsureVersion(harness.name, order, Slot.PRIMARY, asked, 2))
    return asked


async def hold_again(harness: RolloutHarness) -> Object:
    await adopted_deployment.hold_again(harness.contexts, harness.context(), harness.platform)
    return await harness.get("shop")


async def let_go(harness: RolloutHarness) -> Version:
    """For version 2, which is not rolled yet."""
    await harness.edit("shop", {"spec": {"template": template("shop:2")}})
    return await ensure(harness, 2)


async def test_a_held_target_may_say_what_it_likes(harness: RolloutHarness) -> None:
    await harness.edit("shop", {"spec": {"template": template("shop:2")}})

    found = await hold_again(harness)

    assert found["spec"]["paused"] is True
    assert wanted(harness).label == image(found) == "shop:2"


async def test_it_is_let_go_for_a_version_and_held_once_it_is_that(harness: RolloutHarness) -> None:
    await let_go(harness)
    assert (await hold_again(harness))["spec"]["paused"] is False

    await harness.rolled("shop")

    assert (await hold_again(harness))["spec"]["paused"] is True


async def test_an_edit_on_the_way_waits_and_is_still_what_is_wanted(
    harness: RolloutHarness,
) -> None:
    second = await let_go(harness)
    await harness.edit("shop", {"spec": {"template": template("shop:3")}})

    found = await hold_again(harness)

    assert image(found) == "shop:2"
    assert found["spec"]["paused"] is False
    third = wanted(harness)
    assert third.label == "shop:3"
    assert found["metadata"]["annotations"][PARKED] == parsing.parking(third)
    assert triggers.template_hash(await harness.platform.template(harness.context(), third)) == (
        third.template
    )
    assert second.revision == found["metadata"]["annotations"][names.REVISION]


async def test_the_edit_comes_back_when_the_target_is_held(harness: RolloutHarness) -> None:
    await let_go(harness)
    await harness.edit("shop", {"spec": {"template": template("shop:3")}})
    await hold_again(harness)
    third = wanted(harness)
    await harness.rolled("shop")
    await hold_again(harness)

    found = await hold_again(harness)

    assert (image(found), found["spec"]["paused"]) == ("shop:3", True)
    assert PARKED not in found["metadata"]["annotations"]
    assert wanted(harness).meaning == third.meaning


async def test_a_later_edit_is_the_one_that_counts(harness: RolloutHarness) -> None:
    await let_go(harness)
    for edit in ("shop:3", "shop:4"):
        await harness.edit("shop", {"spec": {"template": template(edit)}})
        await hold_again(harness)
    assert wanted(harness).label == "shop:4"
    await harness.rolled("shop")
    await hold_again(harness)

    await harness.edit("shop", {"spec": {"template": template("shop:5")}})

    found = await hold_again(harness)
    assert image(found) == wanted(harness).label == "shop:5"
    assert PARKED not in found["metadata"]["annotations"]


async def test_an_edit_just_before_it_is_let_go_waits_too(harness: RolloutHarness) -> None:
    await harness.edit("shop", {"spec": {"template": template("shop:2")}})
    second = wanted(harness)
    context = harness.context()
    await harness.platform.keep(context, second, template("shop:2"))
    await harness.edit("shop", {"spec": {"template": template("shop:3")}})

    await ensure(harness, 2, second)

    found = await harness.get("shop")
    assert image(found) == "shop:2"
    assert wanted(harness).label == "shop:3"


async def test_what_was_rolled_back_does_not_wait(harness: RolloutHarness) -> None:
    """Version 2 was rolled back; a rollback comes next, and version 2 is not tried again."""
    await harness.edit("shop", {"spec": {"template": template("shop:2")}})
    rolled_back = wanted(harness).template

    await roll_to_oldest(harness, {"desiredHash": rolled_back})

    found = await harness.get("shop")
    assert image(found) == "shop:0"
    assert PARKED not in found["metadata"]["annotations"]


async def test_what_is_to_be_rolled_out_next_waits(harness: RolloutHarness) -> None:
    await harness.edit("shop", {"spec": {"template": template("shop:2")}})
    pending = wanted(harness).template

    await roll_to_oldest(harness, {"desiredHash": pending, "pendingHash": pending})

    assert image(await harness.get("shop")) == "shop:0"
    assert wanted(harness).label == "shop:2"


async def roll_to_oldest(harness: RolloutHarness, status: Object) -> None:
    """To a version that the target's own template does not say."""
    context = harness.context()
    context.obj["status"] = status
    oldest = Version("r3", triggers.template_hash(template("shop:0")), "", "shop:0")
    await harness.platform.keep(context, oldest, template("shop:0"))
    effect = EnsureVersion(harness.name, 3, Slot.PRIMARY, oldest, 2)
    await adopted_deployment.roll(harness.contexts, context, harness.platform, effect)


def claims(target: Object) -> list[Object]:
    """Ours to the template."""
    return [
        one
        for one in target["metadata"]["managedFields"]
        if one["manager"] == "fairlead" and "f:template" in one["fieldsV1"].get("f:spec", {})
    ]


@pytest.mark.parametrize("conflicts", [0, 2], ids=["quiet", "busy"])
async def test_who_applies_the_target_next_meets_no_claim_of_ours(
    harness: RolloutHarness, conflicts: int
) -> None:
    await let_go(harness)
    await harness.edit("shop", {"spec": {"template": template("shop:3")}})
    served = harness.server.store.served[str(DEPLOYMENTS)]

    def is_claimed(seen: Request) -> bool:
        """Between our write and the end of our claim, somebody else writes."""
        return seen.method == "PATCH" and bool(
            claims(harness.server.store.get(served, Key("bay", "shop")))
        )

    busy = Fault(409, conflicts, reason="Conflict", only=is_claimed)
    harness.server.faults.append(busy)

    found = await hold_again(harness)

    assert image(found) == "shop:2"
    assert claims(found) == []
    assert busy.times == 0


async def test_a_rollout_that_goes_gives_the_edit_back(harness: RolloutHarness) -> None:
    await let_go(harness)
    await harness.edit("shop", {"spec": {"template": template("shop:3")}})
    await hold_again(harness)

    await adopted_deployment.give_back(harness.contexts, harness.context(), harness.platform)

    found = await harness.get("shop")
    assert image(found) == "shop:3"
    assert not found["spec"].get("paused")
    assert not [key for key in found["metadata"]["annotations"] if key.startswith("fairlead.dev")]


async def test_a_hold_of_what_somebody_changed_meanwhile_is_not_written(
    harness: RolloutHarness,
) -> None:
    await let_go(harness)
    await harness.rolled("shop")
    context = harness.context()
    context.snapshot.found(names.DEPLOYMENTS, "shop")
    change = {"spec": {"template": template("shop:3")}}
    await harness.hand.patch(DEPLOYMENTS, Key("bay", "shop"), change)

    await adopted_deployment.hold_again(harness.contexts, context, harness.platform)

    assert (await harness.get("shop"))["spec"]["paused"] is False


async def test_an_edit_that_waits_does_not_push_a_needed_revision_out(
    harness: RolloutHarness,
) -> None:
    await let_go(harness)
    await harness.edit("shop", {"spec": {"template": template("shop:3")}})
    await hold_again(harness)

    await ensure(harness, 3, parsing.version(template("shop:2"), harness.context().snapshot))

    found = harness.hand.each(REVISIONS, Selection("bay"))
    kept = {one["data"]["template"]["spec"]["containers"][0]["image"] async for one in found}
    assert kept == {"shop:1", "shop:2", "shop:3"}


@pytest.mark.parametrize("told", ["", "r1", "r1/t1", "r1/t1/c1"])
def test_a_note_that_nobody_can_read_is_none(told: str) -> None:
    assert parsing.parked({"metadata": {"annotations": {PARKED: told}}}) is None


def test_a_note_tells_the_whole_version() -> None:
    version = Version("r1", "t1-abc", "", "shop:1")
    noted = {"metadata": {"annotations": {PARKED: parsing.parking(version)}}}

    assert parsing.parked(noted) == version


async def test_a_version_that_nobody_keeps_is_said(harness: RolloutHarness) -> None:
    with pytest.raises(NotFound):
        await harness.platform.template(harness.context(), Version("r9", "t9"))


async def test_a_target_that_is_gone_is_said_by_the_look_and_no_more_work(
    harness: RolloutHarness,
) -> None:
    context = harness.context()
    harness.canaries.observe(context.obj, context.snapshot)
    harness.contexts.cache(context, names.DEPLOYMENTS).remove(Key("bay", "shop"), 10_000)

    context_of = harness.canaries.observe(context.obj, harness.context().snapshot)
    care = ChildReconciler(
        harness.contexts, harness.platform, harness.router, harness.canaries, RolloutMetrics()
    )
    await care.after_reconcile(context.controller, context.obj)

    assert context_of.refusal is not None
    assert "no such Deployment in this namespace: shop" in context_of.refusal.message
