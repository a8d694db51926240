"""A trigger and its targets: every state with every command, and what the host is told."""

import itertools
from dataclasses import replace

import pytest

from fairlead import errors
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.trigger.machine import TRIGGER, deployment_name
from fairlead.areas.deployments.domain.trigger.messages import (
    Check,
    CheckPublished,
    CommitResolved,
    DeploymentEnded,
    DeploymentRequested,
    FetchConfiguration,
    PublishCheck,
    Refuse,
    ReportCommit,
    ReportConfiguration,
    ReportPublished,
    ResolveCommit,
    Source,
    Start,
    Started,
    Target,
    TargetRefused,
)
from fairlead.areas.deployments.domain.trigger.state import Trigger, status
from fairlead.engine import machine
from fairlead.engine.messages import ChildEnded, Send, StreamName
from fairlead.engine.testing import Given, When, given
from tests.unit.areas.deployments.domain.samples import SPEC

COMMIT = "c" * 40
AT = Source("github", "acme/shop", "refs/heads/main", COMMIT, reports=True)
BRANCH = replace(AT, commit="")
SHOP, TILL = Target("prod", "shop", "a.yaml"), Target("prod", "till", "b.yaml")
NAME = deployment_name("t", AT, SHOP)
TILL_NAME = deployment_name("t", AT, TILL)
STARTED = Started("t", AT, (SHOP, TILL), "push", "ann")
STATES = {
    "NEW": given(TRIGGER),
    "RESOLVING": given(TRIGGER, replace(STARTED, source=BRANCH)),
    "FETCHING": given(TRIGGER, STARTED),
    "REQUESTED": given(TRIGGER, STARTED, DeploymentRequested("prod/shop", NAME, 3)),
    "DONE": given(
        TRIGGER,
        STARTED,
        DeploymentRequested("prod/shop", NAME, 3),
        DeploymentEnded("prod/shop", NAME, succeeded=True),
    ),
    "FAILED": given(
        TRIGGER,
        STARTED,
        DeploymentRequested("prod/shop", NAME, 3),
        DeploymentEnded("prod/shop", NAME, succeeded=False),
    ),
    "REFUSED": given(TRIGGER, STARTED, TargetRefused("prod/shop", "no")),
}
COMMANDS = {
    "Start": Start("t", AT, (SHOP, TILL), "push", "ann"),
    "commit": ReportCommit(COMMIT),
    "no commit": ReportCommit("", "no such branch"),
    "configuration": ReportConfiguration("prod/shop", SPEC, "{}", 3, "aws@prod"),
    "refuse": Refuse("prod/shop", "no"),
    "foreign": Refuse("prod/other", "no"),
    "published": ReportPublished("prod/shop", Check.PENDING),
    "ended well": ChildEnded(StreamName(f"deployment/{NAME}"), succeeded=True),
    "retry ended": ChildEnded(StreamName(f"deployment/{NAME}.r2"), succeeded=False, reason="x"),
    "foreign ended": ChildEnded(StreamName("deployment/prod/shop/other"), succeeded=True),
}
PUBLISHED = CheckPublished("prod/shop", Check.PENDING)
ENDED = DeploymentEnded("prod/shop", NAME, succeeded=True)
RETRIED = DeploymentEnded("prod/shop", f"{NAME}.r2", succeeded=False)
# What is recorded; nothing where nothing happens.
TABLE: dict[str, dict[str, tuple[object, ...]]] = {
    "NEW": {"Start": (STARTED,)},
    "RESOLVING": {
        "commit": (CommitResolved(COMMIT),),
        "no commit": (
            TargetRefused("prod/shop", "no such branch"),
            TargetRefused("prod/till", "no such branch"),
        ),
        "refuse": (TargetRefused("prod/shop", "no"),),
    },
    "FETCHING": {
        "configuration": (DeploymentRequested("prod/shop", NAME, 3),),
        "refuse": (TargetRefused("prod/shop", "no"),),
        "published": (PUBLISHED,),
    },
    "REQUESTED": {"published": (PUBLISHED,), "ended well": (ENDED,), "retry ended": (RETRIED,)},
    "DONE": {"published": (PUBLISHED,), "ended well": (ENDED,), "retry ended": (RETRIED,)},
    "FAILED": {"published": (PUBLISHED,), "ended well": (ENDED,), "retry ended": (RETRIED,)},
    "REFUSED": {"published": (PUBLISHED,)},
}


@pytest.mark.parametrize(("state", "command"), list(itertools.product(STATES, COMMANDS)))
def test_every_state_has_an_answer_to_every_command(state: str, command: str) -> None:
    then = STATES[state].when(COMMANDS[command])

    then.then(*TABLE[state].get(command, ()))


def test_the_table_has_every_command_and_people_have_none_of_them() -> None:
    named = {type(each) for each in COMMANDS.values()}

    assert named == {*machine.members(TRIGGER.vocabulary.commands)}
    assert machine.members(TRIGGER.vocabulary.verbs) == ()


@pytest.mark.requirement("deployer G4", "deployer M2")
def test_a_start_asks_for_the_file_of_every_target_and_tells_the_host() -> None:
    then = STATES["NEW"].when(COMMANDS["Start"])

    then.asks(
        FetchConfiguration(AT, SHOP),
        FetchConfiguration(AT, TILL),
        PublishCheck(AT, "prod/shop", "t/prod/shop", Check.PENDING, "waits for its deployment"),
        PublishCheck(AT, "prod/till", "t/prod/till", Check.PENDING, "waits for its deployment"),
    )


def test_a_branch_is_resolved_before_anything_is_read() -> None:
    then = STATES["NEW"].when(replace(COMMANDS["Start"], source=BRANCH))  # type: ignore[type-var]  # a dataclass among others

    then.asks(ResolveCommit(BRANCH))
    resolved = STATES["RESOLVING"].when(COMMANDS["commit"])
    assert resolved.decision.effects[0] == FetchConfiguration(AT, SHOP)


@pytest.mark.requirement("deployer G6", "deployer M6")
def test_each_target_becomes_one_requested_deployment_with_cause_and_caller() -> None:
    then = STATES["FETCHING"].when(COMMANDS["configuration"])

    request = messages.Request(NAME, SPEC, "{}", "push", "ann", parent="trigger/t")
    then.sends(Send(StreamName(f"deployment/{NAME}"), request, "aws@prod"))
    # It begins with the environment, so that a scope covers it.
    assert NAME.startswith("prod/shop/cccccccccccc-")


def published(check: Check) -> ReportPublished:
    return ReportPublished("prod/shop", check)


def checks(then: When) -> list[tuple[Check, str]]:
    found = [each for each in then.decision.effects if isinstance(each, PublishCheck)]
    return [(each.check, each.summary) for each in found]


def test_an_end_is_told_only_after_what_was_told_before_it() -> None:
    ended = STATES["REQUESTED"].when(COMMANDS["ended well"])
    then = Given(TRIGGER, ended.state).when(published(Check.PENDING))
    last = Given(TRIGGER, then.state).when(published(Check.SUCCESS))

    assert checks(ended) == []
    assert checks(then) == [(Check.SUCCESS, f"deployed: {NAME}")]
    assert checks(last) == []


def test_a_retry_that_ends_well_is_told_too() -> None:
    state = STATES["FAILED"].when(published(Check.PENDING)).state
    state = Given(TRIGGER, state).when(published(Check.FAILURE)).state
    again = ChildEnded(StreamName(f"deployment/{NAME}.r2"), succeeded=True)

    then = Given(TRIGGER, state).when(again)

    assert [check for check, _ in checks(then)] == [Check.SUCCESS]


def test_why_a_run_failed_is_not_told_to_readers_of_the_repository() -> None:
    failed = ChildEnded(StreamName(f"deployment/{NAME}"), succeeded=False, reason="password=x")
    state = STATES["REQUESTED"].when(published(Check.PENDING)).state

    then = Given(TRIGGER, state).when(failed)

    assert checks(then) == [(Check.FAILURE, f"failed: fairlead get deployment {NAME}")]
    assert "password" not in repr(then.decision)


def test_a_host_that_does_not_report_is_told_nothing() -> None:
    silent = replace(AT, provider="gitlab", reports=False)

    then = STATES["NEW"].when(replace(COMMANDS["Start"], source=silent))  # type: ignore[type-var]  # a dataclass among others

    assert checks(then) == []


def test_a_start_without_targets_is_refused() -> None:
    with pytest.raises(errors.Rejected, match="nothing to deploy"):
        STATES["NEW"].when(Start("t", AT, (), "push", "ann"))


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("NEW", "NEW"),
        ("RESOLVING", "RESOLVING"),
        ("FETCHING", "FETCHING"),
        ("DONE", "FETCHING"),
    ],
)
def test_its_status_is_that_of_the_slowest_target(state: str, expected: str) -> None:
    found = STATES[state].state
    assert isinstance(found, Trigger)

    assert status(found) == expected


def test_it_ends_with_its_last_target() -> None:
    state = STATES["REFUSED"].when(Refuse("prod/till", "no")).state

    assert not TRIGGER.ended(STATES["REFUSED"].state)
    assert TRIGGER.ended(state)
    assert status(state) == "REFUSED"
    assert TILL_NAME != NAME
