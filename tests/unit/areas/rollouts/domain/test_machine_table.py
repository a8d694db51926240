"""Every state times every command: what happens, or why it is refused."""

import datetime as dt

import pytest

from fairlead import errors
from fairlead.domain.analysis.limits import Limits
from fairlead.domain.rollouts import bonds, messages, states, view
from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts.machine import ROLLOUT
from fairlead.domain.rollouts.sight import Sight
from fairlead.domain.rollouts.spec import Check, Spec
from fairlead.domain.rollouts.strategy import Pace, Strategy
from fairlead.domain.values import Percent
from fairlead.engine import machine as machines
from tests.unit.domain.rollouts.world import BAD, START, Habits, World, version

SPEC = Spec(
    Strategy(steps=(Pace(Percent(10), approve=True), Pace(Percent(50)))),
    (Check("errors", limits=Limits(count=3, interval=dt.timedelta(seconds=30))),),
)
BY = "ada"
# What is said to each state, in the order of the table's columns.
COMMANDS: dict[str, messages.Command] = {
    "Want the same": messages.Want("shop", SPEC, version("v2"), 3),
    "Want v3": messages.Want("shop", SPEC, version("v3"), 3),
    "Want v1": messages.Want("shop", SPEC, version("v1"), 3),
    "Observed": messages.Observed(Sight(START)),
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
    "Delete": messages.Delete(),
    "Adopt": messages.Adopt({}),
    "Grant": messages.Grant(),
    "GoTogether": messages.GoTogether("full"),
    "PartWays": messages.PartWays("b went home"),
}
NO = "-"
GONE = "Gone"
# The state that follows, `-` for nothing at all, or the refusal after `!`.
HOME = "GoingHome"
TABLE: dict[str, dict[str, str]] = {
    "Unknown": {
        "Want the same": "Founding",
        "Want v3": "Founding",
        "Want v1": "Founding",
        "Adopt": "!status cannot be adopted",
    },
    "Founding": {
        "Want the same": "Founding",
        "Want v3": "Founding",
        "Observed": "Founding",
        "Pause": "Founding",
        "Approve": "!nothing waits for approval",
        "PromoteFully": "!no rollout to promote",
        "Abort": "!the first version has nothing to go back to",
        "Retry": "!nothing to retry",
        "RollBackTo v0": "!the first version has nothing to go back to",
        "RollBackTo v1": "!the first version has nothing to go back to",
        "Delete": GONE,
    },
    "Idle": {
        "Want the same": "Moving",
        "Want v3": "Moving",
        "Pause": "Idle",
        "Approve": "!nothing waits for approval",
        "PromoteFully": "!no rollout to promote",
        "Abort": "!no rollout under way",
        "Retry": "!nothing to retry",
        "RollBackTo v0": "Moving",
        "RollBackTo v1": "!it runs already",
        "Delete": GONE,
    },
    "Idle after v2 was taken back": {
        "Want v3": "Moving",
        "Want v1": "Idle",
        "Pause": "Idle",
        "Approve": "!nothing waits for approval",
        "PromoteFully": "!no rollout to promote",
        "Abort": "!no rollout under way",
        "Retry": "Moving",
        "RollBackTo v0": "Moving",
        "RollBackTo v1": "!it runs already",
        "Delete": GONE,
    },
    "Queued, paused": {
        "Want v3": "Queued",
        "Want v1": "Idle",
        "Resume": "Moving",
        "Approve": "!nothing waits for approval",
        "PromoteFully": "Moving",
        "Abort": "Idle",
        "Retry": "!the rollout is under way",
        "RollBackTo v0": "Queued",
        "RollBackTo v1": "Idle",
        "Delete": GONE,
        "PartWays": "Idle",
    },
    "Moving": {
        "Want v3": HOME,
        "Want v1": HOME,
        "Pause": "Moving",
        "Approve": "!nothing waits for approval",
        "PromoteFully": "Moving",
        "Abort": HOME,
        "Retry": "!the rollout is under way",
        "RollBackTo v0": HOME,
        "RollBackTo v1": HOME,
        "Delete": GONE,
        "PartWays": HOME,
    },
    "Watching": {
        "Want v3": HOME,
        "Want v1": HOME,
        "Pause": "Watching",
        "Approve": "Watching",
        "PromoteFully": "Moving",
        "Abort": HOME,
        "Retry": "!the rollout is under way",
        "RollBackTo v0": HOME,
        "RollBackTo v1": HOME,
        "Delete": GONE,
        "PartWays": HOME,
    },
    "Promoting": {
        "Want v3": "Promoting",
        "Want v1": "Promoting",
        "Pause": "Promoting",
        "Approve": "!nothing waits for approval",
        "Abort": HOME,
        "Retry": "!the rollout is under way",
        "RollBackTo v0": "Promoting",
        "RollBackTo v1": HOME,
        "Delete": GONE,
    },
    "GoingHome": {
        "Want v3": HOME,
        "Want v1": HOME,
        "Pause": HOME,
        "Approve": "!nothing waits for approval",
        "PromoteFully": "!the rollout is on its way home",
        "Retry": HOME,
        "RollBackTo v0": HOME,
        "Delete": GONE,
    },
    "Gone": {
        "Want the same": "Founding",
        "Want v3": "Founding",
        "Want v1": "Founding",
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
    if name == "Founding":
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
        case "Watching":
            world.run_until(states.Watching)
        case "Promoting":
            world.send(messages.PromoteFully(BY))
            world.run_until(states.Promoting)
        case "GoingHome" | "Idle after v2 was taken back":
            world.run_until(states.Watching)
            world.send(messages.Abort(BY))
            if name != "GoingHome":
                world.run_until(states.Idle)
    return world


@pytest.mark.parametrize("state", TABLE)
def test_every_command_has_its_answer_in_every_state(state: str) -> None:
    for column, command in COMMANDS.items():
        world = in_state(state)
        before = world.state()
        before_name, bond = type(before).__name__, bonds.rollout_stream("shop")
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
        messages.Want("shop", SPEC, version("v3"), 3),
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
    if state != "Unknown":
        assert {each.type for each in view.conditions(world.state())} == {
            "Promoted", "Progressing", "Paused", "Stalled",
        }  # fmt: skip


def test_a_bad_verdict_sends_all_traffic_home_at_once_and_says_why() -> None:
    world = World(Habits(verdicts={"v2": BAD}))
    world.want("v1", SPEC)
    world.run_until(states.Idle)
    world.want("v2", SPEC)
    world.run_until(states.Watching)

    state = world.run_until(states.GoingHome)

    home = [event for event in world.told() if isinstance(event, told.HomeBegan)]
    assert "errors: 1 failed" in home[0].why
    assert state.book.route.share == 0
