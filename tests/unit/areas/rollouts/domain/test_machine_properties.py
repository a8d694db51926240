"""Whatever fails and whenever: weights sum to 100, and traffic ends on a healthy version."""

import datetime as dt

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.analysis.conditions import Phase
from fairlead.analysis.limits import Limits
from fairlead.areas.rollouts.domain import events, messages, states, view
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.steps import pods
from fairlead.areas.rollouts.domain.plan.strategy import Kind, Pace, Scale, Strategy
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.checks.spec import Check
from fairlead.traffic.routes import Match, Where
from fairlead.values import Percent
from tests.unit.areas.rollouts.domain.world import BAD, GOOD, START, Habits, World, refused

EXAMPLES = 25
MINUTE = dt.timedelta(minutes=1)
CHECK = Check("errors", limits=Limits(count=2, interval=dt.timedelta(seconds=20)))
STRATEGIES = {
    "steps": Strategy(steps=(Pace(Percent(10)), Pace(Percent(50), MINUTE))),
    "even": Strategy(step_weight=30, max_weight=60, promotion=(Percent(60), Percent(20))),
    "approved": Strategy(steps=(Pace(Percent(20), approve=True),), scale=Scale(2)),
    "blue/green": Strategy(kind=Kind.BLUE_GREEN, pause=MINUTE, bake=MINUTE),
    "a/b": Strategy(kind=Kind.AB, matches=(Match(Where.HEADER, "x-beta", "1"),)),
    "compared": Strategy(steps=(Pace(Percent(10)), Pace(Percent(30))), baseline=True),
    "compared, even": Strategy(
        mirror=Percent(20), step_weight=20, baseline=True, scale=Scale(1), bake=MINUTE
    ),
    "mirrored": Strategy(mirror=Percent(20), step_weight=50, bake=2 * MINUTE),
}
VERBS: tuple[messages.Command, ...] = (
    messages.Pause("ada"), messages.Resume("ada"), messages.Approve("ada"),
    messages.PromoteFully("ada"), messages.Abort("ada"), messages.Retry("ada"),
    messages.RollBackTo("v1", "ada"), messages.RollBackTo("v0", "ada"),
)  # fmt: skip
trouble = st.builds(
    Habits,
    ready_after=st.sampled_from([0.2, 3, 40]),
    lag=st.sampled_from([0.05, 0.5, 5, 60]),
    broken=st.sampled_from([frozenset[str](), frozenset({"v2"})]),
    verdicts=st.sampled_from([GOOD, BAD, Phase.INCONCLUSIVE, Phase.ERROR, None]).map(
        lambda phase: {"v2": phase}
    ),
    fail=st.sampled_from([0, 0.3]),
    vanish=st.sampled_from([0, 0.2]),
    twice=st.sampled_from([0, 0.3]),
    stale=st.sampled_from([0, 0.3]),
    crash=st.sampled_from([0, 0.02, 0.2]),
    deaf=st.booleans(),
    terse=st.booleans(),
    until=st.sampled_from([START + 10 * MINUTE, START + 40 * MINUTE]),
)
meddling = st.lists(st.tuples(st.integers(1, 600), st.integers(0, len(VERBS) + 2)), max_size=4)
sizes = st.sampled_from([1, 3, None])


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(STRATEGIES)), trouble, meddling, sizes, st.integers(0, 10_000))
def test_every_history_ends_well(
    strategy: str,
    habits: Habits,
    meddles: list[tuple[int, int]],
    size: int | None,
    seed: int,
) -> None:
    world, spec = World(habits, seed), Spec(STRATEGIES[strategy], (CHECK,))
    world.want("v0", spec, replicas=size)
    world.run_until(states.Idle)
    world.want("v1", spec, replicas=size)
    world.send(messages.PromoteFully("ada"))
    world.run(longest=1800)
    world.want("v2", spec, replicas=size)

    for seconds, what in meddles:
        world.run(longest=seconds)
        meddle(world, spec, what, size)
    world.run(longest=6 * 3600)

    check_ends_well(world)
    check_decided(world)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(STRATEGIES)),
    st.sampled_from([GOOD, BAD, Phase.INCONCLUSIVE, None]),
    st.sampled_from([(0.0, 0.0, 0.0), (0.3, 0.2, 0.3)]),
    meddling,
    st.integers(0, 10_000),
)
def test_no_request_is_lost_where_only_messages_stray(
    strategy: str,
    verdict: Phase | None,
    straying: tuple[float, float, float],
    meddles: list[tuple[int, int]],
    seed: int,
) -> None:
    fail, vanish, twice = straying
    habits = Habits(verdicts={"v2": verdict}, fail=fail, vanish=vanish, twice=twice)
    world, spec = World(habits, seed), Spec(STRATEGIES[strategy], (CHECK,))
    world.want("v1", spec)
    world.run_until(states.Idle)
    world.want("v2", spec)

    for seconds, what in meddles:
        world.run(longest=seconds)
        meddle(world, spec, what, 3)
    world.run(longest=4 * 3600)

    assert world.place("shop").hurt == []
    check_ends_well(world)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(STRATEGIES)),
    st.lists(st.tuples(st.integers(1, 400), st.integers(0, 9)), max_size=5),
    st.sampled_from([2, None]),
    meddling,
    st.integers(0, 10_000),
)
def test_a_workload_that_grows_or_is_to_sleep_in_mid_run_loses_no_request(
    strategy: str,
    growth: list[tuple[int, int]],
    size: int | None,
    meddles: list[tuple[int, int]],
    seed: int,
) -> None:
    world, spec = World(Habits(fail=0.2, twice=0.2), seed), Spec(STRATEGIES[strategy], (CHECK,))
    world.want("v1", spec, replicas=size)
    world.run_until(states.Idle)
    world.want("v2", spec, replicas=size)

    total = 2
    for seconds, more in growth:
        world.run(longest=seconds)
        total += more
        resize(world, spec, total if more else 0, autoscaled=size is None)
        world.run(longest=120)
        check_carries(world)
    for seconds, what in meddles:
        world.run(longest=seconds)
        refused(world, VERBS[what % len(VERBS)])
    world.run(longest=4 * 3600)

    assert world.place("shop").hurt == []


def resize(world: World, spec: Spec, count: int, *, autoscaled: bool) -> None:
    state = world.state()
    if not autoscaled:
        world.want(state.rollout.desired.label, spec, replicas=count)
    elif count and (side := world.place("shop").slots[Slot.PRIMARY]):
        side.ready_at += [world.now] * (count - len(side.ready_at))
        world.observe()


def check_carries(world: World) -> None:
    """A canary that has had its weight for a while has the pods that this weight needs."""
    state, place = world.state(), world.place("shop")
    if not isinstance(state, states.Analysing) or world.now < state.rollout.since + 2 * MINUTE:
        return
    step, scale = state.run.plan[state.step], state.run.spec.strategy.scale
    assert place.ready(Slot.CANARY) >= pods(scale, step.load, place_size(world))


def place_size(world: World) -> int:
    side = world.place("shop").slots[Slot.PRIMARY]
    return len(side.ready_at) if side else 1


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_a_store_lost_at_any_moment_is_rebuilt_from_the_status(strategy: str) -> None:
    spec = Spec(STRATEGIES[strategy], (CHECK,))
    # Writes follow each other within a second, so the moments must lie as close.
    for moment in range(1, 130):
        seconds = moment * 0.7
        world = World()
        world.want("v1", spec)
        world.run_until(states.Idle)
        world.want("v2", spec)
        world.run(longest=seconds)

        status = world.forget()
        world.send(messages.Adopt(status))
        world.want("v2", spec)
        world.run(longest=1800)
        refused(world, messages.Approve("ada"))
        world.run(longest=1800)

        assert isinstance(world.state(), states.Idle), (seconds, world.state())
        assert world.state().rollout.stable.revision == "v2"
        assert world.place("shop").hurt == [], seconds


def meddle(world: World, spec: Spec, what: int, size: int | None) -> None:
    """A person asks for something, another version is wanted, or the store is lost."""
    if what < len(VERBS):
        refused(world, VERBS[what])
    elif what == len(VERBS):
        wanted = world.state().rollout.desired.label
        world.send(messages.Adopt(world.forget()))
        world.want(wanted, spec, replicas=size)
    else:
        world.want(f"v{what - len(VERBS) + 1}", spec, replicas=size)


def check_ends_well(world: World) -> None:
    state = world.state()
    phase = view.phase(state)
    ends = (view.Phase.STABLE, view.Phase.ROLLED_BACK, view.Phase.PAUSED, view.Phase.STALLED,
            view.Phase.AWAITING_APPROVAL)  # fmt: skip
    assert phase in ends, (phase, view.sentence(state), world.told()[-4:])
    if phase is view.Phase.PAUSED:
        # A person may leave the reason out; whatever pauses by itself says why.
        assert state.rollout.paused.why or state.rollout.paused.by == "ada"
    place = world.place("shop")
    assert place.healthy(), (view.sentence(state), place.route)
    if isinstance(state, states.Idle):
        assert place.route[1].weight == place.route[1].split.baseline == 0
        side = place.slots[Slot.PRIMARY]
        assert side is not None
        assert side.version == state.rollout.stable


def check_decided(world: World) -> None:
    """The proxies never showed a weight that was not decided, and all weights sum to 100."""
    decided = {
        event.order: event.route
        for event in world.told()
        if isinstance(event, events.RouteRequested)
    }
    for _, order, route in world.place("shop").routes:
        assert decided[order] == route
        split = route.split
        assert split.primary + split.canary + split.baseline == 100
    began = [event for event in world.told() if isinstance(event, events.ShiftStarted)]
    highest = max((event.weight for event in began), default=0)
    assert all(route.weight <= highest for route in decided.values())
