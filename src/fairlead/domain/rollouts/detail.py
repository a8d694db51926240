"""Everything about one rollout for those who look at it closely: plan, checks, history, verbs."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlead.domain.analysis.conditions import Phase
from fairlead.domain.rollouts import choices, chronicle, inquiry, rows, states, steps
from fairlead.domain.rollouts.events import Ending
from fairlead.domain.rollouts.spec import Check, Source, Spec

WAITING = "Waiting"
"""Of a check that has not told anything yet."""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step of the plan, and how far it is."""

    number: int
    share: int
    state: str
    """done, moving, here, ahead, skipped, or stopped where the run was given up."""

    pause_seconds: float = 0
    approve: bool = False
    """A person must agree before it is left."""

    mirror: int = 0
    """The share of requests that are copied to the canary."""

    began: dt.datetime | None = None
    reached: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class CheckSheet:
    """One check: what it asks, and how it stands."""

    name: str
    asks: str
    good: str
    """When its answer is good, as it was written."""

    phase: str
    reason: str
    last: str = ""
    """The phase of its last answer alone, while more are to come."""

    measured: int = 0
    dry_run: bool = False
    """Measured and told, but it decides nothing."""

    at: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class KeptRevision:
    """A version that can be brought back."""

    revision: str
    label: str


@dataclass(frozen=True, slots=True)
class Detail:
    """One rollout as it stands, with its plan and its past."""

    rollout: rows.Summary
    plan: tuple[PlannedStep, ...]
    """Of the run under way, or of the next one."""

    checks: tuple[CheckSheet, ...]
    verbs: tuple[str, ...]
    """What can be asked of it now."""

    kept: tuple[KeptRevision, ...]
    """Where `rollback` can lead, the newest first."""

    runs: chronicle.Runs
    """The newest first."""


def tell(sheet: rows.Sheet, now: dt.datetime) -> Detail:
    state = sheet.state
    assert not isinstance(state, states.Unknown)
    latest = sheet.runs[0] if sheet.runs else None
    return Detail(
        rollout=sheet.summary(),
        plan=_plan(state, latest),
        checks=_checks(state, latest),
        verbs=choices.open_now(state, now),
        kept=tuple(
            KeptRevision(version.revision, str(version))
            for version in choices.revisions(state, now)
        ),
        runs=sheet.runs,
    )


def _plan(
    state: states.Known | states.Gone, latest: chronicle.RunMark | None
) -> tuple[PlannedStep, ...]:
    spec = _spec(state)
    marks = {mark.number: mark for mark in _walked(state, latest)}
    return tuple(
        PlannedStep(
            number=n + 1,
            share=int(step.share),
            state=_step_state(state, n, marks),
            pause_seconds=step.pause.total_seconds(),
            approve=step.approve,
            mirror=int(step.route.mirror),
            began=marks[n + 1].began if n + 1 in marks else None,
            reached=marks[n + 1].reached if n + 1 in marks else None,
        )
        for n, step in enumerate(steps.plan(spec.strategy))
    )


def _walked(
    state: states.Known | states.Gone, latest: chronicle.RunMark | None
) -> tuple[chronicle.StepMark, ...]:
    """The steps of the run under way, or of the one that was given up last."""
    given_up = latest is not None and latest.ending == Ending.TAKEN_BACK.value
    if latest is None or not (isinstance(state, states.Running) or given_up):
        return ()
    return latest.steps


def _step_state(
    state: states.Known | states.Gone, n: int, marks: Mapping[int, chronicle.StepMark]
) -> str:
    if isinstance(state, states.Promoting):
        return "done"
    if n + 1 not in marks:
        return "skipped" if n + 1 < max(marks, default=0) else "ahead"
    if n + 1 < max(marks):
        return "done"
    if isinstance(state, states.Moving):
        return "moving"
    return "here" if isinstance(state, states.Watching) else "stopped"


def _checks(
    state: states.Known | states.Gone, latest: chronicle.RunMark | None
) -> tuple[CheckSheet, ...]:
    marks = latest.checks if latest else ()
    return tuple(_check(state, check, marks) for check in _spec(state).checks)


def _check(
    state: states.Known | states.Gone, check: Check, marks: Sequence[chronicle.CheckMark]
) -> CheckSheet:
    told = [mark for mark in marks if mark.check == check.name]
    last = max(told, key=lambda mark: mark.at) if told else None
    phase, reason = (last.phase or WAITING, last.reason) if last else (WAITING, "not asked yet")
    if isinstance(state, states.Queued | states.Watching) and check in inquiry.at_place(state):
        standing = inquiry.standing(check, state.inquiry, ending=False).standing
        phase, reason = standing.phase.value, standing.reason
        phase = WAITING if standing.phase is Phase.PENDING else phase
    return CheckSheet(
        name=check.name,
        asks=_asks(check),
        good=_good(check),
        phase=phase,
        reason=reason,
        last=last.phase if last else "",
        measured=sum(mark.measured for mark in told),
        dry_run=check.dry_run,
        at=last.at if last else None,
    )


def _asks(check: Check) -> str:
    match check.source:
        case Source.QUERY:
            return check.query
        case Source.JUDGE:
            return f"judge: {check.query}" if check.query else "judge"
        case Source.GATE:
            return f"gate: {check.query}"
        case Source.WEB:
            return f"web: {check.query}"


def _good(check: Check) -> str:
    parts = [
        f"at least {check.low:g}" if check.low is not None else "",
        f"at most {check.high:g}" if check.high is not None else "",
        check.success or "",
        f"not {check.failure}" if check.failure else "",
    ]
    return ", ".join(part for part in parts if part)


def _spec(state: states.Known | states.Gone) -> Spec:
    return state.run.spec if isinstance(state, states.Running) else state.book.spec
