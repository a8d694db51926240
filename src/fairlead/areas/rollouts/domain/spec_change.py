"""What the owner of a rollout requests, read as a level: only a difference does anything.

A run starts where the version means something else than the one desired before; replicas, the
spec and the override flag are taken in without one.
"""

from fairlead.areas.rollouts.domain import events, states
from fairlead.areas.rollouts.domain.decision_builder import DecisionBuilder
from fairlead.areas.rollouts.domain.messages import Request
from fairlead.areas.rollouts.domain.plan.spec import Version


def request(draft: DecisionBuilder, asked: Request) -> None:
    state = draft.state
    if isinstance(state, states.Unknown | states.Gone):
        _begin(draft, asked)
        return
    asleep = isinstance(state, states.Idle) and state.rollout.replicas == 0
    if asleep and asked.version.meaning != state.rollout.desired.meaning:
        # The old version does not wake up: nothing carries traffic, so the new one begins alone.
        draft.record(events.Reinitialized(asked.version, draft.now))
        if asked.replicas == 0:
            draft.ask_primary(asked.version)
    _take_spec(draft, asked)
    if asked.override != state.rollout.override:
        draft.record(events.OverrideChanged(asked.override))
    if asked.version.meaning != state.rollout.desired.meaning:
        _take_version(draft, asked)
    elif asked.override and not draft.rollout.override_spent:
        _override_running(draft)


def _begin(draft: DecisionBuilder, asked: Request) -> None:
    """From nothing, or from what runs: then the run that nobody remembers starts over."""
    first = asked.running or asked.version
    draft.record(
        events.Initialized(
            asked.name, asked.spec, first, asked.replicas, asked.generation, draft.now
        )
    )  # fmt: skip
    if first.meaning != asked.version.meaning:
        why = f"{asked.version} was requested, and no run of it is remembered"
        draft.record(events.Requested(asked.version, due=True, why=why))
    draft.ask_primary(first)


def primary_version(state: states.Known) -> Version:
    """The version that the primary holds or is to hold."""
    return state.run.target if isinstance(state, states.Promoting) else state.rollout.stable


def _take_spec(draft: DecisionBuilder, asked: Request) -> None:
    rollout = draft.rollout
    before = (rollout.spec, rollout.replicas, rollout.generation)
    if before == (asked.spec, asked.replicas, asked.generation):
        return
    draft.record(events.Respecified(asked.spec, asked.replicas, asked.generation))
    state = draft.state
    sleeps = asked.replicas == 0 and isinstance(state, states.Running)
    if asked.replicas != rollout.replicas and isinstance(state, states.Known) and not sleeps:
        draft.ask_primary(primary_version(state))


def _take_version(draft: DecisionBuilder, asked: Request) -> None:
    state, version = draft.state, asked.version
    assert isinstance(state, states.Known)
    if isinstance(state, states.Initializing) and not asked.live:
        # Nothing carries traffic: there is nobody to protect, and nothing to compare with.
        draft.record(events.Reinitialized(version, draft.now))
        draft.ask_primary(version)
        return
    override = asked.override and not draft.rollout.override_spent
    if _is_under_way(state, version):
        # A target that is rolled back says by its own template what it becomes.
        draft.record(events.Requested(version, due=False, why=f"{version} is under way"))
        if override:
            _override_running(draft)
        return
    back = version.meaning == state.rollout.stable.meaning and not isinstance(
        state, states.Promoting
    )
    by = f" by {asked.by}" if asked.by else ""
    why = f"{version} is already running" if back else f"{version} was requested{by}"
    draft.record(events.Requested(version, not back, why, override))
    match state:
        case states.Queued() | states.Shifting() | states.Analysing() if back:
            draft.start_rollback(
                f"{version}, the stable version, was requested again", events.Ending.REVERTED
            )
        case states.Queued() | states.Shifting() | states.Analysing():
            draft.start_rollback(f"{version} was requested instead", events.Ending.SUPERSEDED)
        case _:
            # During a rollback and a promotion, what is requested next waits its turn.
            pass


def _is_under_way(state: states.Known, version: Version) -> bool:
    if isinstance(state, states.RollingBack) or not isinstance(state, states.Running):
        return False
    return state.run.target.meaning == version.meaning


def _override_running(draft: DecisionBuilder) -> None:
    state = draft.state
    running = isinstance(state, states.Queued | states.Shifting | states.Analysing)
    if running and isinstance(state, states.Running) and state.run.target == state.rollout.desired:
        draft.record(events.StepsSkipped("the override flag", override=True))
