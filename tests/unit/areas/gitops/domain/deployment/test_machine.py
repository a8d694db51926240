"""What a deployment from git decides: all states with all commands, and what each must never do."""

from typing import TypeVar

import pytest

from fairlead import errors
from fairlead.areas.gitops.domain import messages
from fairlead.areas.gitops.domain.deployment import events, view
from fairlead.areas.gitops.domain.deployment.machine import DEADLINE
from fairlead.areas.gitops.domain.deployment.state import Phase
from fairlead.engine.messages import SetTimer
from fairlead.engine.testing import START, Given, When
from fairlead.kubernetes.messages import PublishStatus, RecordEvent, ReleaseObject
from tests.unit.areas.gitops.domain.deployment.samples import (
    APPLYING,
    GATHERING,
    INTENT,
    MANUAL,
    MAP,
    RENDERING,
    REVISION,
    STATES,
    SUBJECT,
    WAITING,
    WEB,
    WRONG,
    after,
    answer,
    commands,
    declare,
    observed,
)

Effect = TypeVar("Effect")
TABLE = """
          | Declare          | Delete             | Adopt     | Sync     | Gathered         | Rendered       | Applied | Removed            | Failed  | Wake             | Expire
Idle      | Gathering Gather | Gone ReleaseObject | Idle      | rejected | -                | -              | -       | -                  | -       | -                | -
Refused   | Gathering Gather | Gone ReleaseObject | Refused   | rejected | -                | -              | -       | -                  | -       | -                | -
Gathering | Gathering Gather | Gone ReleaseObject | Gathering | rejected | Rendering Render | -              | -       | -                  | Waiting | -                | Gathering
Rendering | Gathering Gather | Gone ReleaseObject | Rendering | rejected | -                | Applying Apply | -       | -                  | Waiting | -                | Rendering
Applying  | Applying         | Applying           | Applying  | rejected | -                | -              | Waiting | -                  | Waiting | -                | Applying
Waiting   | Gathering Gather | Removing Remove    | Waiting   | rejected | -                | -              | -       | -                  | -       | Rendering Render | -
Removing  | -                | -                  | Removing  | rejected | -                | -              | -       | Gone ReleaseObject | Stuck   | -                | Removing
Stuck     | -                | -                  | Stuck     | rejected | -                | -              | -       | -                  | -       | Removing Remove  | -
Gone      | -                | -                  | -         | -        | -                | -              | -       | -                  | -       | -                | -
"""  # noqa: E501 - one state a line
"""State by command: the state afterwards, and what is asked of the world beside telling of it."""


def cells() -> list[tuple[str, str, str]]:
    head, *rows = [
        [cell.strip() for cell in row.split("|")] for row in TABLE.strip("\n").split("\n")
    ]
    return [
        (row[0], name, cell) for row in rows for name, cell in zip(head[1:], row[1:], strict=True)
    ]


@pytest.mark.parametrize(("phase", "command", "expected"), cells())
def test_every_state_knows_every_command(phase: str, command: str, expected: str) -> None:
    given = STATES[Phase(phase)]

    assert told(given, commands(given)[command]) == expected


def test_the_table_has_every_state_and_every_command() -> None:
    found = cells()

    assert {phase for phase, _, _ in found} == {phase.value for phase in Phase}
    assert {command for _, command, _ in found} == set(commands(WAITING))


@pytest.mark.requirement("gitops 2", "gitops 13")
def test_the_operation_is_recorded_with_both_ids_before_the_agent_is_asked() -> None:
    then = GATHERING.when(answer(GATHERING, messages.Gathered, "ns-uid", "builtin"))

    recorded, started = then.decision.events
    assert isinstance(recorded, events.OperationRecorded)
    assert (recorded.workspace_id, recorded.gitops_depl_id) == ("ns-uid", SUBJECT.uid)
    assert recorded.operation.owner == "ns-uid"
    assert recorded.operation.resource_type == "Application"
    assert isinstance(started, events.PassStarted)
    assert [one.operation for one in asked(then, messages.Render)] == [recorded.operation]


@pytest.mark.requirement("gitops 15")
def test_nothing_is_asked_of_the_agent_before_all_is_gathered() -> None:
    then = after().when(declare())
    without = GATHERING.when(answer(GATHERING, messages.Failed, "no rights in this namespace"))

    assert [type(each) for each in then.decision.effects] == [messages.Gather]
    assert [type(each) for each in without.decision.effects] == [PublishStatus, RecordEvent]
    assert without.state.operation is None


def test_invalid_work_goes_no_further_and_becomes_a_condition() -> None:
    then = after().when(declare(WRONG))

    assert isinstance(then.decision.events[-1], events.IntentRefused)
    assert [type(each) for each in then.decision.effects] == [PublishStatus, RecordEvent]
    assert error(then) == "spec.source.path cannot be '/'"


@pytest.mark.requirement("gitops 21")
@pytest.mark.parametrize("at", range(5))
def test_an_operation_with_an_empty_field_is_refused(at: int) -> None:
    fields = ["op", "builtin", "ns-uid", "uid", "Application"]
    fields[at] = ""

    with pytest.raises(errors.Rejected, match="an operation without a field"):
        messages.Operation(*fields)


@pytest.mark.parametrize("given", [GATHERING, RENDERING, APPLYING])
def test_a_failure_anywhere_reaches_the_user_and_is_tried_again(given: Given) -> None:
    then = given.when(answer(given, messages.Failed, "the repository is gone"))

    assert error(then) == "the repository is gone"
    assert isinstance(timer(then).command, messages.Wake)
    assert then.state.phase is Phase.WAITING


def test_a_failure_that_is_over_is_told_as_resolved() -> None:
    failed = after(answer(RENDERING, messages.Failed, "away"), at=RENDERING)
    again = after(messages.Wake(failed.state.order), at=failed)
    applying = after(answer(again, messages.Rendered, REVISION, (MAP,)), at=again)

    then = applying.when(answer(applying, messages.Applied, observed(MAP)))

    (status,) = published(then)
    assert [(one.type, one.status, one.reason) for one in status.conditions] == [
        ("ErrorOccurred", False, view.RESOLVED),
        ("Ready", True, "Healthy"),
    ]


@pytest.mark.parametrize("given", [GATHERING, RENDERING, APPLYING, STATES[Phase.REMOVING]])
def test_no_answer_is_awaited_without_a_deadline(given: Given) -> None:
    then = given.when(messages.Expire(given.state.order))

    assert error(then) == "the agent has not answered for 5 minutes"
    late = Given(given.machine, then.state)
    assert late.when(answer(late, messages.Failed, "still away")).decision


def test_each_question_sets_its_deadline() -> None:
    then = after().when(declare())

    assert timer(then) == SetTimer("wake", START + DEADLINE, messages.Expire(1))


def test_what_left_git_is_obsolete_and_what_comes_is_ours_before_it_is_applied() -> None:
    begun = after(messages.Wake(WAITING.state.order), at=WAITING)
    extra = messages.ObjectRef("", "v1", "Secret", "new")

    then = begun.when(answer(begun, messages.Rendered, "f" * 40, (MAP, extra)))

    (apply,) = asked(then, messages.Apply)
    assert apply.obsolete == (WEB,)
    assert set(then.state.inventory) == {MAP, WEB, extra}


def test_an_empty_revision_deletes_nothing() -> None:
    begun = after(messages.Wake(WAITING.state.order), at=WAITING)

    then = begun.when(answer(begun, messages.Rendered, "f" * 40, ()))

    assert asked(then, messages.Apply) == []
    assert "has no objects, and 2 are deployed" in error(then)


def test_a_manual_deployment_is_compared_until_somebody_syncs_it() -> None:
    rendering = after(declare(MANUAL))
    rendering = after(answer(rendering, messages.Gathered, "ns-uid", "builtin"), at=rendering)
    applying = after(answer(rendering, messages.Rendered, REVISION, (MAP,)), at=rendering)
    waiting = after(answer(applying, messages.Applied, observed(MAP)), at=applying)
    begun = after(messages.Sync("1"), at=waiting)
    then = begun.when(answer(begun, messages.Rendered, REVISION, (MAP,)))

    assert applying.state.dry
    assert applying.state.inventory == ()
    assert [one.dry for one in asked(then, messages.Apply)] == [False]
    assert not then.state.sync_asked


def test_a_sync_by_hand_of_an_automated_deployment_is_refused() -> None:
    with pytest.raises(errors.Rejected, match="Automated sync policy is not allowed"):
        WAITING.when(messages.Sync("1"))


def test_a_change_while_objects_are_applied_waits_for_their_end() -> None:
    changed = after(declare(MANUAL, 2), at=APPLYING)

    then = changed.when(answer(changed, messages.Applied, observed(MAP, WEB)))

    assert [type(each) for each in then.decision.events] == [
        events.PassCompleted,
        events.GatheringStarted,
    ]


def test_a_pass_that_finds_all_as_it_was_tells_nobody() -> None:
    begun = WAITING.when(messages.Wake(WAITING.state.order))
    rendered = Given(WAITING.machine, begun.state)
    applied = rendered.when(answer(rendered, messages.Rendered, REVISION, (MAP, WEB)))
    last = Given(WAITING.machine, applied.state)
    done = last.when(answer(last, messages.Applied, observed(MAP, WEB)))

    assert [published(each) for each in (begun, applied, done)] == [[], [], []]


def test_the_same_intent_again_is_no_news() -> None:
    assert not WAITING.when(declare(INTENT)).decision


def test_a_deletion_while_objects_are_applied_waits_and_takes_all_of_them() -> None:
    leaving = after(messages.Delete(), at=APPLYING)

    then = leaving.when(answer(leaving, messages.Failed, "half of it is there"))

    (remove,) = asked(then, messages.Remove)
    assert set(remove.inventory) == {MAP, WEB}


def test_a_deletion_has_an_operation_of_its_own_and_a_failed_one_is_tried_again() -> None:
    removing = STATES[Phase.REMOVING]
    stuck = removing.when(answer(removing, messages.Failed, "forbidden"))
    again = Given(removing.machine, stuck.state).when(messages.Wake(stuck.state.order))

    assert WAITING.state.operation != removing.state.operation
    assert error(stuck) == "forbidden"
    assert [one.operation for one in asked(again, messages.Remove)] == [removing.state.operation]


def test_a_deletion_that_an_empty_store_hears_of_first_finds_what_the_status_lists() -> None:
    adopted = after(messages.Adopt(7, (MAP,)), messages.Delete(SUBJECT))

    then = adopted.when(answer(adopted, messages.Gathered, "ns-uid", "builtin"))

    assert [one.inventory for one in asked(then, messages.Remove)] == [(MAP,)]


def test_the_object_is_let_go_only_at_the_end() -> None:
    removing = STATES[Phase.REMOVING]

    then = removing.when(answer(removing, messages.Removed))

    assert then.decision.effects == (ReleaseObject(SUBJECT, messages.FINALIZER),)


def told(given: Given, command: object) -> str:
    try:
        then = given.when(command)
    except errors.Rejected:
        return "rejected"
    if not then.decision:
        return "-"
    quiet = (PublishStatus, RecordEvent)
    asks = [type(each).__name__ for each in then.decision.effects if not isinstance(each, quiet)]
    return " ".join([then.state.phase.value, *asks])


def asked(then: When, kind: type[Effect]) -> list[Effect]:
    return [each for each in then.decision.effects if isinstance(each, kind)]


def published(then: When) -> list[PublishStatus]:
    return [each for each in then.decision.effects if isinstance(each, PublishStatus)]


def error(then: When) -> str:
    (status,) = published(then)
    found = next(one for one in status.conditions if one.type == view.ERROR)
    assert found.status
    return found.message


def timer(then: When) -> SetTimer:
    (found,) = then.decision.timers
    assert isinstance(found, SetTimer)
    return found
