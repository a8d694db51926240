"""The checks of one place: which are due, what they measured, and when they are done."""

import datetime as dt
from collections.abc import Sequence

from fairlead.analysis import limits
from fairlead.analysis.conditions import Phase
from fairlead.analysis.limits import MetricStanding, Standing, Tally
from fairlead.areas.rollouts.domain import events, messages, states
from fairlead.areas.rollouts.domain.decision_builder import DecisionBuilder
from fairlead.checks.spec import Check, CheckKind, When

OVERDUE = dt.timedelta(minutes=1)
"""A round that was not answered by then was lost, and is asked for again."""

NEVER_ALONE = 1


def at_place(state: states.Queued | states.Analysing) -> tuple[Check, ...]:
    """The checks that stand here."""
    run = state.run
    if run.skip_steps:
        return ()
    if isinstance(state, states.Queued):
        wanted = {When.START}
    else:
        before_full = max(run.last - 1, 0)
        wanted = {When.STEP, When.PROMOTION} if state.step == before_full else {When.STEP}
    return tuple(check for check in run.spec.checks if check.when in wanted)


def conclusion(
    checks: Sequence[Check], current: states.CheckRound, *, ending: bool = False
) -> Standing:
    """How all of them stand together; `ending` says that the time of this place is over."""
    return limits.conclude([standing(check, current, ending=ending) for check in checks])


def standing(check: Check, current: states.CheckRound, *, ending: bool) -> MetricStanding:
    tally = current.tallies.get(check.name, Tally())
    # A check without a count ends with its place, but not before its first measurement.
    over = ending and check.limits.most is None and tally.count >= NEVER_ALONE
    stands = limits.stand(check.limits, tally, ending=over)
    last = current.reasons.get(check.name)
    if last:
        # What kept the first measurement from deciding says more than that there was none.
        told = last if stands.phase is Phase.PENDING else f"{stands.reason}; {last}"
        stands = Standing(stands.phase, told)
    return MetricStanding(check.name, stands, check.dry_run)


def next_due(
    checks: Sequence[Check], current: states.CheckRound
) -> tuple[tuple[str, ...], dt.datetime] | None:
    """Which checks are asked next and when, or None if all are done."""
    if current.asked is not None:
        names = tuple(check.name for check in checks if _due(check, current) is not None)
        return (names, current.asked + OVERDUE) if names else None
    moments = {check.name: _due(check, current) for check in checks}
    first = min((at for at in moments.values() if at is not None), default=None)
    if first is None:
        return None
    return tuple(name for name, at in moments.items() if at is not None and at <= first), first


def ask_if_due(draft: DecisionBuilder, state: states.Queued | states.Analysing) -> None:
    """Ask for a round if one is due; those due within this moment go together."""
    checks = at_place(state)
    due = next_due(checks, state.round)
    if due is None or due[1] > draft.now:
        return
    names = due[0]
    if state.round.asked is None:
        late = {check.name: _due(check, state.round) for check in checks}
        names = tuple(name for name, at in late.items() if at is not None and at <= draft.now)
    draft.record(events.MeasurementRequested(state.rollout.serial + 1, names, draft.now))


def answer(draft: DecisionBuilder, judged: messages.Judged) -> None:
    """Take the answers to the round that is open; any other round's are old news."""
    state = draft.state
    if not isinstance(state, states.Queued | states.Analysing):
        return
    if state.round.asked is None or state.round.ticket != judged.ticket:
        return
    names = {check.name for check in at_place(state)}
    heard = tuple(finding for finding in judged.findings if finding.check in names)
    draft.record(events.Measured(judged.ticket, heard, draft.now, judged.traffic))


def _due(check: Check, current: states.CheckRound) -> dt.datetime | None:
    tally = current.tallies.get(check.name, Tally())
    measured = current.measured.get(check.name)
    if measured is not None and tally.last is None:
        # Asked, and there was nothing to count: a closed gate, or no data yet.
        return measured + (check.limits.interval or limits.RETRY_AFTER_ERROR)
    if check.kind is CheckKind.GATE and tally.last is Phase.FAILED:
        return None
    return limits.next_due(check.limits, tally, current.started, measured)
