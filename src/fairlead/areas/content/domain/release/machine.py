"""The release of a content: proposed by one person, approved by another, and then carried out.

One stream for each content, so there is one canary at a time. A version that is approved while a
canary is on its way takes its place, from a share of nobody on; an emergency release takes the
place of anything, and asks nobody but the deployment.
"""

import datetime as dt
from typing import assert_never

from fairlead import errors
from fairlead.areas.content.domain.population import NOBODY
from fairlead.areas.content.domain.release import advance, events, messages
from fairlead.areas.content.domain.release.draft import MACHINE, Draft
from fairlead.areas.content.domain.release.events import Ending, Proposal
from fairlead.areas.content.domain.release.place import Place, Versions
from fairlead.areas.content.domain.release.state import CANARY, RETURNING, Phase, Release, evolve
from fairlead.engine import machine
from fairlead.engine.messages import Cancel, Decision, StreamName

Verb = (
    messages.Approve
    | messages.Reject
    | messages.Advance
    | messages.Promote
    | messages.Pause
    | messages.Resume
    | messages.Abort
)
Answer = (
    messages.ShareConfirmed
    | messages.DeploymentReady
    | messages.DeploymentFailed
    | messages.Judged
    | messages.Wake
)
Command = messages.Propose | Verb | Answer | Cancel
"""A proposal says what runs where, so it has a door of its own, and is no verb."""

_SHARING = frozenset({Phase.CLEARING, Phase.RAISING, Phase.SETTLING, *RETURNING})
_DEPLOYING = frozenset({Phase.DEPLOYING, Phase.PROMOTING, *RETURNING})


def decide(state: Release, command: Command, now: dt.datetime) -> Decision:
    draft = Draft(state, now)
    match command:
        case messages.Propose():
            _propose(draft, command)
        case messages.Approve():
            _approve(draft, command)
        case messages.Reject(by, why):
            _reject(draft, by, why)
        case messages.Advance() | messages.Promote():
            _go_on(draft, command)
        case messages.Pause() | messages.Resume():
            _hold(draft, command)
        case messages.Abort(by, why):
            _abort(draft, by, why)
        case Cancel(reason):
            _cancel(draft, reason)
        case _:
            _answer(draft, command)
    return draft.decision()


def _answer(draft: Draft, command: Answer) -> None:
    """One that belongs to an earlier order is of a time that is over."""
    state = draft.state
    match command:
        case messages.ShareConfirmed(order):
            if order == state.order and _waits(state, messages.Timer.SHARE):
                advance.share_confirmed(draft)
        case messages.DeploymentReady(order) | messages.DeploymentFailed(order):
            if order != state.order or not _waits(state, messages.Timer.DEPLOYMENT):
                return
            if isinstance(command, messages.DeploymentReady):
                advance.ready(draft)
            else:
                advance.failed(draft, command.reason)
        case messages.Judged():
            if state.phase is Phase.BAKING:
                advance.judged(draft, command)
        case messages.Wake(timer, order):
            if order == state.order and _waits(state, timer):
                advance.woken(draft, timer)
        case unreachable:
            assert_never(unreachable)


def _waits(state: Release, timer: messages.Timer) -> bool:
    match timer:
        case messages.Timer.SHARE:
            return state.phase in _SHARING and state.share is None
        case messages.Timer.EMPTY:
            return state.phase is Phase.CLEARING and state.share == NOBODY
        case messages.Timer.DEPLOYMENT:
            return state.phase in _DEPLOYING and state.deployed != state.wanted
        case messages.Timer.BAKE | messages.Timer.CHECK:
            return state.phase is Phase.BAKING
        case unreachable:
            assert_never(unreachable)


def _propose(draft: Draft, asked: messages.Propose) -> None:
    proposal = Proposal(
        version=asked.version,
        plan=asked.plan,
        place=_kept_stable(draft.state, asked.place),
        by=asked.by,
        why=asked.why,
        emergency=asked.emergency,
        parent=asked.parent,
    )
    if proposal == draft.state.proposal:
        return
    try:
        stable = _check_proposal(draft.state, asked)
    except errors.FairleadError as error:
        if not asked.parent:
            raise
        # A plan cannot be refused: it hears of it as of an end.
        draft.state = draft.state if draft.state.name else Release(asked.name)
        draft.report(proposal, error.message)
        return
    _close(draft, asked.by, f"replaced by {asked.version}")
    draft.record(events.Proposed(asked.name, proposal, stable, draft.now))


def _kept_stable(state: Release, place: Place) -> Place:
    """What is stable stays the commit that was approved: new instances load it again."""
    if state.place is None or state.stable in place.commits:
        return place
    same = state.place.description.get("source") == place.description.get("source")
    commit = state.place.commits.get(state.stable, "")
    return place.with_commit(state.stable, commit) if commit and same else place


def _check_proposal(state: Release, asked: messages.Propose) -> str:
    """What is stable; Rejected or Conflict where the proposal makes no sense now."""
    if not asked.why.strip():
        raise errors.Rejected("no reason was given", hint="say why this version is released")
    if state.stable and asked.stable not in {"", state.stable}:
        raise errors.Conflict(
            f"{asked.name} has another stable version: {state.stable}", hint="leave it out"
        )
    stable = state.stable or asked.stable
    if not stable and not asked.emergency:
        hint = "say which version is deployed, or release the first one as an emergency release"
        raise errors.Rejected(f"stable version of {asked.name} is not known", hint=hint)
    running = state.run.proposal.version if state.run else ""
    if asked.version == running or (asked.version == stable and not running):
        what = "being released" if running else "stable"
        raise errors.Conflict(f"{asked.version} is {what} already", hint="propose another version")
    return stable


def _approve(draft: Draft, command: messages.Approve) -> None:
    state, proposal = draft.state, draft.state.proposal
    if proposal is None:
        hint = "fairlead content release propose FILE VERSION"
        raise errors.Rejected("nothing is proposed", hint=hint)
    if command.by == proposal.by:
        raise errors.Forbidden(
            f"{command.by} proposed this version and cannot approve it",
            hint="somebody else must review it",
        )
    if command.revision != proposal.revision:
        raise errors.Conflict(
            f"not the revision that waits for review: {command.revision[:80] or 'none was named'}",
            hint=f"read it, then approve its revision: fairlead get release {state.name}",
        )
    if not proposal.emergency and state.phase in {Phase.PROMOTING, *RETURNING}:
        raise errors.Rejected(
            f"another version is not done: {state.phase.value}", hint="approve it afterwards"
        )
    draft.stop()
    if state.run is not None:
        old = state.run.proposal
        told = f"superseded by {proposal.version}"
        draft.record(events.Superseded(old.version, command.by, told))
        draft.report(old, told)
    draft.record(events.Approved(proposal.version, command.by, draft.now))
    if proposal.emergency:
        draft.deploy(Versions(proposal.version))
    else:
        draft.request_share(NOBODY, f"before {proposal.version} is deployed", by=command.by)


def _reject(draft: Draft, by: str, why: str) -> None:
    if draft.state.proposal is None:
        raise errors.Rejected("nothing is proposed", hint="a run is ended by: fairlead abort")
    _close(draft, by, why or f"rejected by {by}")


def _close(draft: Draft, by: str, why: str) -> None:
    proposal = draft.state.proposal
    if proposal is not None:
        draft.record(events.ProposalClosed(proposal.version, by, why))
        draft.report(proposal, why)


def _go_on(draft: Draft, command: messages.Advance | messages.Promote) -> None:
    state = draft.state
    if state.phase is not Phase.AWAITING or state.run is None:
        raise errors.Rejected(
            f"no decision is awaited, the release is: {state.phase.value}",
            hint="wait until the step has baked, or abort it",
        )
    if state.paused:
        raise errors.Rejected(f"paused: {state.paused}", hint="resume it first")
    proposal = state.run.proposal
    if isinstance(command, messages.Advance):
        if state.step == len(proposal.plan.steps) - 1:
            raise errors.Rejected("this was the last step", hint="promote or abort it")
        advance.next_step(draft, command.by, "advanced")
        return
    if command.by == proposal.by:
        raise errors.Forbidden(
            f"{command.by} proposed this version and cannot promote it",
            hint="somebody else must review what the canary sent back",
        )
    advance.promote(draft, command.by, f"promoted by {command.by}")


def _hold(draft: Draft, command: messages.Pause | messages.Resume) -> None:
    state = draft.state
    if isinstance(command, messages.Pause):
        if state.phase not in {Phase.BAKING, Phase.AWAITING} or state.paused:
            raise errors.Rejected(
                f"nothing to pause, the release is: {shown_phase(state)}",
                hint="pause a canary that bakes or awaits a decision",
            )
        draft.record(events.Paused(command.by, command.why))
        return
    if not state.paused:
        raise errors.Rejected("not paused", hint="see fairlead get release NAME")
    draft.record(events.Resumed(command.by))
    if state.phase is Phase.BAKING:
        advance.assess(draft)


def _abort(draft: Draft, by: str, why: str) -> None:
    if draft.state.phase not in CANARY:
        raise errors.Rejected(
            f"no canary to abort, the release is: {draft.state.phase.value}",
            hint="to go back after a promotion, propose the old version as an emergency release",
        )
    advance.revert(draft, by, why or f"aborted by {by}", Ending.REVERTED)


def _cancel(draft: Draft, reason: str) -> None:
    """A plan ends what it started, and nothing that people did."""
    state, told = draft.state, reason or "cancelled"
    if state.proposal is not None and state.proposal.parent:
        _close(draft, state.proposal.parent, told)
    if state.run is not None and state.run.proposal.parent and state.phase in CANARY:
        advance.revert(draft, state.run.proposal.parent, told, Ending.REVERTED)


def addressed(stream: StreamName, command: Command) -> None:
    key = stream.partition("/")[2]
    if isinstance(command, messages.Propose) and command.name != key:
        raise errors.Rejected(
            f"{key} is told to be another content: {command.name[:80]}",
            hint="name it by the key of its stream",
        )


def shown_phase(state: Release) -> str:
    """As people see it: what waits for review is not idle."""
    if state.phase is Phase.IDLE and state.proposal is not None:
        return "Proposed"
    return "Paused" if state.paused else state.phase.value


RELEASE: machine.Machine[Release, Command, events.Event] = machine.Machine(
    name=MACHINE,
    initial=Release(),
    decide=decide,
    evolve=evolve,
    vocabulary=machine.Vocabulary(Release, Command, events.Event, messages.Effect, Verb),
    effects_in_order=True,
    attributes=machine.Attributes(
        {"phase": ("Proposed", "Paused", *(each.value for each in Phase)), "version": str},
        lambda state: {
            "phase": shown_phase(state),
            "version": state.run.proposal.version if state.run else state.stable,
        },
    ),
    addressed=addressed,
)
