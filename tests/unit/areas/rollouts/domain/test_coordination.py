"""Rollouts bound together: a cap on how many, and groups that go together or not at all."""

import dataclasses
import datetime as dt
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.areas.rollouts.domain import (
    coordination,
    events,
    group,
    limiter,
    messages,
    states,
    view,
)
from fairlead.areas.rollouts.domain.plan.spec import Group, Limiter, Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.checks.spec import Check
from fairlead.engine.messages import Send
from fairlead.values import Percent
from tests.unit.areas.rollouts.domain.world import BAD, START, Habits, World

STEPS = Strategy(steps=(Pace(Percent(10)), Pace(Percent(50))))
CHECK = Check("errors")
NAMES = ("a", "b", "c")


def started(spec: Spec, names: tuple[str, ...] = NAMES, habits: Habits | None = None) -> World:
    world = World(habits)
    for name in names:
        world.want(f"{name}1", spec, name)
        world.run_until(states.Idle, name)
    for name in names:
        world.want(f"{name}2", spec, name)
    return world


def under_way(world: World) -> list[str]:
    busy = states.Shifting | states.Analysing | states.Promoting | states.RollingBack
    return [name for name in NAMES if isinstance(world.state(name), busy)]


def test_no_more_rollouts_than_the_cap_are_under_way_and_all_get_their_turn() -> None:
    world = started(Spec(STEPS, (CHECK,), limiter=Limiter("shop", 2)))
    most = 0
    assert "slot of limiter shop (2 at a time)" in view.sentence(world.state("c"))

    while any(world.state(name).rollout.stable.label != f"{name}2" for name in NAMES):
        world.run(longest=1)
        most = max(most, len(under_way(world)))

    assert most == 2


def test_a_rollout_that_is_aborted_deleted_or_refused_leaves_its_place_in_the_line() -> None:
    world = started(Spec(STEPS, (CHECK,), limiter=Limiter("shop", 1)))
    assert under_way(world) == ["a"]

    world.send(messages.Abort("ada"), "b")
    world.send(messages.Delete(), "a")

    assert under_way(world) == ["c"]
    line = world.streams[coordination.limiter_stream("shop")]
    assert (line.under_way, line.waiting) == (("c",), ())


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.booleans(), st.integers(1, 3)), max_size=30
    )
)  # fmt: skip
def test_a_line_never_lets_in_more_than_its_cap_and_leaves_no_room_empty(
    said: list[tuple[str, bool, int]],
) -> None:
    line = limiter.Line()
    for rollout, claims, cap in said:
        command = coordination.Claim(rollout, cap) if claims else coordination.Release(rollout)
        before = line
        decision = limiter.decide(line, command, START)
        for event in decision.events:
            line = limiter.LIMITER.evolve(line, event)  # type: ignore[arg-type]  # all are ours

        # A cap that was lowered ends nothing that is under way.
        assert len(line.under_way) <= max(line.cap, len(before.under_way))
        assert not line.waiting or len(line.under_way) >= line.cap
        assert len({*line.under_way, *line.waiting}) == len(line.under_way) + len(line.waiting)


def test_who_asks_again_is_told_again() -> None:
    line = limiter.Line(1, ("a",))

    decision = limiter.decide(line, coordination.Claim("a", 1), START)

    assert decision.sends == (Send(coordination.rollout_stream("a"), messages.Grant()),)
    assert not limiter.decide(limiter.Line(1, ("b",), ("a",)), coordination.Claim("a", 1), START)
    assert not limiter.decide(line, coordination.Release("z"), START)


TOGETHER = Spec(STEPS, (CHECK,), group=Group("g", NAMES))


def late(*others: str) -> World:
    """Those others are at the first gate; c is under way, and held."""
    world = started(TOGETHER)
    world.send(messages.Pause("ada"), "c")
    world.run(lambda: all(world.state(name).run.gate == coordination.FULL for name in others))
    return world


def test_a_group_moves_all_traffic_together_and_is_kept_together() -> None:
    world = late("a", "b")
    world.run(longest=600)
    waiting = [world.state(name) for name in ("a", "b")]
    assert [state.rollout.route.weight for state in waiting] == [50, 50]
    assert all("waiting for group g" in view.sentence(state) for state in waiting)

    world.send(messages.Resume("ada"), "c")
    for name in NAMES:
        world.run_until(states.Idle, name)

    assert {world.state(name).rollout.outcome.ending for name in NAMES} == {events.Ending.PROMOTED}
    assert world.streams[coordination.group_stream("g")] == group.Gathering()


def test_a_member_without_a_change_holds_nobody_up() -> None:
    world = started(TOGETHER, ("a", "b"))
    world.want("c1", TOGETHER, "c")

    for name in ("a", "b"):
        world.run_until(states.Idle, name, longest=300)

    assert {world.state(name).rollout.outcome.ending for name in ("a", "b")} == {
        events.Ending.PROMOTED
    }
    assert world.state("c").rollout.stable.label == "c1"
    assert world.streams[coordination.group_stream("g")] == group.Gathering()


def test_a_change_that_comes_a_moment_later_is_waited_for() -> None:
    world = started(TOGETHER, ("a", "b"))
    world.want("c1", TOGETHER, "c")
    world.run(lambda: all(world.state(name).run.gate for name in ("a", "b")))

    world.run(longest=50)
    world.want("c2", TOGETHER, "c")
    world.send(messages.Pause("ada"), "c")
    world.run(longest=600)

    assert [world.state(name).rollout.route.weight for name in ("a", "b")] == [50, 50]
    world.send(messages.Resume("ada"), "c")
    for name in NAMES:
        world.run_until(states.Idle, name)
    assert {world.state(name).rollout.outcome.ending for name in NAMES} == {events.Ending.PROMOTED}


def test_a_change_that_comes_after_the_others_have_gone_has_a_fate_of_its_own() -> None:
    spec = dataclasses.replace(TOGETHER, strategy=dataclasses.replace(STEPS, bake=HOUR))
    world = started(spec, ("a", "b"), Habits(verdicts={"c2": BAD}))
    world.want("c1", spec, "c")
    world.run(lambda: all(world.state(name).rollout.route.weight == 100 for name in ("a", "b")))

    world.want("c2", spec, "c")

    assert world.run_until(states.Idle, "c").rollout.outcome.ending is events.Ending.ROLLED_BACK
    for name in ("a", "b"):
        ended = world.run_until(states.Idle, name).rollout.outcome
        assert ended.ending is events.Ending.PROMOTED


def test_a_group_answers_rollouts_that_go_by_another_name() -> None:
    world = World()
    names = {"a": "ns/a/1111", "b": "ns/b/2222"}
    for number in (1, 2):
        for me, name in names.items():
            spec = dataclasses.replace(TOGETHER, group=Group("g", ("a", "b"), me))
            world.want(f"{me}{number}", spec, name)
            if number == 1:
                world.run_until(states.Idle, name)

    for name in names.values():
        ended = world.run_until(states.Idle, name, longest=600).rollout.outcome
        assert ended.ending is events.Ending.PROMOTED
    assert world.streams[coordination.group_stream("g")] == group.Gathering()


def test_an_early_tick_of_a_group_sets_its_timer_again() -> None:
    waits = group.decide(
        group.Gathering(), coordination.Arrive("a", coordination.FULL, NAMES), START
    )
    state = group.Gathering()
    for event in waits.events:
        state = group.evolve(state, event)  # type: ignore[arg-type]  # all are ours

    early = group.decide(state, group.WaitOver(), START)
    in_time = group.decide(state, group.WaitOver(), START + group.MOMENT)

    assert early.timers == waits.timers
    assert in_time.sends == (
        Send(coordination.rollout_stream("a"), messages.ProceedTogether(coordination.FULL)),
    )


@pytest.mark.parametrize("bad", NAMES)
def test_one_bad_member_rolls_all_back_and_none_is_kept(bad: str) -> None:
    world = started(TOGETHER, habits=Habits(verdicts={f"{bad}2": BAD}))

    for name in NAMES:
        world.run_until(states.Idle, name)

    for name in NAMES:
        rollout = world.state(name).rollout
        assert rollout.outcome.ending is events.Ending.ROLLED_BACK
        assert rollout.stable.label == f"{name}1"
        if name != bad:
            assert f"group member {bad} rolled back" in rollout.outcome.why
        assert world.place(name).hurt == []


def test_a_member_that_fails_while_it_bakes_still_rolls_all_back() -> None:
    spec = dataclasses.replace(TOGETHER, strategy=dataclasses.replace(STEPS, bake=HOUR))
    world = started(spec)
    world.run(lambda: all(world.state(name).rollout.route.weight == 100 for name in NAMES))

    world.send(messages.Abort("ada"), "b")
    for name in NAMES:
        world.run_until(states.Idle, name, longest=120)

    assert [world.state(name).rollout.stable.label for name in NAMES] == ["a1", "b1", "c1"]


def test_a_group_that_never_gathers_rolls_back_after_its_patience() -> None:
    world = late("a", "b")

    for name in ("a", "b"):
        world.run_until(states.Idle, name, longest=4 * 3600)

    assert "did not reach" in world.state("a").rollout.outcome.why


@pytest.mark.parametrize("order", list(itertools.permutations(NAMES)))
def test_a_gate_opens_once_for_all_whatever_the_order(order: tuple[str, ...]) -> None:
    state = group.Gathering()
    sends: list[Send] = []
    for member in (*order[:2], order[0], order[2]):
        decision = group.decide(state, coordination.Arrive(member, "full", NAMES), START)
        for event in decision.events:
            state = group.GROUP.evolve(state, event)  # type: ignore[arg-type]  # all are ours
        sends += decision.sends

    assert [send.command for send in sends] == [messages.ProceedTogether("full")] * 3
    assert state == group.Gathering(parties=(order,))


HOUR = dt.timedelta(hours=1)


def test_who_is_deleted_rolls_all_back() -> None:
    world = late("a", "b")

    world.send(messages.Delete(), "b")

    for name in ("a", "c"):
        assert (
            "group member b rolled back: deleted"
            in world.run_until(states.Idle, name).rollout.outcome.why
        )


def test_who_skips_its_steps_goes_alone_and_nobody_waits_for_it() -> None:
    world = late("a", "b")

    world.send(messages.PromoteFully("ada"), "c")

    for name in NAMES:
        ended = world.run_until(states.Idle, name, longest=600).rollout.outcome
        assert ended.ending is events.Ending.PROMOTED


def test_limiter_and_group_hear_again_where_rollouts_stand_that_lost_their_store() -> None:
    spec = dataclasses.replace(TOGETHER, limiter=Limiter("shop", 3))
    world = started(spec)
    world.send(messages.Pause("ada"), "c")
    world.run(lambda: all(world.state(name).run.gate for name in ("a", "b")))

    statuses = {name: world.forget(name) for name in NAMES}
    world.streams.pop(coordination.limiter_stream("shop"))
    world.streams.pop(coordination.group_stream("g"))
    for name in NAMES:
        world.send(messages.Adopt(statuses[name]), name)

    gathering = world.streams[coordination.group_stream("g")]
    assert world.streams[coordination.limiter_stream("shop")].under_way == NAMES
    assert (gathering.under_way, gathering.arrived) == (NAMES, {coordination.FULL: ("a", "b")})


def test_a_party_that_lost_its_store_after_the_first_gate_is_still_kept_together() -> None:
    spec = dataclasses.replace(TOGETHER, strategy=dataclasses.replace(STEPS, bake=HOUR))
    world = started(spec)
    world.run(lambda: all(world.state(name).rollout.route.weight == 100 for name in NAMES))

    statuses = {name: world.forget(name) for name in NAMES}
    world.streams.pop(coordination.group_stream("g"))
    for name in NAMES:
        world.send(messages.Adopt(statuses[name]), name)
    world.send(messages.Abort("ada"), "b")

    for name in NAMES:
        ended = world.run_until(states.Idle, name).rollout.outcome
        assert ended.ending is events.Ending.ROLLED_BACK


def test_limiters_and_groups_belong_to_no_queue() -> None:
    """They bind rollouts of several clusters, and are born in the queue of none of them."""
    sends = (
        coordination.to_limiter("night", coordination.Release("a")),
        coordination.to_group("shops", coordination.Leave("a", "gone")),
    )

    assert [send.queue for send in sends] == ["", ""]
