"""Neighbours that deny, lock, change and delete; weather; and secrets that come back as errors."""

from pathlib import Path

import pytest

from fairlead.areas.resources.domain.reconcile.messages import Apply, ErrorClass, Refresh, Remove
from fairlead.areas.resources.domain.reconcile.state import Phase
from tests.simulated_cloud import Behaviour, SimulatedCloud, Style
from tests.unit.areas.resources.domain import scale_set
from tests.unit.areas.resources.driven import APPLY, ID, Driven, declared, driven

SECRET = {"mode": "Flexible", "phrase": {"fromSecret": "admin"}}


def why(one: Driven) -> tuple[ErrorClass, str]:
    failure = one.story.state.failure
    assert failure is not None
    return failure.kind, failure.message


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (403, "RequestDisallowedByPolicy"),
        (409, "ScopeLocked"),
        (400, "NoRegisteredProviderFound"),
        (409, "MissingSubscriptionRegistration"),
    ],
)
async def test_what_somebody_has_to_change_is_told_and_rarely_tried(
    status: int, code: str, tmp_path: Path
) -> None:
    cloud = SimulatedCloud(Behaviour(refusals={"PUT": (status, code, "not here")}))
    async with driven(cloud, tmp_path) as one:
        await one.tell(APPLY)
        assert (one.phase, why(one)[0]) == (Phase.FAILED, ErrorClass.REFUSED)
        assert f"{code}: not here" in why(one)[1]

        start = one.story.now
        for _ in range(3):
            await one.woken()
        assert (one.story.now - start).total_seconds() > 30 * 60

        cloud.behaviour.refusals = {}
        assert (await one.tell(Refresh())).phase is Phase.READY


async def test_a_lock_keeps_what_is_to_be_deleted_and_is_told(tmp_path: Path) -> None:
    cloud = SimulatedCloud()
    async with driven(cloud, tmp_path) as one:
        await one.tell(APPLY)
        cloud.behaviour.refusals = {"DELETE": (409, "ScopeLocked", "locked")}
        await one.tell(Remove())
        assert (one.phase, why(one)[1].partition(" (")[0]) == (Phase.FAILED, "ScopeLocked: locked")

        cloud.behaviour.refusals = {}
        assert (await one.woken()).phase is Phase.GONE


async def test_a_name_that_is_deleted_softly_is_waited_for(tmp_path: Path) -> None:
    cloud = SimulatedCloud(Behaviour(soft_delete=True))
    async with driven(cloud, tmp_path) as one:
        await one.tell(APPLY)
        await one.tell(Remove())
        one.story.tell(APPLY)
        one.pending += one.story.last.effects
        while one.pending:
            await one.perform()
        assert one.phase is Phase.WAITING
        assert "recover or purge it" in why(one)[1]

        cloud.deleted.clear()
        assert (await one.rest()).phase is Phase.READY


async def test_another_operator_on_the_same_value_is_answered_once_a_turn(tmp_path: Path) -> None:
    async with driven(SimulatedCloud(), tmp_path) as one:
        await one.tell(APPLY)
        for _ in range(5):
            one.cloud.put(ID, {**one.shown, "tags": {"tag1": "theirs"}})
            start = one.story.now
            await one.woken()
            assert (one.story.now - start).total_seconds() > 40 * 60

    assert one.wrote == ["PUT", *["PATCH"] * 5]


async def test_without_a_word_of_how_long_throttling_is_waited_out_at_its_pace(
    tmp_path: Path,
) -> None:
    async with driven(SimulatedCloud(throttled=3, throttled_for=""), tmp_path) as one:
        start = one.story.now
        await one.tell(APPLY)

        assert (one.phase, one.wrote) == (Phase.READY, ["PUT"])
        assert (one.story.now - start).total_seconds() >= 0.75 * (30 + 60 + 120)


async def test_a_token_that_ends_in_an_operation_waits_and_makes_nothing_twice(
    tmp_path: Path,
) -> None:
    cloud = SimulatedCloud(Behaviour("azure-async-operation", polls=4))
    async with driven(cloud, tmp_path) as one:
        one.story.tell(APPLY)
        one.pending += one.story.last.effects
        while one.phase is not Phase.OPERATING:
            await one.perform()
        cloud.tokens["a-token"] = 0
        one.story.woken()
        one.pending += one.story.last.effects
        await one.perform()
        assert one.phase is Phase.OPERATING
        assert why(one)[0] is ErrorClass.CREDENTIALS

        cloud.tokens["a-token"] = 1000
        assert (await one.rest()).phase is Phase.READY

    assert cloud.made == {ID.lower(): 1}


async def test_a_parent_whose_children_are_shown_in_it_keeps_them(tmp_path: Path) -> None:
    cloud = SimulatedCloud()
    async with driven(cloud, tmp_path, scale_set.model(patch=False)) as one:
        await one.tell(APPLY)
        child = {"name": "theirs", "port": 1}
        body = {**one.shown["properties"], "rules": [child]}
        cloud.put(ID, {**one.shown, "properties": body})
        await one.tell(Apply(declared(tags={"tag1": "new"})))

    assert one.wrote == ["PUT", "PUT"]
    assert one.shown["properties"]["rules"] == [child]


@pytest.mark.requirement("resources R25")
@pytest.mark.parametrize("filling", ["", "x" * 479])
@pytest.mark.parametrize("style", ["synchronous", "azure-async-operation", "location"])
async def test_a_secret_that_an_error_repeats_is_kept_nowhere(
    style: Style, filling: str, tmp_path: Path
) -> None:
    behaviour = Behaviour(style, echoes=True)
    cloud = SimulatedCloud(behaviour)
    if style == "synchronous":
        behaviour.refusals = {"PUT": (400, "BadRequest", "too weak: ")}
    cloud.failures.append({"code": "Weak", "message": f"too weak: {filling}hunter2"})
    async with driven(cloud, tmp_path, scale_set.model(patch=False), admin="hunter2") as one:
        await one.tell(Apply(declared(properties=SECRET)))

    assert one.phase is Phase.FAILED
    assert "(secret)" in why(one)[1]
    assert "hunt" not in f"{one.story.events}{one.story.effects}{one.story.state}"


async def test_what_is_not_shown_yet_is_not_taken_for_gone_when_it_is_to_be_deleted(
    tmp_path: Path,
) -> None:
    cloud = SimulatedCloud(Behaviour(stale_reads=4))
    async with driven(cloud, tmp_path) as one:
        one.story.tell(APPLY)
        one.pending += one.story.last.effects
        for _ in range(2):
            await one.perform()

        assert (await one.tell(Remove())).phase is Phase.GONE

    assert (one.wrote, cloud.stored) == (["PUT", "DELETE"], {})
