"""One resource: every state with every command, and what must never happen to it."""

import datetime as dt
import itertools
from dataclasses import replace

import pytest

from fairlead import errors
from fairlead.areas.resources.domain.reconcile import messages
from fairlead.areas.resources.domain.reconcile.draft import DEADLINE, VERIFICATIONS, stream
from fairlead.areas.resources.domain.reconcile.machine import RESOURCE
from fairlead.areas.resources.domain.reconcile.messages import (
    Apply,
    Plan,
    Progress,
    Reason,
    Refresh,
    Remove,
)
from fairlead.areas.resources.domain.reconcile.state import Phase
from fairlead.engine import machine
from tests.unit.areas.resources.domain.reconcile import samples
from tests.unit.areas.resources.domain.reconcile.samples import (
    ABSENT,
    APPLY,
    BROKEN,
    BUSY,
    CREATE,
    DECLARED,
    DIFFERENT,
    OPERATION,
    OTHER,
    PATCH,
    REFUSED,
    SAME,
    SEALED,
    SECOND,
    THROTTLED,
    Story,
)

_CONFLICT = {"apply": "Conflict", "apply other": "Conflict"}
_WAITS = {"wake late": "", "seen late": "", "accepted late": ""}
_RESTS = {"apply other": "Reading", "remove": "Reading", "wake": "Reading", "refresh": "Reading"}
_SENT = {"outdated": "Waiting", "throttled": "Waiting", "refused": "Failed"}
_ENDS = {"running": "Operating", "throttled": "Operating", "refused": "Operating"}
# The phase after it; absent where nothing happens.
TABLE: dict[str, dict[str, str]] = {
    "idle": {
        "apply": "Reading",
        "apply other": "Reading",
        "adopt": "Idle",
        "remove object": "Gone",
    },
    "reading": {
        "apply other": "Reading",
        "remove": "Gone",
        "same": "Ready",
        "different": "Writing",
        "absent": "Writing",
        "busy": "Waiting",
        "broken": "Failed",
        "throttled": "Waiting",
        "refused": "Failed",
    },
    "writing": {
        "apply other": "Writing",
        "remove": "Writing",
        "accepted": "Verifying",
        "operation": "Operating",
        **_SENT,
    },
    "writing, changed": {
        "apply": "Writing",
        "apply other": "Writing",
        "remove": "Writing",
        "accepted": "Reading",
        "operation": "Operating",
        **_SENT,
        "refused": "Reading",
    },
    "writing, removed": {
        **_CONFLICT,
        "accepted": "Reading",
        "operation": "Operating",
        **_SENT,
        "refused": "Reading",
    },
    "operating": {"apply other": "Operating", "remove": "Operating", "wake": "Operating"},
    "operating, changed": {
        "apply": "Operating",
        "apply other": "Operating",
        "remove": "Operating",
        "wake": "Operating",
    },
    "polling": {
        "apply other": "Operating",
        "remove": "Operating",
        **_ENDS,
        "succeeded": "Verifying",
        "ended badly": "Failed",
        "unknown": "Reading",
    },
    "polling, removed": {
        **_CONFLICT,
        **_ENDS,
        "succeeded": "Reading",
        "ended badly": "Reading",
        "unknown": "Reading",
    },
    "verifying": {
        "apply other": "Reading",
        "remove": "Reading",
        "same": "Ready",
        "different": "Verifying",
        "absent": "Verifying",
        "busy": "Verifying",
        "broken": "Failed",
        "throttled": "Verifying",
        "refused": "Verifying",
    },
    "verifying, waits": {"apply other": "Reading", "remove": "Reading", "wake": "Verifying"},
    "ready": _RESTS,
    "waiting": {each: phase for each, phase in _RESTS.items() if each != "refresh"},
    "failed": _RESTS,
    "removing": {
        **_CONFLICT,
        "same": "Writing",
        "different": "Writing",
        "absent": "Waiting",
        "busy": "Waiting",
        "broken": "Writing",
        "throttled": "Waiting",
        "refused": "Failed",
    },
    "removing, waits": {**_CONFLICT, "wake": "Reading", "refresh": "Reading"},
    "deleting": {**_CONFLICT, "accepted": "Verifying", "operation": "Operating", **_SENT},
    "deleting, operates": {**_CONFLICT, "wake": "Operating"},
    "deleting, polls": {
        **_CONFLICT,
        **_ENDS,
        "succeeded": "Verifying",
        "ended badly": "Failed",
        "unknown": "Reading",
    },
    "deleted": {
        **_CONFLICT,
        "absent": "Gone",
        "same": "Verifying",
        "different": "Verifying",
        "busy": "Verifying",
        "broken": "Verifying",
        "throttled": "Verifying",
        "refused": "Verifying",
    },
    "deleted, waits": {**_CONFLICT, "wake": "Verifying"},
    "gone": {"apply": "Reading", "apply other": "Reading", "remove object": "Gone"},
}
for row in TABLE.values():
    # Where it is known, it is the same who no longer declares it.
    row.update({"remove object": row["remove"]} if "remove" in row else {})
NAMES = tuple(samples.commands(RESOURCE.initial))


@pytest.mark.requirement("resources R23")
@pytest.mark.parametrize(("state", "command"), list(itertools.product(TABLE, NAMES)))
def test_every_state_has_an_answer_to_every_command(state: str, command: str) -> None:
    story = samples.states()[state]
    given, expected = story.state, TABLE[state].get(command, "")
    told = samples.commands(given)[command]

    if expected == "Conflict":
        with pytest.raises(errors.Conflict, match="being removed"):
            story.tell(told)
        return
    story.tell(told)

    assert bool(story.last) == bool(expected)
    assert story.state.phase.value == (expected or given.phase.value)


def test_the_table_has_every_command_and_phase_of_the_machine() -> None:
    told = {type(each) for each in samples.commands(RESOURCE.initial).values()}
    phases = {story.state.phase for story in samples.states().values()}

    assert told == {*machine.members(RESOURCE.vocabulary.commands)}
    assert phases == {*Phase}
    assert {*TABLE} == {*samples.states()}


@pytest.mark.parametrize("state", TABLE)
def test_whatever_a_resource_is_at_it_goes_on_by_itself_or_rests(state: str) -> None:
    story = samples.states()[state]
    rests = story.state.phase in {Phase.IDLE, Phase.GONE}

    assert rests or story.state.is_asking != (story.timer is not None)
    assert (story.state.until is None) == (story.timer is None)


@pytest.mark.requirement("resources R23", "resources R30")
def test_it_is_read_then_written_then_read_again_before_it_is_ready() -> None:
    story = samples.ready()

    assert story.asked == ["Read", "Write", "Read"]
    assert story.effects[1].digest == CREATE.digest
    assert story.state.converged == story.state.generation == 1


@pytest.mark.requirement("resources R26")
def test_the_same_spec_again_changes_nothing() -> None:
    for name in ("reading", "writing", "operating", "verifying", "ready", "waiting", "failed"):
        assert not samples.states()[name].tell(replace(APPLY, by="paul")).last


@pytest.mark.requirement("resources R33")
def test_what_is_there_and_right_is_taken_over_without_a_write() -> None:
    story = samples.reading().seen(SAME)

    assert story.asked == ["Read"]
    assert story.state.last.applied == SEALED


@pytest.mark.requirement("resources R29")
@pytest.mark.parametrize("how", ["refused", "operation failed", "unknown", "outdated"])
def test_what_was_applied_is_remembered_only_after_a_success(how: str) -> None:
    story = samples.ready().tell(Apply(OTHER)).seen(replace(DIFFERENT, sealed={"new": True}))

    match how:
        case "refused":
            story.failed(REFUSED)
        case "operation failed":
            story.accepted(OPERATION).woken().polled(Progress.FAILED, REFUSED)
        case "unknown":
            story.accepted(OPERATION).woken().polled(Progress.UNKNOWN)
        case _:
            story.tell(messages.Outdated(story.state.order))

    assert story.state.last.applied == SEALED
    again = story if story.state.phase is Phase.READING else story.woken()
    again.seen(replace(DIFFERENT, sealed={"new": True})).accepted()
    assert story.state.last.applied == {"new": True}


@pytest.mark.requirement("resources R20")
def test_a_spec_that_changes_during_a_write_waits_for_its_end() -> None:
    story = samples.operating().tell(Apply(OTHER))

    assert not story.last.effects
    story.woken().polled(Progress.SUCCEEDED)
    assert story.state.last.applied == SEALED
    (read,) = story.last.effects
    assert isinstance(read, messages.Read)
    assert (read.declared, read.last.applied) == (OTHER, SEALED)
    assert story.state.phase is Phase.READING


@pytest.mark.requirement("resources R24")
def test_what_changed_since_it_was_read_is_read_again_and_less_and_less_often() -> None:
    story, waits = samples.writing(), []
    for _ in range(8):
        story.tell(messages.Outdated(story.state.order, "somebody changed it"))
        assert story.state.until is not None
        waits.append(story.state.until - story.now)
        story.woken().seen(DIFFERENT)

    assert waits[0] < 7 * SECOND
    assert waits[-1] > dt.timedelta(minutes=2)
    assert story.asked.count("Write") == 9


@pytest.mark.requirement("resources R20")
def test_what_the_api_makes_of_a_value_is_no_drift_for_ever() -> None:
    story = samples.ready().tell(Refresh()).seen(DIFFERENT).accepted()
    for _ in range(VERIFICATIONS):
        story.seen(DIFFERENT)
        assert story.state.phase is Phase.VERIFYING
        story.woken()

    story.seen(DIFFERENT)

    (read,) = story.last.effects
    assert isinstance(read, messages.Read)
    assert read.last.settled == {"tags.tag1": "old"}
    assert story.seen(SAME).state.phase is Phase.READY
    assert story.asked.count("Write") == 2


def test_what_was_made_of_an_old_value_says_nothing_of_a_new_one() -> None:
    story = samples.ready().tell(Refresh()).seen(DIFFERENT).accepted()
    for _ in range(VERIFICATIONS):
        story.seen(DIFFERENT).woken()
    story.seen(DIFFERENT).seen(SAME)

    story.tell(Apply(OTHER)).seen(DIFFERENT).accepted()

    assert story.state.last.settled == {}


def test_a_value_that_the_api_takes_and_never_keeps_is_not_written_over_and_over() -> None:
    story = samples.ready().tell(Refresh()).seen(DIFFERENT).accepted()
    for _ in range(VERIFICATIONS):
        story.seen(DIFFERENT).woken()
    story.seen(DIFFERENT)

    for _ in range(5):
        story.seen(DIFFERENT)
        assert story.state.failure is not None
        assert "does not keep it: tags.tag1" in story.state.failure.message
        story.woken()

    assert story.asked.count("Write") == 2
    more = Plan("PATCH", (*PATCH.reasons, Reason("tags.b", "drifted: it is gone")), "more")
    story.seen(replace(DIFFERENT, plan=more))
    assert story.state.phase is Phase.WRITING


def test_answers_of_before_a_write_are_waited_for_and_not_written_again() -> None:
    story = samples.verifying()
    for stale in (ABSENT, ABSENT, DIFFERENT):
        story.seen(stale)
        assert story.state.phase is Phase.VERIFYING
        story.woken()

    assert story.seen(SAME).state.phase is Phase.READY
    assert story.asked.count("Write") == 1


@pytest.mark.parametrize("deletes", [False, True])
def test_what_the_api_takes_and_never_shows_is_not_asked_for_over_and_over(
    deletes: bool,  # noqa: FBT001 - of this test
) -> None:
    story = samples.deleting().accepted() if deletes else samples.verifying()
    for _ in range(VERIFICATIONS):
        story.seen(SAME if deletes else ABSENT).woken()

    story.seen(SAME if deletes else ABSENT)

    assert story.state.phase is Phase.FAILED
    assert story.state.until is not None
    assert story.state.until - story.now > dt.timedelta(minutes=7)


def test_reads_that_fail_say_nothing_of_what_the_api_keeps() -> None:
    story = samples.verifying()
    for _ in range(3 * VERIFICATIONS):
        story.failed(THROTTLED).woken()
        story.seen(BUSY).woken()

    assert story.seen(DIFFERENT).state.phase is Phase.VERIFYING
    assert story.woken().seen(SAME).state.phase is Phase.READY


def test_an_operation_is_asked_for_as_often_as_the_api_says_and_nothing_overlaps_it() -> None:
    story = samples.writing()
    asked = messages.Accepted(story.state.order, OPERATION, 45 * SECOND)
    story.tell(asked)

    assert story.state.until is not None
    assert 45 * SECOND <= story.state.until - story.now <= 75 * SECOND
    for _ in range(20):
        story.woken().polled(Progress.RUNNING)
    assert story.asked == ["Read", "Write", *["Poll"] * 20]


def test_an_operation_that_never_ends_is_given_up_and_what_is_there_tells() -> None:
    story = samples.operating()
    start = story.now
    while story.state.phase is Phase.OPERATING:
        story.woken()
        if story.state.phase is Phase.OPERATING:
            story.polled(Progress.RUNNING)

    assert DEADLINE <= story.now - start < DEADLINE + dt.timedelta(minutes=2)
    assert story.seen(BUSY).state.phase is Phase.WAITING


def test_a_new_spec_is_tried_at_once_after_one_that_was_refused() -> None:
    story = samples.writing().failed(REFUSED).tell(Apply(OTHER))

    assert (story.state.phase, story.state.tries) == (Phase.READING, 0)
    assert story.timer is None


@pytest.mark.requirement("resources R15", "resources R16")
def test_a_look_that_finds_nothing_new_writes_nothing_and_remembers_nothing_anew() -> None:
    story = samples.ready().tell(Refresh()).seen(SAME)

    assert story.asked == ["Read", "Write", "Read", "Read"]
    assert story.events[-1].applied is None  # type: ignore[union-attr]  # it is Converged


def test_a_removal_reads_then_deletes_then_waits_until_it_is_gone() -> None:
    story = samples.deleting().accepted(OPERATION).woken().polled(Progress.SUCCEEDED)

    assert story.seen(SAME).state.phase is Phase.VERIFYING
    assert story.woken().seen(ABSENT).state.phase is Phase.GONE
    assert story.asked[3:] == ["Read", "Delete", "Poll", "Read", "Read"]


@pytest.mark.parametrize("state", ["ready", "waiting", "failed", "reading", "verifying"])
def test_what_is_to_be_retained_is_left_as_it_is(state: str) -> None:
    story = samples.states()[state].tell(Apply(replace(DECLARED, retain=True)))
    before = len(story.effects)

    story.tell(Remove("rita"))

    assert story.state.phase is Phase.GONE
    assert len(story.effects) == before


def test_a_removal_during_a_write_of_what_is_retained_leaves_it_when_that_is_done() -> None:
    story = samples.reading(Apply(replace(DECLARED, retain=True))).seen(ABSENT)

    story.tell(Remove()).accepted()

    assert (story.state.phase, story.asked) == (Phase.GONE, ["Read", "Write"])


def test_what_was_never_ours_is_not_deleted() -> None:
    story = samples.reading().seen(BROKEN).tell(Remove("rita"))

    assert (story.state.phase, story.asked) == (Phase.GONE, ["Read"])


def test_what_is_gone_can_be_declared_anew_and_remembers_nothing() -> None:
    story = samples.states()["gone"].tell(Apply(OTHER))

    assert (story.state.last.applied, story.state.ours) == (None, False)
    assert RESOURCE.ended(samples.states()["gone"].state)
    assert not RESOURCE.ended(story.state)


@pytest.mark.requirement("resources R33")
def test_a_resource_stays_the_one_that_it_was_declared_as() -> None:
    story = samples.ready()

    for other in (
        replace(DECLARED, type="Acme.Toys/bags"),
        replace(DECLARED, id=f"{DECLARED.id}b"),
    ):
        with pytest.raises(errors.Rejected, match="declared already as Acme"):
            story.tell(Apply(other))
    with pytest.raises(errors.Rejected, match="not the stream of"):
        RESOURCE.addressed(stream("/subscriptions/s/other"), APPLY)
    RESOURCE.addressed(stream(DECLARED.id.upper()), APPLY)


@pytest.mark.requirement("resources R25")
def test_nothing_that_is_kept_or_asked_names_more_than_the_digest_of_a_request() -> None:
    write = samples.writing().effects[-1]

    assert write == messages.Write(2, DECLARED, messages.LastApplied(), CREATE.digest)


def test_late_answers_change_nothing_even_where_a_newer_one_is_awaited() -> None:
    story = samples.reading().tell(Apply(OTHER))
    late = messages.Seen(story.state.order - 1, DIFFERENT)

    assert not story.tell(late).last
    assert story.seen(DIFFERENT).state.phase is Phase.WRITING


def test_a_failure_is_forgotten_once_it_worked() -> None:
    story = Story().tell(APPLY).failed(THROTTLED)
    assert story.state.failure == THROTTLED

    assert story.woken().seen(SAME).state.failure is None
