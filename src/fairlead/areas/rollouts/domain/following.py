"""A rollout as a step of a plan: the step asks for a version, and hears how that one ends.

Whether the version is still on its way is read from the state after each decision, so no way that
a run may end can be forgotten: promoted, rolled back, superseded, reverted, deleted.
"""

from typing import assert_never

from fairlead.areas.rollouts.domain import events, messages, spec_change, states, verbs
from fairlead.areas.rollouts.domain.decision_builder import DecisionBuilder
from fairlead.areas.rollouts.domain.plan.spec import Version


def take(
    draft: DecisionBuilder, command: messages.Follow | messages.FallAsleep | messages.Abandon
) -> None:
    match command:
        case messages.Follow():
            _follow(draft, command)
        case messages.FallAsleep(follower):
            _fall_asleep(draft, follower)
        case messages.Abandon(follower, why):
            _abandon(draft, follower, why)
        case unreachable:
            assert_never(unreachable)


def settle(draft: DecisionBuilder) -> None:
    """Tell who follows once its version is no longer on its way; a deletion has told it already."""
    state = draft.state
    if isinstance(state, states.Unknown | states.Gone):
        return
    kept = state.rollout.follower
    if kept is None or _on_its_way(state, kept.version):
        return
    reached = _same(state.rollout.stable, kept.version)
    if reached:
        nothing = draft.rollout.replicas == 0
        reason = "nothing runs any more" if nothing else f"{kept.version} has all traffic"
    else:
        reason = _why_not(state, kept.version)
    draft.record(events.FollowEnded(kept.stream, reached, reason))


def _follow(draft: DecisionBuilder, command: messages.Follow) -> None:
    asked = command.request
    spec_change.request(draft, asked)
    if _is_new(draft, command.follower):
        _try_again(draft, asked)
        draft.record(events.Followed(command.follower, asked.version))


def _fall_asleep(draft: DecisionBuilder, follower: str) -> None:
    """What is on its way is given up: it would run beside a database that changes under it."""
    state = draft.state
    if isinstance(state, states.Unknown | states.Gone) or not _is_new(draft, follower):
        return
    draft.record(events.Followed(follower, state.rollout.stable))
    same = (state.rollout.spec, state.rollout.generation)
    draft.record(events.Respecified(same[0], 0, same[1]))
    match state:
        case states.Queued() | states.Shifting() | states.Analysing() | states.Promoting():
            verbs.obey(draft, messages.Abort(follower, "it must not run during a migration"))
        case states.Initializing() | states.Idle():
            draft.ask_primary(state.rollout.stable)
        case states.RollingBack():
            pass  # asked for once the rollback is over


def _abandon(draft: DecisionBuilder, follower: str, why: str) -> None:
    """Only its own version, and only while that is on its way; nothing else is disturbed."""
    state = draft.state
    if isinstance(state, states.Unknown | states.Gone):
        return
    kept = state.rollout.follower
    if kept is None or kept.stream != follower:
        return
    mine = isinstance(state, states.Running) and _same(state.run.target, kept.version)
    if mine and not isinstance(state, states.RollingBack):
        verbs.obey(draft, messages.Abort(follower, why))
    elif not mine:
        # It waits for another run's end, or has no earlier version to go back to.
        draft.record(events.FollowEnded(follower, succeeded=False, reason=why))


def _is_new(draft: DecisionBuilder, follower: str) -> bool:
    """Whether it did not follow before; who did makes room for it."""
    before = draft.rollout.follower
    if before is not None and before.stream == follower:
        return False
    if before is not None:
        ended = events.FollowEnded(
            before.stream, succeeded=False, reason="another plan took its place"
        )
        draft.record(ended)
    return True


def _try_again(draft: DecisionBuilder, asked: messages.Request) -> None:
    """A plan that asks for what was rolled back means it: nothing else would make it a new run."""
    state = draft.state
    if not isinstance(state, states.Idle | states.RollingBack) or state.rollout.due is not None:
        return
    if _same(state.rollout.stable, asked.version):
        return
    why = f"{asked.version} was requested again by {asked.by or 'a plan'}"
    draft.record(events.RunDue(events.PendingRun(asked.version, why)))


def _on_its_way(state: states.Known, version: Version) -> bool:
    rollout = state.rollout
    if rollout.due is not None and _same(rollout.due.version, version):
        return True
    match state:
        case states.Initializing():
            return _same(rollout.stable, version)
        case states.RollingBack() if _same(rollout.stable, version):
            # It is asked for again, and has all traffic once the other one gave its weight back.
            return True
        case states.Idle():
            return rollout.replicas == 0 and not _asleep(rollout)
        case _:
            return _same(state.run.target, version)


def _asleep(rollout: states.RolloutRecord) -> bool:
    """Whether its pods were observed to be gone after that was asked for."""
    pods, ask = (rollout.observed.primary if rollout.observed else None), rollout.primary
    if pods is None or ask is None:
        return pods is None
    return ask.replicas == 0 and pods.order >= ask.order and pods.ready == 0


def _why_not(state: states.Known, version: Version) -> str:
    outcome = state.rollout.outcome
    if outcome is None or not _same(outcome.target, version):
        return f"{state.rollout.desired} was requested instead"
    if outcome.ending is events.Ending.ROLLED_BACK:
        return f"rolled back: {outcome.why}"
    return outcome.why


def _same(one: Version, other: Version) -> bool:
    return one.meaning == other.meaning
