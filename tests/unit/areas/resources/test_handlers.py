"""Resources brought to their specs through HTTP, by every way in which providers differ."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.resources import handlers
from fairlead.areas.resources.domain.model import Json
from fairlead.areas.resources.domain.reconcile import messages
from fairlead.areas.resources.domain.reconcile.draft import stream
from fairlead.areas.resources.domain.reconcile.messages import Apply, ErrorClass, Refresh, Remove
from fairlead.areas.resources.domain.reconcile.state import Phase
from fairlead.engine import outbox
from fairlead.engine.messages import stream_name
from tests.simulated_cloud import Behaviour, SimulatedCloud, Style
from tests.unit.areas.resources.domain import scale_set
from tests.unit.areas.resources.driven import APPLY, ID, SPEC, declared, driven, ports

STYLES: tuple[Style, ...] = ("synchronous", "azure-async-operation", "location", "original-uri")
VMSS = {"sku": SPEC["sku"], "tags": SPEC["tags"]}


@pytest.mark.requirement("resources R1", "resources R24", "resources R27", "resources R30")
@pytest.mark.parametrize(
    ("style", "etags", "stale"), list(itertools.product(STYLES, (True, False), (0, 3)))
)
async def test_it_is_made_once_changed_once_and_deleted_once(
    style: Style,
    etags: bool,  # noqa: FBT001 - of this test
    stale: int,
    tmp_path: Path,
) -> None:
    cloud = SimulatedCloud(Behaviour(style, etags=etags, stale_reads=stale))
    async with driven(cloud, tmp_path) as one:
        assert (await one.tell(APPLY)).phase is Phase.READY
        assert (one.wrote, cloud.made[ID.lower()]) == (["PUT"], 1)

        await one.tell(Apply(declared(tags={"tag2": "new"})))
        assert (one.phase, one.wrote) == (Phase.READY, ["PUT", "PATCH"])
        assert one.shown["tags"] == {"tag2": "new"}

        assert (await one.tell(Remove())).phase is Phase.GONE
        assert (one.wrote, cloud.shown(ID)) == (["PUT", "PATCH", "DELETE"], None)


@pytest.mark.requirement("resources R17", "resources R18", "resources R19", "resources R31")
@pytest.mark.parametrize("patch", [True, False])
async def test_an_autoscaler_keeps_its_word_until_the_owner_says_another(
    patch: bool,  # noqa: FBT001 - of this test
    tmp_path: Path,
) -> None:
    spec = replace(declared(), properties=VMSS)
    cloud = SimulatedCloud()
    async with driven(cloud, tmp_path, scale_set.model(patch=patch)) as one:
        await one.tell(Apply(spec))
        cloud.put(ID, {**one.shown, "sku": {"name": "Standard_D2_v3", "capacity": 7}})

        tagged = {**VMSS, "tags": {"tag1": "other"}}
        await one.tell(Apply(replace(spec, properties=tagged)))
        assert one.shown["sku"]["capacity"] == 7
        assert one.shown["tags"] == {"tag1": "other"}

        five = {**tagged, "sku": {"name": "Standard_D2_v3", "capacity": 5}}
        await one.tell(Apply(replace(spec, properties=five)))
        assert one.shown["sku"]["capacity"] == 5
        before = len(one.wrote)

        handed_over = {**five, "sku": {"name": "Standard_D2_v3"}}
        await one.tell(Apply(replace(spec, properties=handed_over)))
        assert one.shown["sku"]["capacity"] == 5
        assert len(one.wrote) == before == 3


@pytest.mark.requirement("resources R28")
async def test_tags_alone_are_patched_where_no_more_can_be(tmp_path: Path) -> None:
    cloud = SimulatedCloud(Behaviour(patch="tags"))
    async with driven(cloud, tmp_path, scale_set.model(patch=False)) as one:
        await one.tell(APPLY)
        cloud.put(ID, {**one.shown, "extra": "theirs"})
        await one.tell(Apply(declared(tags={"tag1": "new"})))

    assert one.wrote == ["PUT", "PUT"]
    assert (one.shown["extra"], one.shown["tags"]) == ("theirs", {"tag1": "new"})
    _, _, body = cloud.writes[-1]
    assert body is not None
    assert "etag" not in body


@pytest.mark.requirement("resources R15")
async def test_what_others_changed_is_written_back_when_its_turn_comes(tmp_path: Path) -> None:
    async with driven(SimulatedCloud(), tmp_path) as one:
        await one.tell(APPLY)
        one.cloud.put(ID, {**one.shown, "tags": {"tag1": "theirs", "mine": "x"}})

        await one.woken()

        assert one.phase is Phase.READY
        assert one.shown["tags"] == {"tag1": "value", "mine": "x"}
        (reason,) = _plans(one.story.events)[-1].reasons
        assert (reason.path, reason.why) == ("tags.tag1", "drifted: it is 'theirs'")


@pytest.mark.requirement("resources R20")
async def test_a_value_that_the_api_rewrites_is_written_once(tmp_path: Path) -> None:
    behaviour = Behaviour(normalise={"location": lambda said: said.replace(" ", "").lower()})
    async with driven(SimulatedCloud(behaviour), tmp_path) as one:
        await one.tell(Apply(declared(location="West US")))
        for _ in range(3):
            await one.woken()

    assert (one.phase, one.wrote, one.shown["location"]) == (Phase.READY, ["PUT"], "westus")


@pytest.mark.requirement("resources R20")
async def test_a_key_that_null_does_not_remove_is_told_and_not_written_for_ever(
    tmp_path: Path,
) -> None:
    async with driven(SimulatedCloud(Behaviour(null_is_omitted=True)), tmp_path) as one:
        await one.tell(APPLY)
        await one.tell(Apply(declared(tags={})))
        for _ in range(3):
            await one.woken()

    assert one.wrote == ["PUT", "PATCH"]
    assert one.phase is Phase.FAILED
    assert one.story.state.failure is not None
    assert "does not keep it: tags.tag1" in one.story.state.failure.message


@pytest.mark.requirement("resources R24")
@pytest.mark.parametrize("etags", [True, False])
async def test_what_changed_between_the_plan_and_the_write_is_not_overwritten(
    etags: bool,  # noqa: FBT001 - of this test
    tmp_path: Path,
) -> None:
    cloud = SimulatedCloud(Behaviour(etags=etags))
    async with driven(cloud, tmp_path, scale_set.model(patch=False)) as one:
        await one.tell(APPLY)
        one.story.tell(Apply(declared(tags={"tag1": "new"})))
        one.pending += one.story.last.effects
        await one.perform()
        assert one.phase is Phase.WRITING

        cloud.put(ID, {**one.shown, "theirs": "x"})
        await one.rest()

    assert (one.shown["theirs"], one.shown["tags"]) == ("x", {"tag1": "new"})
    assert "BackedOff" in one.story.names


@pytest.mark.requirement("resources R25", "resources R28")
async def test_a_secret_reaches_the_api_and_nobody_else(tmp_path: Path) -> None:
    body = {"mode": "Flexible", "phrase": {"fromSecret": "admin"}}
    cloud = SimulatedCloud(Behaviour(hidden=("phrase",)))
    async with driven(cloud, tmp_path, scale_set.model(patch=False), admin="hunter2") as one:
        await one.tell(Apply(declared(properties=body)))
        await one.tell(Apply(declared(properties=body, tags={"tag1": "new"})))

    sent = [_phrase(said) for _, _, said in cloud.writes]
    assert sent == ["hunter2", "hunter2"]
    assert "hunter2" not in f"{one.story.events}{one.story.effects}{one.story.state}"


async def test_what_goes_needs_its_secrets_no_more(tmp_path: Path) -> None:
    body = {"mode": "Flexible", "phrase": {"fromSecret": "admin"}}
    async with driven(SimulatedCloud(), tmp_path, admin="hunter2") as one:
        await one.tell(Apply(declared(properties=body)))
    cloud = SimulatedCloud(stored=one.cloud.stored)
    async with driven(cloud, tmp_path) as other:
        other.story = one.story

        assert (await other.tell(Remove())).phase is Phase.GONE

    assert (other.wrote, cloud.stored) == (["DELETE"], {})


async def test_a_request_that_is_refused_waits_for_its_owner(tmp_path: Path) -> None:
    cloud = SimulatedCloud(Behaviour("azure-async-operation"))
    cloud.failures.append({"code": "QuotaExceeded", "message": "no cores left"})
    async with driven(cloud, tmp_path) as one:
        await one.tell(APPLY)

        failure = one.story.state.failure
        assert failure is not None
        assert (one.phase, failure.kind) == (Phase.FAILED, ErrorClass.REFUSED)
        assert failure.message == "QuotaExceeded: no cores left"
        assert one.story.state.last.applied is None
        assert (await one.tell(Apply(declared(tags={})))).phase is Phase.READY


async def test_what_it_stands_in_is_waited_for(tmp_path: Path) -> None:
    cloud = SimulatedCloud(Behaviour(groups=()))
    async with driven(cloud, tmp_path) as one:
        one.story.tell(APPLY)
        one.pending += one.story.last.effects
        for _ in range(2):
            await one.perform()
        failure = one.story.state.failure
        assert failure is not None
        assert failure.kind is ErrorClass.DEPENDENCY

        cloud.behaviour.groups = ("g",)
        assert (await one.rest()).phase is Phase.READY


async def test_an_operation_of_others_is_waited_for_and_never_overlapped(tmp_path: Path) -> None:
    cloud = SimulatedCloud(Behaviour("original-uri", polls=4))
    async with driven(cloud, tmp_path) as one:
        await one.tell(APPLY)
        one.cloud.stored[ID.lower()].body["properties"]["provisioningState"] = "Updating"
        one.cloud.behaviour.polls = 3
        one.cloud._begin(ID, one.cloud.stored[ID.lower()], deletes=False)

        await one.tell(Apply(declared(tags={"tag1": "new"})))

    assert (one.phase, one.wrote) == (Phase.READY, ["PUT", "PATCH"])


async def test_operations_that_are_told_of_at_another_host_are_read_from_the_resource(
    tmp_path: Path,
) -> None:
    behaviour = Behaviour("azure-async-operation", elsewhere="https://evil.example")
    async with driven(SimulatedCloud(behaviour), tmp_path) as one:
        assert (await one.tell(APPLY)).phase is Phase.READY


async def test_an_operation_that_the_api_forgot_is_found_out_from_the_resource(
    tmp_path: Path,
) -> None:
    cloud = SimulatedCloud(Behaviour("azure-async-operation"))
    async with driven(cloud, tmp_path) as one:
        one.story.tell(APPLY)
        one.pending += one.story.last.effects
        for _ in range(2):
            await one.perform()
        cloud.operations["/elsewhere"] = cloud.operations.pop("/operations/1")
        cloud.stored[ID.lower()].operation = "/elsewhere"

        assert (await one.rest()).phase is Phase.READY

    assert (one.wrote, "Dropped" in one.story.names) == (["PUT"], True)


async def test_throttling_is_waited_out_as_long_as_the_api_says(tmp_path: Path) -> None:
    async with driven(SimulatedCloud(throttled=2), tmp_path) as one:
        start = one.story.now
        await one.tell(APPLY)

        assert (one.phase, one.wrote) == (Phase.READY, ["PUT"])
        assert (one.story.now - start).total_seconds() >= 34


async def test_a_plan_says_what_then_is_sent_and_nothing_else(tmp_path: Path) -> None:
    async with driven(SimulatedCloud(), tmp_path) as one:
        await one.tell(APPLY)
        await one.tell(Apply(declared(tags={"tag1": "new"})))
        await one.tell(Refresh())

    assert [each.method for each in _plans(one.story.events)] == one.wrote == ["PUT", "PATCH"]


@pytest.mark.requirement("resources R14")
async def test_changes_that_arrive_together_share_one_pass(tmp_path: Path) -> None:
    async with driven(SimulatedCloud(), tmp_path) as one:
        changes = [Apply(declared(tags={"tag1": f"{number}"})) for number in range(20)]
        await one.tell(APPLY, *changes)

        assert (one.phase, one.wrote, one.shown["tags"]) == (Phase.READY, ["PUT"], {"tag1": "19"})
        # What is there, the same once more before the write, and what came of it.
        assert [method for method, _ in one.cloud.asked] == ["GET", "GET", "PUT", "GET"]


async def test_effects_of_another_resource_are_refused(tmp_path: Path) -> None:
    async with SimulatedCloud().serving() as cloud:
        performers = handlers.handlers(ports(cloud, tmp_path))
        read = messages.Read(1, declared(), messages.LastApplied())
        context = outbox.EffectContext(stream_name("resource", "other"), "1", 1)

        with pytest.raises(errors.Rejected, match="asks for another resource"):
            await performers[messages.Read].perform(read, context)

    assert cloud.asked == []


async def test_an_id_that_is_none_of_the_type_is_asked_for_by_nobody(tmp_path: Path) -> None:
    stray = replace(declared(), id="/subscriptions/s/providers/Acme.Secrets/list/a")
    async with SimulatedCloud().serving() as cloud:
        performers = handlers.handlers(ports(cloud, tmp_path))
        for effect in (
            messages.Read(1, stray, messages.LastApplied()),
            messages.Write(1, stray, messages.LastApplied(), "digest"),
            messages.Delete(1, stray.type, stray.version, stray.id),
        ):
            context = outbox.EffectContext(stream(stray.id), "1", 1)
            answer = await performers[type(effect)].perform(effect, context)
            assert isinstance(answer, messages.Failed)
            assert "not an id of Acme.Toys/sets" in answer.failure.message

    assert cloud.asked == []


def _phrase(body: Json | None) -> object:
    assert body is not None
    return body["properties"].get("phrase")


def _plans(events: list[Any]) -> list[messages.Plan]:
    return [each.plan for each in events if type(each).__name__ == "WriteStarted"]
