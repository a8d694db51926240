"""Every state times every command: what happens, or why it is refused."""

import datetime as dt

import pytest

from fairlead import errors
from fairlead.analysis.limits import Limits
from fairlead.areas.rollouts.domain import coordination, events, messages, states, view
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.areas.rollouts.domain.observation import Observation
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.areas.rollouts.domain.status import RolloutStatus
from fairlead.checks.spec import Check
from fairlead.engine import attributes
from fairlead.engine import machine as machines
from fairlead.values import Percent
from tests.unit.areas.rollouts.domain.world import BAD, START, Habits, World, version

SPEC = Spec(
    Strategy(steps=(Pace(Percent(10), approve=True), Pace(Percent(50)))),
    (Check("errors", limits=Limits(count=3, interval=dt.timedelta(seconds=30))),),
)
BY = "ada"
STEP = "rollout-step/d1"
# What is said to each state, in the order of the table's columns.
COMMANDS: dict[str, messages.Command] = {
    "Request the same": messages.Request("shop", SPEC, version("v2"), 3),
    "Request v3": messages.Request("shop", SPEC, version("v3"), 3),
    "Request v1": messages.Request("shop", SPEC, version("v1"), 3),
    "Observed": messages.Observed(Observation(START)),
    "Judged": messages.Judged(999, ()),
    "Tick": messages.Tick(),
    "Pause": messages.Pause(BY),
    "Resume": messages.Resume(BY),
    "Approve": messages.Approve(BY),
    "PromoteFully": messages.PromoteFully(BY),
    "Abort": messages.Abort(BY),
    "Retry": messages.Retry(BY),
    "RollBackTo v0": messages.RollBackTo("v0", BY),
    "RollBackTo v1": messages.RollBackTo("v1", BY),
    "RollBackTo the last good": messages.RollBackTo("", BY),
    "Delete": messages.Delete(),
    "Delete by a person": messages.Delete(BY),
    "Adopt": messages.Adopt(RolloutStatus()),
    "Grant": messages.Grant(),
    "ProceedTogether": messages.ProceedTogether("full"),
    "LeaveGroup": messages.LeaveGroup("b rolled back"),
    "Follow v2": messages.Follow(messages.Request("shop", SPEC, version("v2"), 3), STEP),
    "FallAsleep": messages.FallAsleep(STEP),
    "Abandon": messages.Abandon(STEP, "cancelled"),
}
NO = "-"
GONE = "Gone"
# The state that follows, `-` for nothing at all, or the refusal after `!`.
ALL_TO_PRIMARY = "RollingBack"
TABLE: dict[str, dict[str, str]] = {
    "Unknown": {
        "Request the same": "Initializing",
        "Request v3": "Initializing",
        "Request v1": "Initializing",
        "Adopt": "!cannot adopt status",
        "Delete by a person": "!no such rollout",
        "Follow v2": "Initializing",
    },
    "Initializing": {
        "Request the same": "Initializing",
        "Request v3": "Initializing",
        "Observed": "Initializing",
        "Pause": "Initializing",
        "Approve": "!no step is waiting for approval",
        "PromoteFully": "!no rollout in progress",
        "Abort": "!the initial rollout has no earlier version",
        "Retry": "!nothing to retry",
        "RollBackTo v0": "!the initial rollout has no earlier version",
        "RollBackTo v1": "!the initial rollout has no earlier version",
        "RollBackTo the last good": "!the initial rollout has no earlier version",
        "Delete": GONE,
        "Delete by a person": GONE,
        "Follow v2": "Initializing",
        "FallAsleep": "Initializing",
    },
    "Idle": {
        "Request the same": "Shifting",
        "Request v3": "Shifting",
        "Pause": "Idle",
        "Approve": "!no step is waiting for approval",
        "PromoteFully": "!no rollout in progress",
        "Abort": "!no rollout in progress",
        "Retry": "!nothing to retry",
        "RollBackTo v0": "Shifting",
        "RollBackTo v1": "!already running",
        "RollBackTo the last good": "Shifting",
        "Delete": GONE,
        "Delete by a person": GONE,
        "Follow v2": "Shifting",
        "FallAsleep": "Idle",
    },
    "Idle after v2 was rolled back": {
        "Request v3": "Shifting",
        "Request v1": "Idle",
        "Pause": "Idle",
        "Approve": "!no step is waiting for approval",
        "PromoteFully": "!no rollout in progress",
        "Abort": "!no rollout in progress",
        "Retry": "Shifting",
        "RollBackTo v0": "Shifting",
        "RollBackTo v1": "!already running",
        "RollBackTo the last good": "!already rolled back to: v1",
        "Delete": GONE,
        "Delete by a person": GONE,
        "Follow v2": "Shifting",
        "FallAsleep": "Idle",
    },
    "Queued, paused": {
        "Request v3": "Queued",
        "Request v1": "Idle",
        "Resume": "Shifting",
        "Approve": "!no step is waiting for approval",
        "PromoteFully": "Shifting",
        "Abort": "Idle",
        "Retry": "!the rollout is in progress",
        "RollBackTo v0": "Queued",
        "RollBackTo v1": "Idle",
        "RollBackTo the last good": "Idle",
        "Delete": GONE,
        "Delete by a person": GONE,
        "LeaveGroup": "Idle",
        "Follow v2": "Queued",
        "FallAsleep": "Idle",
    },
    "Shifting": {
        "Request v3": ALL_TO_PRIMARY,
        "Request v1": ALL_TO_PRIMARY,
        "Pause": "Shifting",
        "Approve": "!no step is waiting for approval",
        "PromoteFully": "Shifting",
        "Abort": ALL_TO_PRIMARY,
        "Retry": "!the rollout is in progress",
        "RollBackTo v0": ALL_TO_PRIMARY,
        "RollBackTo v1": ALL_TO_PRIMARY,
        "RollBackTo the last good": ALL_TO_PRIMARY,
        "Delete": GONE,
        "Delete by a person": GONE,
        "LeaveGroup": ALL_TO_PRIMARY,
        "Follow v2": "Shifting",
        "FallAsleep": "RollingBack",
    },
    "Analysing": {
        "Request v3": ALL_TO_PRIMARY,
        "Request v1": ALL_TO_PRIMARY,
        "Pause": "Analysing",
        "Approve": "Analysing",
        "PromoteFully": "Shifting",
        "Abort": ALL_TO_PRIMARY,
        "Retry": "!the rollout is in progress",
        "RollBackTo v0": ALL_TO_PRIMARY,
        "RollBackTo v1": ALL_TO_PRIMARY,
        "RollBackTo the last good": ALL_TO_PRIMARY,
        "Delete": GONE,
        "Delete by a person": GONE,
        "LeaveGroup": ALL_TO_PRIMARY,
        "Follow v2": "Analysing",
        "FallAsleep": "RollingBack",
    },
    "Promoting": {
        "Request v3": "Promoting",
        "Request v1": "Promoting",
        "Pause": "Promoting",
        "Approve": "!no step is waiting for approval",
        "Abort": ALL_TO_PRIMARY,
        "Retry": "!the rollout is in progress",
        "RollBackTo v0": "Promoting",
        "RollBackTo v1": ALL_TO_PRIMARY,
        "RollBackTo the last good": ALL_TO_PRIMARY,
        "Delete": GONE,
        "Delete by a person": GONE,
        "Follow v2": "Promoting",
        "FallAsleep": "RollingBack",
    },
    "RollingBack": {
        "Request v3": ALL_TO_PRIMARY,
        "Request v1": ALL_TO_PRIMARY,
        "Pause": ALL_TO_PRIMARY,
        "Approve": "!no step is waiting for approval",
        "PromoteFully": "!the rollout is rolling back",
        "Retry": ALL_TO_PRIMARY,
        "RollBackTo v0": ALL_TO_PRIMARY,
        "Delete": GONE,
        "Delete by a person": GONE,
        "Follow v2": "RollingBack",
        "FallAsleep": "RollingBack",
    },
    "Gone": {
        "Request the same": "Initializing",
        "Request v3": "Initializing",
        "Request v1": "Initializing",
        "Delete by a person": "!no such rollout",
        "Follow v2": "Initializing",
    },
}
VERBS = (
    messages.Pause, messages.Resume, messages.Approve, messages.PromoteFully,
    messages.Abort, messages.Retry, messages.RollBackTo,
)  # fmt: skip


def in_state(name: str) -> World:
    world = World()
    if name == "Unknown":
        return world
    world.want("v0", SPEC)
    if name == "Initializing":
        world = World()
        world.want("v1", SPEC)
        return world
    world.run_until(states.Idle)
    world.want("v1", SPEC)
    world.send(messages.PromoteFully(BY))
    world.run_until(states.Idle)
    if name == "Idle":
        return world
    if name == "Gone":
        world.send(messages.Delete())
        return world
    if name == "Queued, paused":
        world.send(messages.Pause(BY))
    world.want("v2", SPEC)
    match name:
        case "Analysing":
            world.run_until(states.Analysing)
        case "Promoting":
            world.send(messages.PromoteFully(BY))
            world.run_until(states.Promoting)
        case "RollingBack" | "Idle after v2 was rolled back":
            world.run_until(states.Analysing)
            world.send(messages.Abort(BY))
            if name != "RollingBack":
                world.run_until(states.Idle)
    return world


@pytest.mark.parametrize("state", TABLE)
def test_every_command_has_its_answer_in_every_state(state: str) -> None:
    for column, command in COMMANDS.items():
        world = in_state(state)
        before = world.state()
        before_name, bond = type(before).__name__, coordination.rollout_stream("shop")
        assert before_name == state.partition(",")[0].partition(" ")[0]
        expected = TABLE[state].get(column, NO)
        if column == "Tick" and TABLE[state].get("Tick") is None:
            # A tick that comes early sets its timer again, where one is set.
            expected = before_name if bond in world.timers else NO
        if expected == NO and state in ("Unknown", "Gone") and isinstance(command, VERBS):
            expected = "!no such rollout"

        if expected.startswith("!"):
            with pytest.raises(errors.Rejected, match=expected[1:]) as caught:
                world.send(command)
            assert caught.value.hint, (state, column)
            continue
        decision = ROLLOUT.decide(before, command, world.now)
        world.send(command)

        after = type(world.state()).__name__
        assert (after if decision else NO) == expected, (state, column, decision)


def test_the_table_names_every_state_and_every_command() -> None:
    rows = {row.partition(",")[0].partition(" ")[0] for row in TABLE}
    columns = {type(command).__name__ for command in COMMANDS.values()}

    assert rows == {each.__name__ for each in machines.members(states.State)}
    assert columns == {each.__name__ for each in machines.members(messages.Command)}


@pytest.mark.parametrize("state", [row for row in TABLE if row != "Unknown"])
def test_a_command_told_twice_changes_nothing_the_second_time(state: str) -> None:
    for command in (
        messages.Request("shop", SPEC, version("v3"), 3),
        messages.Pause(BY),
        messages.Delete(),
    ):
        world = in_state(state)
        try:
            world.send(command)
        except errors.Rejected:
            continue
        decision = ROLLOUT.decide(world.state(), command, world.now)

        assert not decision, (state, command)


def test_what_leaves_the_machine_always_has_an_event() -> None:
    for state in TABLE:
        for command in COMMANDS.values():
            world = in_state(state)
            try:
                decision = ROLLOUT.decide(world.state(), command, world.now)
            except errors.Rejected:
                continue
            assert decision.events or not decision


@pytest.mark.parametrize("state", TABLE)
def test_every_state_has_a_phase_a_sentence_and_conditions(state: str) -> None:
    world = in_state(state)

    said = view.sentence(world.state())

    assert said == said.strip()
    assert said
    assert isinstance(view.phase(world.state()), view.Phase)
    assert attributes.values(ROLLOUT, world.state())["phase"] == view.phase(world.state()).value
    if state != "Unknown":
        assert {each.type for each in view.conditions(world.state())} == {
            "Ready", "Progressing", "Stalled", "Degraded",
        }  # fmt: skip


def test_a_bad_verdict_returns_all_traffic_to_stable_at_once_and_says_why() -> None:
    world = World(Habits(verdicts={"v2": BAD}))
    world.want("v1", SPEC)
    world.run_until(states.Idle)
    world.want("v2", SPEC)
    world.run_until(states.Analysing)

    state = world.run_until(states.RollingBack)

    home = [event for event in world.told() if isinstance(event, events.RollbackStarted)]
    assert "errors: 1 of 1 measurement failed" in home[0].why
    assert state.rollout.route.weight == 0
