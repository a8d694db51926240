"""A Deployment of somebody else: held, let go, held again, and an edit that comes between."""

from collections.abc import AsyncIterator

import pytest

from fairlead.adapters.canaries import names, reading, targets
from fairlead.adapters.canaries.duties import Care
from fairlead.adapters.canaries.figures import Figures
from fairlead.adapters.kubernetes.objects import Key, Object, Selection
from fairlead.domain.rollouts import triggers
from fairlead.domain.rollouts.messages import EnsureVersion, Slot
from fairlead.domain.rollouts.spec import Version
from fairlead.errors import NotFound
from tests.fakes.kubernetes.server import Fault, Request
from tests.unit.adapters.canaries.around import canary
from tests.unit.adapters.canaries.stage import DEPLOYMENTS, REVISIONS, Stage, set_up

PARKED = "fairlead.dev/parked"


def template(image: str) -> Object:
    container = {"name": "web", "image": image}
    return {"metadata": {"labels": {"app": "shop"}}, "spec": {"containers": [container]}}


def image(deployment: Object) -> str:
    said: str = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    return said


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
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


def wanted(stage: Stage) -> Version:
    case = stage.case()
    return reading.wanted(case.reading, case.around)


async def ensure(stage: Stage, order: int, version: Version | None = None) -> Version:
    asked = version or wanted(stage)
    await stage.platform.ensure(EnsureVersion(stage.name, order, Slot.PRIMARY, asked, 2))
    return asked


async def tend(stage: Stage) -> Object:
    await targets.tend(stage.desk, stage.case(), stage.platform)
    return await stage.get("shop")


async def let_go(stage: Stage) -> Version:
    """For version 2, which is not rolled yet."""
    await stage.edit("shop", {"spec": {"template": template("shop:2")}})
    return await ensure(stage, 2)


async def test_a_held_target_may_say_what_it_likes(stage: Stage) -> None:
    await stage.edit("shop", {"spec": {"template": template("shop:2")}})

    found = await tend(stage)

    assert found["spec"]["paused"] is True
    assert wanted(stage).label == image(found) == "shop:2"


async def test_it_is_let_go_for_a_version_and_held_once_it_is_that(stage: Stage) -> None:
    await let_go(stage)
    assert (await tend(stage))["spec"]["paused"] is False

    await stage.rolled("shop")

    assert (await tend(stage))["spec"]["paused"] is True


async def test_an_edit_on_the_way_waits_and_is_still_what_is_wanted(stage: Stage) -> None:
    second = await let_go(stage)
    await stage.edit("shop", {"spec": {"template": template("shop:3")}})

    found = await tend(stage)

    assert image(found) == "shop:2"
    assert found["spec"]["paused"] is False
    third = wanted(stage)
    assert third.label == "shop:3"
    assert found["metadata"]["annotations"][PARKED] == reading.parking(third)
    assert triggers.template_hash(await stage.platform.template(stage.case(), third)) == (
        third.template
    )
    assert second.revision == found["metadata"]["annotations"][names.REVISION]


async def test_the_edit_comes_back_when_the_target_is_held(stage: Stage) -> None:
    await let_go(stage)
    await stage.edit("shop", {"spec": {"template": template("shop:3")}})
    await tend(stage)
    third = wanted(stage)
    await stage.rolled("shop")
    await tend(stage)

    found = await tend(stage)

    assert (image(found), found["spec"]["paused"]) == ("shop:3", True)
    assert PARKED not in found["metadata"]["annotations"]
    assert wanted(stage).meaning == third.meaning


async def test_a_later_edit_is_the_one_that_counts(stage: Stage) -> None:
    await let_go(stage)
    for edit in ("shop:3", "shop:4"):
        await stage.edit("shop", {"spec": {"template": template(edit)}})
        await tend(stage)
    assert wanted(stage).label == "shop:4"
    await stage.rolled("shop")
    await tend(stage)

    await stage.edit("shop", {"spec": {"template": template("shop:5")}})

    found = await tend(stage)
    assert image(found) == wanted(stage).label == "shop:5"
    assert PARKED not in found["metadata"]["annotations"]


async def test_an_edit_just_before_it_is_let_go_waits_too(stage: Stage) -> None:
    await stage.edit("shop", {"spec": {"template": template("shop:2")}})
    second = wanted(stage)
    case = stage.case()
    await stage.platform.keep(case, second, template("shop:2"))
    await stage.edit("shop", {"spec": {"template": template("shop:3")}})

    await ensure(stage, 2, second)

    found = await stage.get("shop")
    assert image(found) == "shop:2"
    assert wanted(stage).label == "shop:3"


async def test_what_was_taken_back_does_not_wait(stage: Stage) -> None:
    """Version 2 went home; what comes next is a rollback, and version 2 is not tried again."""
    await stage.edit("shop", {"spec": {"template": template("shop:2")}})
    taken_back = wanted(stage)
    case = stage.case()
    case.obj["status"] = {"wantedHash": taken_back.template}
    third = Version("r3", triggers.template_hash(template("shop:0")), "", "shop:0")
    await stage.platform.keep(case, third, template("shop:0"))
    await targets.roll(
        stage.desk, case, stage.platform, EnsureVersion(stage.name, 3, Slot.PRIMARY, third, 2)
    )

    found = await stage.get("shop")
    assert image(found) == "shop:0"
    assert PARKED not in found["metadata"]["annotations"]


def claims(target: Object) -> list[Object]:
    """Ours to the template."""
    return [
        one
        for one in target["metadata"]["managedFields"]
        if one["manager"] == "fairlead" and "f:template" in one["fieldsV1"].get("f:spec", {})
    ]


@pytest.mark.parametrize("conflicts", [0, 2], ids=["quiet", "busy"])
async def test_who_applies_the_target_next_meets_no_claim_of_ours(
    stage: Stage, conflicts: int
) -> None:
    await let_go(stage)
    await stage.edit("shop", {"spec": {"template": template("shop:3")}})
    served = stage.server.store.served[str(DEPLOYMENTS)]

    def is_claimed(seen: Request) -> bool:
        """Between our write and the end of our claim, somebody else writes."""
        return seen.method == "PATCH" and bool(
            claims(stage.server.store.get(served, Key("bay", "shop")))
        )

    busy = Fault(409, conflicts, reason="Conflict", only=is_claimed)
    stage.server.faults.append(busy)

    found = await tend(stage)

    assert image(found) == "shop:2"
    assert claims(found) == []
    assert busy.times == 0


async def test_a_rollout_that_goes_gives_the_edit_back(stage: Stage) -> None:
    await let_go(stage)
    await stage.edit("shop", {"spec": {"template": template("shop:3")}})
    await tend(stage)

    await targets.give_back(stage.desk, stage.case(), stage.platform)

    found = await stage.get("shop")
    assert image(found) == "shop:3"
    assert not found["spec"].get("paused")
    assert not [key for key in found["metadata"]["annotations"] if key.startswith("fairlead.dev")]


async def test_a_hold_of_what_somebody_changed_meanwhile_is_not_written(stage: Stage) -> None:
    await let_go(stage)
    await stage.rolled("shop")
    case = stage.case()
    case.around.found(names.DEPLOYMENTS, "shop")
    change = {"spec": {"template": template("shop:3")}}
    await stage.hand.patch(DEPLOYMENTS, Key("bay", "shop"), change)

    await targets.tend(stage.desk, case, stage.platform)

    assert (await stage.get("shop"))["spec"]["paused"] is False


async def test_an_edit_that_waits_does_not_push_a_needed_revision_out(stage: Stage) -> None:
    await let_go(stage)
    await stage.edit("shop", {"spec": {"template": template("shop:3")}})
    await tend(stage)

    await ensure(stage, 3, reading.version(template("shop:2"), stage.case().around))

    found = stage.hand.each(REVISIONS, Selection("bay"))
    kept = {one["data"]["template"]["spec"]["containers"][0]["image"] async for one in found}
    assert kept == {"shop:1", "shop:2", "shop:3"}


@pytest.mark.parametrize("told", ["", "r1", "r1/t1", "r1/t1/c1"])
def test_a_note_that_nobody_can_read_is_none(told: str) -> None:
    assert reading.parked({"metadata": {"annotations": {PARKED: told}}}) is None


def test_a_note_tells_the_whole_version() -> None:
    version = Version("r1", "t1-abc", "", "shop:1")
    noted = {"metadata": {"annotations": {PARKED: reading.parking(version)}}}

    assert reading.parked(noted) == version


async def test_a_version_that_nobody_keeps_is_said(stage: Stage) -> None:
    with pytest.raises(NotFound):
        await stage.platform.template(stage.case(), Version("r9", "t9"))


async def test_a_target_that_is_gone_is_said_by_the_look_and_no_more_work(stage: Stage) -> None:
    case = stage.case()
    stage.canaries.observe(case.obj, case.around)
    stage.desk.cache(case, names.DEPLOYMENTS).remove(Key("bay", "shop"), 10_000)

    look = stage.canaries.observe(case.obj, stage.case().around)
    care = Care(stage.desk, stage.platform, stage.router, stage.canaries, Figures())
    await care.tend(case.station, case.obj)

    assert look.refusal is not None
    assert "there is no Deployment of this name here: shop" in look.refusal.message
