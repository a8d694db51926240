"""The checks of one place: which are due, what they have told, and when they are done."""

import datetime as dt
from collections.abc import Sequence

from fairlead.domain.analysis import limits
from fairlead.domain.analysis.conditions import Phase
from fairlead.domain.analysis.limits import MetricStanding, Standing, Tally
from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import states
from fairlead.domain.rollouts.draft import Draft
from fairlead.domain.rollouts.messages import Finding
from fairlead.domain.rollouts.spec import Check, Source, When

OVERDUE = dt.timedelta(minutes=1)
"""A round that was not answered by then was lost, and is asked for again."""

NEVER_ALONE = 1


def at_place(state: states.Queued | states.Watching) -> tuple[Check, ...]:
    """The checks that stand here."""
    run = state.run
    if run.straight:
        return ()
    if isinstance(state, states.Queued):
        wanted = {When.START}
    else:
        before_full = max(run.last - 1, 0)
        wanted = {When.STEP, When.PROMOTION} if state.step == before_full else {When.STEP}
    return tuple(check for check in run.spec.checks if check.when in wanted)


def conclusion(
    checks: Sequence[Check], inquiry: states.Inquiry, *, ending: bool = False
) -> Standing:
    """How all of them stand together; `ending` says that the time of this place is over."""
    return limits.conclude([standing(check, inquiry, ending=ending) for check in checks])


def standing(check: Check, inquiry: states.Inquiry, *, ending: bool) -> MetricStanding:
    tally = inquiry.tallies.get(check.name, Tally())
    # A check without an end ends with its place, but not before it has told something.
    over = ending and check.limits.most is None and tally.count >= NEVER_ALONE
    stands = limits.stand(check.limits, tally, ending=over)
    told_last = inquiry.told.get(check.name)
    reason = f"{stands.reason}; {told_last}" if told_last else stands.reason
    return MetricStanding(check.name, Standing(stands.phase, reason), check.dry_run)


def next_due(
    checks: Sequence[Check], inquiry: states.Inquiry
) -> tuple[tuple[str, ...], dt.datetime] | None:
    """Which checks are asked next and when, or None if all are done."""
    if inquiry.asked is not None:
        names = tuple(check.name for check in checks if _due(check, inquiry) is not None)
        return (names, inquiry.asked + OVERDUE) if names else None
    moments = {check.name: _due(check, inquiry) for check in checks}
    first = min((at for at in moments.values() if at is not None), default=None)
    if first is None:
        return None
    return tuple(name for name, at in moments.items() if at is not None and at <= first), first


def ask_if_due(draft: Draft, state: states.Queued | states.Watching) -> None:
    """Ask for a round if one is due; those due within this moment go together."""
    checks = at_place(state)
    due = next_due(checks, state.inquiry)
    if due is None or due[1] > draft.now:
        return
    names = due[0]
    if state.inquiry.asked is None:
        late = {check.name: _due(check, state.inquiry) for check in checks}
        names = tuple(name for name, at in late.items() if at is not None and at <= draft.now)
    draft.tell(told.MeasureAsked(state.book.serial + 1, names, draft.now))


def answer(draft: Draft, ticket: int, findings: Sequence[Finding]) -> None:
    """Take the answers to the round that is open; any other round's are old news."""
    state = draft.state
    if not isinstance(state, states.Queued | states.Watching):
        return
    if state.inquiry.asked is None or state.inquiry.ticket != ticket:
        return
    names = {check.name for check in at_place(state)}
    heard = tuple(finding for finding in findings if finding.check in names)
    draft.tell(told.Measured(ticket, heard, draft.now))


def _due(check: Check, inquiry: states.Inquiry) -> dt.datetime | None:
    tally = inquiry.tallies.get(check.name, Tally())
    measured = inquiry.measured.get(check.name)
    if measured is not None and tally.last is None:
        # Asked, and there was nothing to count: a closed gate, or no data yet.
        return measured + (check.limits.interval or limits.RETRY_AFTER_ERROR)
    if check.source is Source.GATE and tally.last is Phase.FAILED:
        return None
    return limits.next_due(check.limits, tally, inquiry.started, measured)
