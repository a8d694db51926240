"""What the object of a cluster hears of its resource, decision by decision."""

from dataclasses import replace

import pytest

from fairlead.areas.resources.domain.reconcile import messages
from fairlead.areas.resources.domain.reconcile.messages import Publish
from fairlead.areas.resources.domain.reconcile.publishing import FINALIZER
from fairlead.areas.resources.domain.reconcile.state import Phase
from fairlead.kubernetes.messages import PublishStatus, ReleaseObject
from tests.unit.areas.resources.domain.reconcile import samples
from tests.unit.areas.resources.domain.reconcile.samples import IN_CLUSTER, ORIGIN, Story


def reading() -> Story:
    return samples.reading(messages.Apply(IN_CLUSTER))


def published(story: Story) -> list[PublishStatus]:
    return [each.status for each in story.effects if isinstance(each, Publish)]


def conditions(told: PublishStatus) -> dict[str, tuple[bool | None, str]]:
    return {each.type: (each.status, each.reason) for each in told.conditions}


def test_an_object_hears_of_each_step_until_its_resource_is_as_declared() -> None:
    story = reading().seen(samples.ABSENT).accepted().seen(samples.SAME)

    told = published(story)

    phases = ["Reading", "Writing", "Verifying", "Ready"]
    assert [each.status["phase"] for each in told] == phases
    assert [each.round for each in told] == sorted({each.round for each in told})
    assert told[1].status["differs"] == [{"path": "", "why": "it does not exist"}]
    assert told[-1].status["resourceId"] == samples.ID
    assert told[-1].generation == ORIGIN.generation
    assert conditions(told[-1]) == {
        "Ready": (True, "Succeeded"),
        "Progressing": (False, "Succeeded"),
        "Stalled": (False, "Succeeded"),
    }


@pytest.mark.parametrize(
    ("failure", "stalled"), [(samples.THROTTLED, False), (samples.REFUSED, True)]
)
def test_an_object_hears_why_it_waits_and_whether_somebody_has_to_act(
    failure: messages.Failure, *, stalled: bool
) -> None:
    story = reading().seen(samples.ABSENT).failed(failure)

    told = published(story)[-1]

    assert told.status["message"] == failure.message
    assert conditions(told)["Ready"] == (False, failure.kind.value)
    assert conditions(told)["Stalled"][0] is stalled
    assert conditions(told)["Progressing"][0] is not stalled


def test_a_look_at_what_stands_still_is_no_news() -> None:
    story = reading().seen(samples.ABSENT).accepted().seen(samples.SAME)
    before = len(published(story))

    story.woken().seen(samples.SAME).tell(messages.Refresh()).seen(samples.SAME)

    assert len(published(story)) == before


def test_what_the_api_shows_anew_is_news_though_nothing_is_to_be_written() -> None:
    story = reading().seen(samples.ABSENT).accepted().seen(samples.SAME)
    before = len(published(story))

    story.woken().seen(replace(samples.SAME, shown="other"))

    assert len(published(story)) == before + 1


def test_what_no_object_declares_publishes_nothing() -> None:
    assert not published(samples.deleting())


def test_an_object_is_let_go_once_its_resource_is_gone() -> None:
    story = reading().seen(samples.ABSENT).accepted().seen(samples.SAME)
    story.tell(messages.Remove(origin=ORIGIN)).seen(samples.SAME).accepted()
    assert not any(isinstance(each, ReleaseObject) for each in story.effects)

    story.seen(samples.ABSENT)

    assert story.effects[-1] == ReleaseObject(ORIGIN.subject, FINALIZER)
    assert story.state.phase is Phase.GONE


def test_an_object_that_nobody_remembers_is_let_go_and_nothing_deleted() -> None:
    story = Story().tell(messages.Remove(origin=ORIGIN))

    assert story.effects == [ReleaseObject(ORIGIN.subject, FINALIZER)]


def test_a_resource_stays_where_its_object_went_without_being_let_go() -> None:
    story = reading().seen(samples.ABSENT).accepted().seen(samples.SAME)

    story.tell(messages.Remove(retain=True))

    assert story.state.phase is Phase.GONE
    assert messages.Delete not in {type(each) for each in story.effects}


def test_a_write_on_its_way_ends_before_a_resource_is_left_alone() -> None:
    story = reading().seen(samples.ABSENT).tell(messages.Remove(retain=True))
    assert published(story)[-1].status["phase"] == "Deleting"

    story.accepted()

    assert story.state.phase is Phase.GONE
    assert messages.Delete not in {type(each) for each in story.effects}


def test_a_worker_without_a_store_goes_on_from_what_the_status_remembers() -> None:
    before = reading().seen(samples.ABSENT).accepted().seen(samples.SAME)
    (*_, memory) = [each.memory for each in before.effects if isinstance(each, Publish)]
    assert memory.declared.properties == {}

    story = Story().tell(messages.Adopt(memory), messages.Apply(IN_CLUSTER))

    (read,) = [each for each in story.effects if isinstance(each, messages.Read)]
    assert read.last.applied == samples.SEALED
    assert published(story)[0].round > published(before)[-1].round


def test_a_worker_that_knows_the_resource_does_not_go_back_to_a_status() -> None:
    story = samples.ready()

    story.tell(messages.Adopt(replace(samples.MEMORY, generation=99)))

    assert not story.last


def test_what_a_status_remembers_is_deleted_though_its_spec_never_came() -> None:
    memory = replace(samples.MEMORY, declared=replace(IN_CLUSTER, properties={}))

    story = Story().tell(messages.Adopt(memory), messages.Remove(origin=ORIGIN))
    story.seen(samples.SAME)

    assert [type(each).__name__ for each in story.effects][-1] == "Delete"
