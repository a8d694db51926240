"""What a run does by itself: each answer of the world, and each timer, leads to the next part.

CLEARING ──► DEPLOYING ──► RAISING ⇄ BAKING ──► (AWAITING) ──► PROMOTING ──► SETTLING ──► IDLE
                 │             any of them ──► REVERTING ──► IDLE     │
                 └──────────────► RESTORING ──► IDLE ◄────────────────┘
"""

from typing import assert_never

from fairlead.analysis.limits import Action, asked
from fairlead.areas.content.domain.population import NOBODY, shown_share
from fairlead.areas.content.domain.release import analysis, events, messages
from fairlead.areas.content.domain.release.draft import FAIRLEAD, SHARE_PATIENCE, TRY_AGAIN, Draft
from fairlead.areas.content.domain.release.events import Ending
from fairlead.areas.content.domain.release.messages import Timer
from fairlead.areas.content.domain.release.place import Versions
from fairlead.areas.content.domain.release.state import RETURNING, Phase
from fairlead.checks.spec import judgements
from fairlead.engine.messages import Withdraw


def share_confirmed(draft: Draft) -> None:
    draft.record(events.ShareSet(draft.state.asked_share, draft.now))
    draft.forget(Timer.SHARE)
    match draft.state.phase:
        case Phase.CLEARING:
            _deploy_canary(draft)
        case Phase.BAKING:
            bake = draft.run.proposal.plan.steps[draft.state.step].bake
            draft.wake(Timer.BAKE, draft.now + bake)
            assess(draft)
        case Phase.SETTLING:
            draft.record(events.Settled())
        case _:
            _end_return(draft)


def ready(draft: Draft) -> None:
    assert draft.state.wanted is not None
    draft.record(events.Deployed(draft.state.wanted))
    draft.forget(Timer.DEPLOYMENT)
    _deployed(draft)


def failed(draft: Draft, reason: str) -> None:
    if draft.state.phase in RETURNING:
        draft.record(events.Stalled(f"not restored yet: {reason}"))
        draft.wake(Timer.DEPLOYMENT, draft.now + TRY_AGAIN)
    else:
        revert(draft, FAIRLEAD, f"deployment failed: {reason}", Ending.DEPLOYMENT_FAILED)


def woken(draft: Draft, timer: Timer) -> None:
    match timer:
        case Timer.SHARE:
            draft.record(events.Stalled("the share is not set yet: fairlead outbox list says why"))
            if draft.state.phase in RETURNING and draft.state.deployed != draft.state.wanted:
                # Effects go one at a time, and this one would hold up the deployment for ever.
                draft.withdraws.append(Withdraw(messages.SetShare))
                draft.ask_share()
                draft.forget(Timer.SHARE)
                draft.wake(Timer.DEPLOYMENT, draft.now + TRY_AGAIN)
        case Timer.DEPLOYMENT if draft.state.phase in RETURNING:
            draft.record(events.Stalled("not restored yet: new instances are not ready"))
            draft.withdraws.append(Withdraw(messages.Deploy))
            draft.ask_deployment()
            if draft.state.share is None:
                draft.wake(Timer.SHARE, draft.now + SHARE_PATIENCE)
        case Timer.DEPLOYMENT:
            failed(draft, "new instances did not become ready in time")
        case Timer.EMPTY:
            _deploy_canary(draft)
        case Timer.BAKE | Timer.CHECK:
            assess(draft)
        case unreachable:
            assert_never(unreachable)


def judged(draft: Draft, answer: messages.Judged) -> None:
    round_ = draft.state.round
    if round_ is None or not round_.asked or round_.ticket != answer.ticket:
        return
    draft.record(events.Measured(answer.ticket, answer.findings, draft.now))
    assess(draft)


def assess(draft: Draft) -> None:
    """At a step: measure what is due, and go on, wait or revert by what was measured."""
    state, plan = draft.state, draft.run.proposal.plan
    assert state.round is not None
    checks, ends = plan.at(state.step), state.round.started + plan.steps[state.step].bake
    stands = analysis.conclusion(checks, state.round, over=draft.now >= ends)
    action = asked(stands.phase)
    if action is Action.ABORT:
        revert(draft, FAIRLEAD, stands.reason, Ending.REVERTED)
    elif action is not None and draft.now >= ends and not state.round.asked:
        if not state.paused:
            _pass_step(draft, stands.reason, unclear=action is Action.PAUSE)
    else:
        _measure(draft)


def next_step(draft: Draft, by: str, why: str) -> None:
    step = draft.state.step + 1
    share = draft.run.proposal.plan.steps[step].share
    draft.request_share(share, why, step=step, by=by)


def promote(draft: Draft, by: str, why: str) -> None:
    """Stable first; the share goes to nobody only when no instance has the old version."""
    draft.stop()
    draft.record(events.PromotionStarted(by, why))
    draft.deploy(Versions(draft.run.proposal.version))


def revert(draft: Draft, by: str, why: str, ending: Ending) -> None:
    draft.stop()
    draft.record(events.RevertStarted(ending, by, why))
    if draft.state.stable:
        draft.clear()
    else:
        # The first version ever could not be served: there is nothing to go back to.
        _end(draft)


def _deploy_canary(draft: Draft) -> None:
    """An instance that starts with a new canary must not find the share of the one before."""
    emptied = draft.state.emptied
    due = draft.now if emptied is None else emptied + draft.place.share_delay
    if due > draft.now:
        draft.wake(Timer.EMPTY, due)
    else:
        draft.deploy(Versions(draft.state.stable, draft.run.proposal.version))


def _deployed(draft: Draft) -> None:
    state = draft.state
    match state.phase:
        case Phase.DEPLOYING:
            first = draft.run.proposal.plan.steps[0].share
            why = f"canary {draft.run.proposal.version} is deployed"
            draft.request_share(first, why, step=0)
        case Phase.PROMOTING:
            proposal = draft.run.proposal
            draft.record(events.Promoted(proposal.version, state.by, state.why, draft.now))
            draft.report(proposal, f"promoted: {state.why}", succeeded=True)
            draft.request_share(NOBODY, f"{proposal.version} is stable")
        case _:
            _end_return(draft)


def _end_return(draft: Draft) -> None:
    """Over when both are done, in whichever order."""
    state = draft.state
    if state.phase in RETURNING and state.share == NOBODY and state.deployed == state.wanted:
        _end(draft)
    elif state.share is None:
        draft.wake(Timer.SHARE, draft.now + SHARE_PATIENCE)


def _end(draft: Draft) -> None:
    proposal, why = draft.run.proposal, draft.state.why
    draft.record(events.Reverted(proposal.version, draft.now))
    draft.report(proposal, why)


def _pass_step(draft: Draft, reason: str, *, unclear: bool) -> None:
    state, plan = draft.state, draft.run.proposal.plan
    share = f"{shown_share(plan.steps[state.step].share)} %"
    if unclear:
        draft.record(events.DecisionAwaited(f"inconclusive at {share}: {reason}"))
    elif plan.asks_person(state.step):
        draft.record(events.DecisionAwaited(f"{share} has baked; a person decides"))
    elif state.step < len(plan.steps) - 1:
        next_step(draft, FAIRLEAD, f"{share} has baked: {reason}")
    else:
        promote(draft, FAIRLEAD, reason)


def _measure(draft: Draft) -> None:
    state, plan = draft.state, draft.run.proposal.plan
    assert state.round is not None
    assert state.deployed is not None
    moments = analysis.due(plan.at(state.step), state.round)
    ready = tuple(name for name, at in moments.items() if at <= draft.now)
    if ready and not state.round.asked:
        ticket = state.round.ticket + 1
        draft.record(events.MeasurementRequested(ticket, ready))
        step = plan.steps[state.step]
        draft.effects.append(
            messages.Measure(
                name=state.name,
                ticket=ticket,
                checks=tuple(each for each in plan.checks if each.name in ready),
                versions=state.deployed,
                share=step.share,
                since=state.round.started,
                bake=step.bake,
                steps=judgements(plan.checks, len(plan.steps)),
            )
        )
    later = [at for at in moments.values() if at > draft.now]
    # A timer that rang while a round is open sets no other: its answer does.
    if later and draft.events:
        draft.wake(Timer.CHECK, min(later))
