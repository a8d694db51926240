"""The release of a content: every state with every command, and the document's rules."""

import datetime as dt
import itertools
from dataclasses import replace
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.content.domain.population import NOBODY, Share
from fairlead.areas.content.domain.release import events, messages
from fairlead.areas.content.domain.release.draft import TRY_AGAIN, stream
from fairlead.areas.content.domain.release.events import Ending
from fairlead.areas.content.domain.release.machine import RELEASE, shown_phase
from fairlead.areas.content.domain.release.messages import Timer
from fairlead.areas.content.domain.release.place import (
    Flag,
    KubernetesService,
    LocalService,
    Place,
    Versions,
)
from fairlead.areas.content.domain.release.state import Phase
from fairlead.checks.spec import Check, CheckKind, When
from fairlead.engine import machine
from fairlead.engine.messages import Cancel, ChildEnded, Send, SetTimer, StreamName
from tests.unit.areas.content.domain.release import samples
from tests.unit.areas.content.domain.release.samples import (
    APPROVE,
    BAD,
    BAKE,
    EMERGENCY,
    HOUR,
    NEWER,
    PROPOSE,
    Story,
)

_NEW = {"propose": "Proposed", "emergency": "Proposed"}


def _proposing(phase: str) -> dict[str, str]:
    return {"propose": phase, "emergency": phase}


def _returning(phase: str) -> dict[str, str]:
    told = ("shared", "ready", "failed", "wake share", "wake deployment")
    return {**_proposing(phase), **dict.fromkeys(told, phase)}


_BAKING = {
    **_proposing("Baking"),
    "pause": "Paused",
    "abort": "Reverting",
    "good": "Baking",
    "bad": "Reverting",
}
# The phase after it; absent where nothing happens, or where a person is refused.
TABLE: dict[str, dict[str, str]] = {
    "new": _NEW,
    "proposed": {**_NEW, "approve": "Clearing", "reject": "Idle"},
    "clearing": {
        **_proposing("Clearing"),
        "abort": "Reverting",
        "shared": "Clearing",
        "wake share": "Clearing",
    },
    "emptying": {
        **_proposing("Clearing"),
        "abort": "Reverting",
        "wake empty": "Deploying",
    },
    "deploying": {
        **_proposing("Deploying"),
        "abort": "Reverting",
        "ready": "Raising",
        "failed": "Restoring",
        "wake deployment": "Restoring",
    },
    "raising": {
        **_proposing("Raising"),
        "abort": "Reverting",
        "shared": "Baking",
        "wake share": "Raising",
    },
    "baking": _BAKING,
    "paused": {
        **_proposing("Paused"),
        "resume": "Baking",
        "abort": "Reverting",
        "good": "Paused",
        "bad": "Reverting",
    },
    "awaiting": {
        **_proposing("AwaitingDecision"),
        "advance": "Raising",
        "promote": "Promoting",
        "pause": "Paused",
        "abort": "Reverting",
    },
    "promoting": {
        **_proposing("Promoting"),
        "ready": "Settling",
        "failed": "Restoring",
        "wake deployment": "Restoring",
    },
    "settling": {**_proposing("Settling"), "shared": "Idle", "wake share": "Settling"},
    "promoted": _NEW,
    "reverting": _returning("Reverting"),
    "reverted": _NEW,
    "restoring": _returning("Restoring"),
    "restored": _NEW,
    "proposed again": {**_BAKING, "approve": "Clearing", "reject": "Baking"},
    "emergency proposed": {**_BAKING, "approve": "Promoting", "reject": "Baking"},
}
NAMES = tuple(samples.commands(RELEASE.initial))


@pytest.mark.requirement("content 22")
@pytest.mark.parametrize(("state", "command"), list(itertools.product(TABLE, NAMES)))
def test_every_state_has_an_answer_to_every_command(state: str, command: str) -> None:
    story = samples.states()[state]
    given, expected = story.state, TABLE[state].get(command, "")
    told = samples.commands(given)[command]

    if not expected and command in samples.PEOPLE:
        with pytest.raises(errors.Rejected):
            story.tell(told)
        return
    story.tell(told)

    assert bool(story.last) == bool(expected)
    assert not expected or shown_phase(story.state) == expected


def test_the_table_has_every_command_and_phase_of_the_machine() -> None:
    told = {type(each) for each in samples.commands(RELEASE.initial).values()} | {Cancel}
    phases = {story.state.phase for story in samples.states().values()}

    assert told == {*machine.members(RELEASE.vocabulary.commands)}
    assert phases == {*Phase}
    assert {*TABLE} == {*samples.states()}


def test_what_became_stable_stays_the_commit_that_was_approved() -> None:
    source = {"git": "https://git.example/c.git"}
    place = replace(samples.PLACE, description={"name": "gathering", "source": source})
    first = replace(PROPOSE, place=place.with_commit("1.0.2", "a" * 40))
    story = samples.baking(first).judged().after(BAKE).shared().judged().after(BAKE)
    story.ready().shared()

    again = story.tell(replace(NEWER, place=place.with_commit("1.0.3", "b" * 40))).state.proposal
    assert again is not None
    assert again.place.commits == {"1.0.2": "a" * 40, "1.0.3": "b" * 40}
    moved = replace(place, description={**place.description, "source": {"git": "/elsewhere"}})
    other = story.tell(replace(NEWER, place=moved)).state.proposal
    assert other is not None
    assert other.place.commits == {}


@pytest.mark.requirement("content 3")
def test_nothing_is_asked_of_the_world_before_somebody_else_approved() -> None:
    story = samples.proposed()

    assert story.effects == []
    with pytest.raises(errors.Forbidden, match="rita proposed this version"):
        story.tell(messages.Approve("rita"))
    story.tell(APPROVE)
    assert [type(each) for each in story.effects] == [messages.SetShare]


def test_what_was_approved_is_what_was_reviewed() -> None:
    read = samples.approval(PROPOSE)
    other = replace(PROPOSE, place=Place({}, local=LocalService(9000)))
    story = samples.proposed().tell(other)

    with pytest.raises(errors.Conflict, match=f"not the revision .*: {read.revision}"):
        story.tell(read)
    with pytest.raises(errors.Conflict, match="none was named"):
        RELEASE.decide(story.state, APPROVE, story.now)
    assert story.names == ["Proposed", "ProposalClosed", "Proposed"]
    assert story.tell(samples.approval(other)).state.phase is Phase.CLEARING


@pytest.mark.parametrize(
    "change",
    [
        {"place": Place({"name": "gathering", "source": {}}, local=LocalService(8000))},
        {"place": Place({"name": "gathering"}, local=LocalService(9000))},
        {"plan": replace(samples.PLAN, steps=samples.STEPS[:1])},
        {"emergency": True},
        {"by": "rob"},
        {"why": "newer rules"},
    ],
)
def test_a_revision_is_of_all_that_is_proposed(change: dict[str, Any]) -> None:
    read, other = samples.approval(PROPOSE), samples.approval(replace(PROPOSE, **change))

    assert read.revision != other.revision


@pytest.mark.requirement("content 7", "content 9", "content 10")
def test_a_good_canary_is_analysed_then_stable_and_only_then_nobody_is_in_the_share() -> None:
    story = samples.promoting().ready().shared()

    asked = [
        (each.versions if isinstance(each, messages.Deploy) else each.share)
        for each in story.effects
        if not isinstance(each, messages.Measure)
    ]
    assert asked == [0, Versions("1.0.1", "1.0.2"), 1000, 5000, Versions("1.0.2"), 0]
    assert story.names.index("Measured") < story.names.index("PromotionStarted")
    assert story.names[-4:] == ["Promoted", "ShareRequested", "ShareSet", "Settled"]
    assert (story.state.stable, story.state.share, story.state.phase) == ("1.0.2", 0, Phase.IDLE)


def test_all_judges_of_a_release_share_one_promise_on_false_alarms() -> None:
    metrics = {"metrics": [{"name": "archives", "query": "sum(archives)"}]}
    judge = Check("judge", kind=CheckKind.JUDGE, judge=metrics)
    both = (judge, replace(judge, name="at the end", when=When.PROMOTION), samples.CHECK)

    story = samples.baking(replace(PROPOSE, plan=replace(samples.PLAN, checks=both)))

    (asked,) = (each for each in story.effects if isinstance(each, messages.Measure))
    assert asked.steps == 3


@pytest.mark.requirement("content 7", "content 9")
def test_without_checks_a_person_decides_and_not_the_one_who_proposed() -> None:
    story = samples.awaiting().tell(messages.Advance("rita")).shared().after(BAKE)

    with pytest.raises(errors.Rejected, match="last step"):
        story.tell(messages.Advance("rita"))
    with pytest.raises(errors.Forbidden, match="cannot promote"):
        story.tell(messages.Promote("rita"))
    assert story.tell(messages.Promote("paul")).state.phase is Phase.PROMOTING


@pytest.mark.requirement("content 23")
def test_no_step_is_over_before_clients_had_the_time_to_ask() -> None:
    story = samples.baking().judged()

    assert story.after(BAKE - HOUR).state.step == 0
    assert story.after(HOUR).state.step == 1
    hurried = samples.awaiting().tell(messages.Advance("rita")).shared()
    with pytest.raises(errors.Rejected, match="no decision is awaited"):
        hurried.tell(messages.Promote("paul"))


@pytest.mark.requirement("content 8")
@pytest.mark.parametrize("how", ["checks", "person"])
def test_a_bad_canary_goes_back_to_what_was_reviewed_and_leaves_nobody_in_the_share(
    how: str,
) -> None:
    story = samples.baking()

    if how == "checks":
        story.judged(BAD)
    else:
        story.tell(messages.Abort("rita", "odd archives"))

    share, deploy = story.last.effects
    assert isinstance(share, messages.SetShare)
    assert isinstance(deploy, messages.Deploy)
    assert (share.share, deploy.versions) == (NOBODY, Versions("1.0.1"))
    story.ready().shared()
    assert story.state.phase is Phase.IDLE
    assert story.state.outcome is not None
    assert story.state.outcome.ending is Ending.REVERTED
    assert ("0.4" if how == "checks" else "odd archives") in story.state.outcome.why


@pytest.mark.requirement("content 4")
@pytest.mark.parametrize("how", ["crash", "deadline"])
def test_instances_that_do_not_become_ready_are_reverted_in_a_state_of_its_own(how: str) -> None:
    story = samples.deploying()

    if how == "crash":
        story.failed("version not found: 1.0.2")
    else:
        story.now += dt.timedelta(minutes=10)
        story.late(Timer.DEPLOYMENT)

    assert story.state.phase is Phase.RESTORING
    story.failed("still no")
    assert story.state.trouble == "not restored yet: still no"
    again = SetTimer("deployment", story.now + TRY_AGAIN, _wake(Timer.DEPLOYMENT, story))
    assert story.last.timers == (again,)
    story.late(Timer.DEPLOYMENT)
    assert [type(each) for each in story.last.effects] == [messages.Deploy]
    story.shared().ready()
    assert story.state.outcome is not None
    assert story.state.outcome.ending is Ending.DEPLOYMENT_FAILED
    assert story.state.deployed == Versions("1.0.1")


@pytest.mark.requirement("content 11")
@pytest.mark.parametrize("name", [n for n in TABLE if n not in {"new", "emergency proposed"}])
def test_an_emergency_release_takes_the_place_of_anything_and_waits_for_no_share(
    name: str,
) -> None:
    story = samples.states()[name]

    other = replace(EMERGENCY, version="1.0.7")

    story.tell(other, APPROVE)

    assert [type(each) for each in story.last.effects] == [messages.Deploy]
    story.ready()
    assert (story.state.stable, story.state.deployed) == ("1.0.7", Versions("1.0.7"))
    assert story.state.run is None
    assert "the share is not set yet" in story.late(Timer.SHARE).state.trouble
    assert story.shared().state.share == NOBODY


@pytest.mark.requirement("content 12")
def test_a_newer_version_in_mid_canary_begins_with_nobody() -> None:
    story = samples.baking().tell(NEWER)
    assert story.state.share == Share(1000)

    story.tell(APPROVE)

    assert story.state.outcome is not None
    assert story.state.outcome.ending is Ending.SUPERSEDED
    assert [each.share for each in story.last.effects if hasattr(each, "share")] == [NOBODY]
    story.shared()
    due = story.now + samples.PLACE.share_delay
    assert SetTimer("empty", due, _wake(Timer.EMPTY, story)) in story.last.timers
    assert not story.last.effects
    story.now = due
    deploy = story.late(Timer.EMPTY).last.effects[0]
    assert isinstance(deploy, messages.Deploy)
    assert deploy.versions == Versions("1.0.1", "1.0.3")
    assert story.ready().state.step == 0


@pytest.mark.requirement("content 12")
def test_a_release_right_after_another_waits_until_instances_know_that_nobody_is_in_the_share() -> (
    None
):
    story = samples.promoting().ready().shared().tell(NEWER, APPROVE).shared()

    assert not story.last.effects
    story.now += samples.PLACE.share_delay
    assert story.late(Timer.EMPTY).state.phase is Phase.DEPLOYING
    places = (samples.PLACE, Place(kubernetes=KubernetesService("a", "b")), Place(flag=Flag("a")))
    assert [each.share_delay.total_seconds() for each in places] == [3, 90, 30]


@pytest.mark.requirement("content 12")
def test_the_first_canary_waits_too_as_people_may_have_raised_the_share_by_hand() -> None:
    story = samples.proposed().tell(APPROVE).shared()

    assert not story.last.effects
    story.now += samples.PLACE.share_delay
    story.late(Timer.EMPTY)
    assert [type(each) for each in story.last.effects] == [messages.Deploy]


def test_another_version_waits_for_the_end_of_a_promotion() -> None:
    story = samples.promoting().tell(NEWER)

    with pytest.raises(errors.Rejected, match="another version is not done: Promoting"):
        story.tell(APPROVE)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"why": " "}, "no reason"),
        ({"version": "1.0.1"}, "stable already"),
        ({"stable": ""}, "stable version of gathering is not known"),
    ],
)
def test_a_proposal_that_makes_no_sense_is_refused(change: dict[str, str], told: str) -> None:
    with pytest.raises(errors.FairleadError, match=told):
        samples.proposed(replace(PROPOSE, **change))  # type: ignore[arg-type]  # fields of it


def test_a_proposal_of_what_runs_or_with_another_stable_is_refused() -> None:
    with pytest.raises(errors.Conflict, match=r"1\.0\.2 is being released already"):
        samples.baking().tell(replace(NEWER, version="1.0.2"))
    with pytest.raises(errors.Conflict, match=r"another stable version: 1\.0\.1"):
        samples.baking().tell(replace(NEWER, stable="1.0.0"))


def test_the_first_version_of_all_is_an_emergency_release_with_nothing_to_go_back_to() -> None:
    story = Story().tell(replace(EMERGENCY, stable=""), APPROVE)

    story.failed("no")

    assert story.state.phase is Phase.IDLE
    assert story.state.stable == ""


def test_what_the_share_was_is_known_however_often_was_measured() -> None:
    story = samples.baking()
    for _ in range(600):
        story.now += dt.timedelta(minutes=1)
        story.tell(messages.Wake(Timer.CHECK, story.state.order)).judged(
            replace(samples.GOOD, phase=None)
        )

    assert story.names.count("Measured") == 600
    assert [each.share for each in story.state.shares] == [0, 1000]
    story.tell(messages.Abort("rita", "odd")).shared().ready().tell(NEWER, APPROVE)
    assert [each.share for each in story.state.shares] == [0]


@pytest.mark.requirement("content 21")
def test_every_step_says_who_asked_for_it_and_why() -> None:
    said = [*samples.promoting().ready().shared().events, *samples.aborted().events]
    said += samples.baking().tell(NEWER, APPROVE).events

    for event in said:
        for field in ("by", "why"):
            assert getattr(event, field, "told") != "", event
    assert {type(each) for each in said} >= {
        *(events.Approved, events.ShareRequested, events.PromotionStarted, events.Promoted),
        *(events.RevertStarted, events.Superseded),
    }


PARENT = StreamName("plan/a")


@pytest.mark.parametrize(
    ("last", "succeeded"),
    [("promoted", True), ("reverted", False), ("rejected", False), ("superseded", False)],
)
def test_a_plan_hears_of_every_end(last: str, succeeded: bool) -> None:  # noqa: FBT001 - a case
    planned = replace(PROPOSE, parent=PARENT)
    story = samples.proposed(planned)
    match last:
        case "promoted":
            story.tell(APPROVE).emptied().ready().shared().judged().after(BAKE)
            story.shared().judged().after(BAKE).ready()
        case "reverted":
            story.tell(APPROVE).emptied().ready().tell(Cancel("enough")).shared().ready()
        case "rejected":
            story.tell(messages.Reject("paul", "no"))
        case _:
            story.tell(APPROVE, NEWER, APPROVE)

    (send,) = story.last.sends
    assert send.stream == PARENT
    assert isinstance(send.command, ChildEnded)
    assert (send.command.child, send.command.succeeded) == (stream("gathering"), succeeded)


def test_a_plan_is_told_of_a_refusal_and_cancels_only_what_it_started() -> None:
    refused = samples.promoting().tell(replace(PROPOSE, parent=PARENT))
    told = ChildEnded(
        stream("gathering"), succeeded=False, reason="1.0.2 is being released already"
    )

    assert refused.last.sends == (Send(PARENT, told),)
    assert not samples.baking().tell(Cancel("enough")).last
    waiting = samples.proposed(replace(PROPOSE, parent=PARENT)).tell(Cancel("enough"))
    assert waiting.state.proposal is None


def test_a_command_for_another_content_is_refused() -> None:
    with pytest.raises(errors.Rejected, match="another content"):
        RELEASE.addressed(stream("other"), PROPOSE)


def _wake(timer: Timer, story: Story) -> messages.Wake:
    return messages.Wake(timer, story.state.order)
