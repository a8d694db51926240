"""A rollout that a step of a plan follows: it hears of the version's end, whatever that is."""

from typing import Any

import pytest

from fairlead.areas.rollouts.domain import messages, plan_step, states
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.checks.spec import Check
from fairlead.engine.messages import Cancel
from fairlead.values import Percent
from tests.unit.areas.rollouts.domain.world import BAD, Habits, World, version

SPEC = Spec(Strategy(steps=(Pace(Percent(10)), Pace(Percent(50)))), (Check("errors"),))
STEP = plan_step.stream("d1")


def stepped(world: World, name: str, key: str = "d1", **more: Any) -> None:
    """A step that applied its version, as its machine begins it."""
    world.submit(plan_step.stream(key), plan_step.StartStep(key, "shop", "file", **more))
    request = messages.Request("shop", SPEC, version(name), 3, by="a plan")
    world.submit(plan_step.stream(key), plan_step.Applied(request))


def outcome(world: World, key: str = "d1") -> plan_step.Ended | None:
    state = world.streams[plan_step.stream(key)]
    return state if isinstance(state, plan_step.Ended) else None


def live(world: World, name: str = "v1") -> None:
    world.want(name, SPEC)
    world.run_until(states.Idle)


def test_the_first_version_ends_its_step_when_it_has_traffic() -> None:
    world = World()
    stepped(world, "v1")
    before = outcome(world)

    world.run_until(states.Idle)

    assert before is None
    assert outcome(world) == plan_step.Ended(succeeded=True, reason="v1 has all traffic")


def test_a_promoted_version_ends_its_step_well() -> None:
    world = World()
    live(world)
    stepped(world, "v2")
    world.run_until(states.Promoting)
    before = outcome(world)

    world.run_until(states.Idle)

    assert before is None
    assert outcome(world) == plan_step.Ended(succeeded=True, reason="v2 has all traffic")
    assert world.state().rollout.follower is None


def test_one_that_is_rolled_back_fails_it_with_the_reason_once_traffic_is_back() -> None:
    world = World(Habits(verdicts={"v2": BAD}))
    live(world)
    stepped(world, "v2")
    world.run_until(states.RollingBack)
    before = outcome(world)

    world.run_until(states.Idle)
    told = outcome(world)

    assert before is None
    assert told is not None
    assert not told.succeeded
    assert told.reason.startswith("rolled back: ")
    assert "errors: 1 of 1 measurement failed" in told.reason


def test_one_that_was_rolled_back_before_is_tried_again() -> None:
    world = World(Habits(verdicts={"v2": BAD}))
    live(world)
    stepped(world, "v2")
    world.run_until(states.Idle)
    world.habits.verdicts.clear()

    stepped(world, "v2", "d2")
    world.run_until(states.Idle)

    assert outcome(world, "d2") == plan_step.Ended(succeeded=True, reason="v2 has all traffic")


def test_what_runs_already_is_done_at_once() -> None:
    world = World()
    live(world)

    stepped(world, "v1")

    assert outcome(world) == plan_step.Ended(succeeded=True, reason="v1 has all traffic")


def test_another_version_by_hand_fails_the_step() -> None:
    world = World()
    live(world)
    stepped(world, "v2")
    world.run_until(states.Analysing)

    world.want("v3", SPEC)
    world.run(lambda: outcome(world) is not None)

    assert outcome(world) == plan_step.Ended(succeeded=False, reason="v3 was requested instead")


def test_an_abort_and_a_delete_fail_it() -> None:
    for command, said in (
        (messages.Abort("ann", "looks wrong"), "rolled back: aborted by ann: looks wrong"),
        (messages.Delete("ann"), "the rollout was deleted"),
    ):
        world = World()
        live(world)
        stepped(world, "v2")
        world.run_until(states.Analysing)

        world.send(command)
        if not isinstance(world.state(), states.Gone):
            world.run_until(states.Idle)

        assert outcome(world) == plan_step.Ended(succeeded=False, reason=said)


def test_a_second_plan_takes_the_place_of_the_first() -> None:
    world = World()
    live(world)
    stepped(world, "v2")
    world.run_until(states.Analysing)

    stepped(world, "v2", "d2")
    first = outcome(world)
    world.run_until(states.Idle)

    assert first == plan_step.Ended(succeeded=False, reason="another plan took its place")
    assert outcome(world, "d2") == plan_step.Ended(succeeded=True, reason="v2 has all traffic")


@pytest.mark.parametrize("where", [states.Shifting, states.Analysing, states.Promoting])
def test_a_cancelled_step_gives_its_version_up(where: type) -> None:
    world = World()
    live(world)
    stepped(world, "v2")
    world.run_until(where)

    world.submit(STEP, Cancel("terminated by ann"))
    world.submit(STEP, Cancel("told twice"))
    world.run_until(states.Idle)

    told = outcome(world)
    assert told is not None
    if told.succeeded:
        # Traffic was on its way back to a primary that is the new version already.
        assert where is states.Promoting
    else:
        assert "terminated by ann" in told.reason
        assert world.state().rollout.stable.revision == "v1"


def test_a_cancel_touches_no_other_version() -> None:
    world = World(Habits(verdicts={"v2": BAD}))
    live(world)
    stepped(world, "v2")
    world.run_until(states.Analysing)
    world.want("v3", SPEC)
    world.run_until(states.Analysing)

    world.submit(STEP, Cancel("terminated"))
    world.run_until(states.Idle)

    assert world.state().rollout.stable.revision == "v3"


def test_a_cancel_before_the_first_version_is_live_leaves_it_alone_and_ends_the_step() -> None:
    world = World()
    stepped(world, "v1")

    world.submit(STEP, Cancel("terminated"))

    assert outcome(world) == plan_step.Ended(succeeded=False, reason="terminated")
    world.run_until(states.Idle)


@pytest.mark.parametrize("where", [states.Idle, states.Analysing, states.RollingBack])
def test_asleep_is_told_when_nothing_runs_any_more(where: type) -> None:
    world = World(Habits(verdicts={"v2": BAD} if where is states.RollingBack else {}))
    live(world)
    if where is not states.Idle:
        world.want("v2", SPEC)
        world.run_until(where)

    world.submit(STEP, plan_step.StartStep("d1", "shop", "file", asleep=True))
    before = outcome(world)
    world.run_until(states.Idle)
    world.run(longest=60)

    assert before is None
    assert outcome(world) == plan_step.Ended(succeeded=True, reason="nothing runs any more")
    slots = world.place("shop").slots
    primary = slots[Slot.PRIMARY]
    assert primary is not None
    assert not primary.ready_at
    assert slots.get(Slot.CANARY) is None


def test_from_sleep_the_new_version_begins_and_the_old_one_never_wakes() -> None:
    world = World()
    live(world)
    world.submit(STEP, plan_step.StartStep("d1", "shop", "file", asleep=True))
    world.run(longest=60)
    at = len(world.effects)

    stepped(world, "v2", "d2")
    world.run_until(states.Idle)

    ensured = [each for each in world.effects[at:] if isinstance(each, messages.EnsureVersion)]
    assert {each.version.revision for each in ensured} == {"v2"}
    assert outcome(world, "d2") == plan_step.Ended(succeeded=True, reason="v2 has all traffic")
