"""What people request of a rollout; every state answers: done, already done, or why not."""

import dataclasses
from typing import NoReturn, assert_never

from fairlead import errors
from fairlead.areas.rollouts.domain import events, messages, names, states
from fairlead.areas.rollouts.domain.decision_builder import DecisionBuilder
from fairlead.areas.rollouts.domain.plan.spec import Version
from fairlead.values import ALL

SteeringCommand = (
    messages.Pause
    | messages.Resume
    | messages.Approve
    | messages.PromoteFully
    | messages.Abort
    | messages.Retry
    | messages.RollBackTo
)
"""What an operator may say in the machine's own words."""

# To delete takes the role of who deploys, which only the verb's own way in asks for.
VerbCommand = SteeringCommand | messages.Delete


def obey(draft: DecisionBuilder, verb: VerbCommand) -> None:
    state = draft.state
    if isinstance(state, states.Unknown | states.Gone):
        raise errors.NotFound(
            "no such rollout", hint="deploy a version first; `fairlead get rollouts` lists them"
        )
    match verb:
        case messages.Pause():
            _pause(draft, verb)
        case messages.Resume():
            _resume(draft, verb)
        case messages.Approve():
            _approve(draft, state, verb)
        case messages.PromoteFully():
            _promote(draft, state, verb)
        case messages.Abort():
            _abort(draft, state, verb)
        case messages.Retry():
            _retry(draft, state, verb)
        case messages.RollBackTo():
            _roll_back(draft, state, verb)
        case messages.Delete():
            _delete(draft, state, verb)
        case unreachable:
            assert_never(unreachable)


def remove(draft: DecisionBuilder, by: str) -> None:
    """Gone at once: whoever owns the children collects them, and nothing is made or changed."""
    state = draft.state
    if not isinstance(state, states.Known):
        return
    if isinstance(state, states.Running):
        # Without its override: there is no object left whose flag could be reset.
        why = f"deleted by {by}" if by else "deleted"
        mark = events.RunEnded(events.Ending.ROLLED_BACK, state.run.target, why, draft.now)
        unheard = not isinstance(state, states.RollingBack)
        draft.record(dataclasses.replace(mark, unheard=unheard, spec=state.run.rules))
    if (kept := draft.rollout.follower) is not None:
        # Before the end: whoever folds events forgets the rollout with it.
        why = "the rollout was deleted"
        draft.record(events.FollowEnded(kept.stream, succeeded=False, reason=why))
    draft.record(events.Removed(draft.now, by))


def _pause(draft: DecisionBuilder, verb: messages.Pause) -> None:
    if draft.rollout.paused is None:
        draft.record(events.Paused(verb.by, verb.why, draft.now))


def _resume(draft: DecisionBuilder, verb: messages.Resume) -> None:
    if draft.rollout.paused is not None:
        draft.record(events.Resumed(verb.by, draft.now))


def _approve(draft: DecisionBuilder, state: states.Known, verb: messages.Approve) -> None:
    if not isinstance(state, states.Analysing) or not state.run.plan[state.step].approve:
        _refuse(
            "no step is waiting for approval", "`fairlead get rollout` shows what it is waiting for"
        )
    if not state.approved:
        draft.record(events.Approved(verb.by, draft.now))


def _promote(draft: DecisionBuilder, state: states.Known, verb: messages.PromoteFully) -> None:
    match state:
        case states.Queued() | states.Shifting() | states.Analysing():
            if not state.run.skip_steps:
                draft.record(events.StepsSkipped(verb.by))
            if isinstance(state, states.Shifting) and state.step != state.run.last:
                draft.begin_move(state.run.last)
            if state.rollout.paused is not None:
                draft.record(events.Resumed(verb.by, draft.now))
        case states.Promoting():
            # It is being promoted as it is; a pause of it ends.
            if state.rollout.paused is not None:
                draft.record(events.Resumed(verb.by, draft.now))
        case states.RollingBack():
            _refuse("the rollout is rolling back", "retry it when the rollback is done")
        case states.Initializing() | states.Idle():
            _refuse("no rollout in progress", "deploy another version, or retry the last one")
        case unreachable:
            assert_never(unreachable)


def _abort(draft: DecisionBuilder, state: states.Known, verb: messages.Abort) -> None:
    match state:
        case states.Queued() | states.Shifting() | states.Analysing():
            draft.start_rollback(_aborted(verb))
        case states.Promoting():
            _undo_promotion(draft, state, _aborted(verb))
        case states.RollingBack():
            pass
        case states.Initializing():
            _refuse(
                "the initial rollout has no earlier version", "deploy another one, or delete it"
            )
        case states.Idle():
            _refuse("no rollout in progress", "to undo a finished one, roll back to a revision")
        case unreachable:
            assert_never(unreachable)


def _aborted(verb: messages.Abort) -> str:
    return f"aborted by {verb.by}: {verb.why}" if verb.why else f"aborted by {verb.by}"


def _undo_promotion(draft: DecisionBuilder, state: states.Promoting, why: str) -> None:
    """While the canary has all traffic the primary may become the old version again.

    Once traffic is back on the new primary it must not be changed under it: the promotion ends,
    and the old version comes back through the canary's slot, without steps.
    """
    rollout = state.rollout
    pending = events.PendingRun(rollout.stable, why, skip_steps=True)
    if rollout.route.weight == ALL:
        draft.start_rollback(why)
    elif rollout.due != pending:
        draft.record(events.RunDue(pending))


def _retry(draft: DecisionBuilder, state: states.Known, verb: messages.Retry) -> None:
    desired = state.rollout.desired
    why = f"retried by {verb.by}"
    match state:
        case states.RollingBack():
            if state.rollout.due is None:
                draft.record(events.RunDue(events.PendingRun(state.run.target, why)))
        case states.Idle() if desired.meaning != state.rollout.stable.meaning:
            draft.record(events.RunDue(events.PendingRun(desired, why)))
        case states.Initializing() | states.Idle():
            _refuse(
                "nothing to retry: the desired version is running",
                "deploy another version to start a rollout",
            )
        case states.Queued() | states.Shifting() | states.Analysing() | states.Promoting():
            _refuse("the rollout is in progress", "abort it first, or promote it")
        case unreachable:
            assert_never(unreachable)


def _roll_back(draft: DecisionBuilder, state: states.Known, verb: messages.RollBackTo) -> None:
    rollout = state.rollout
    if isinstance(state, states.Initializing):
        _refuse("the initial rollout has no earlier version", "deploy another one, or delete it")
    version = _kept(rollout, verb.revision) if verb.revision else _last_good(state)
    why = f"rolled back to {version} by {verb.by}"
    under_way = isinstance(state, states.Queued | states.Shifting | states.Analysing)
    if version == rollout.stable and not isinstance(state, states.Promoting):
        if under_way:
            draft.start_rollback(why)
        elif isinstance(state, states.Idle):
            _refuse(f"already running: {version}", "name an earlier revision")
        return
    if isinstance(state, states.Promoting) and version == rollout.stable:
        _undo_promotion(draft, state, why)
        return
    draft.record(events.RunDue(events.PendingRun(version, why, skip_steps=True)))
    if under_way:
        draft.start_rollback(why, events.Ending.SUPERSEDED)


def _last_good(state: states.Known) -> Version:
    """Of a rollout in progress the stable version, of one at rest the one before it."""
    rollout = state.rollout
    if not isinstance(state, states.Idle):
        return rollout.stable
    kept = ", ".join(version.revision for version in rollout.kept) or "none"
    if rollout.desired.meaning != rollout.stable.meaning:
        # A newer one was rolled back, by itself or by a person: what is next is no longer clear.
        _refuse(
            f"already rolled back to: {rollout.stable}", f"name a revision that is kept: {kept}"
        )
    if not rollout.kept:
        _refuse("no earlier version is kept", "deploy another one, or delete it")
    return rollout.kept[0]


def _delete(draft: DecisionBuilder, state: states.Known, verb: messages.Delete) -> None:
    name = state.rollout.name
    if names.is_of_cluster(name):
        namespace, _, called = names.title(name).partition("/")
        _refuse(
            f"the rollout belongs to an object of Kubernetes: {called}",
            f"delete the object with kubectl, in the namespace {namespace}",
        )
    remove(draft, verb.by)


def _kept(rollout: states.RolloutRecord, revision: str) -> Version:
    for version in (rollout.stable, *rollout.kept):
        if revision in (version.revision, version.label):
            return version
    known = ", ".join(map(_known, rollout.kept)) or "none"
    raise errors.NotFound(
        f"no such kept revision: {revision[:80]}", hint=f"kept revisions: {known}"
    )


def _known(version: Version) -> str:
    """As `get` shows it."""
    return f"{version.revision} ({version.label})" if version.label else version.revision


def _refuse(message: str, hint: str) -> NoReturn:
    raise errors.Rejected(message, hint=hint)
