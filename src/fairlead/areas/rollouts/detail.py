"""Everything about one rollout for its own page: plan, checks, history, verbs."""

import datetime as dt
from dataclasses import dataclass, replace

from fairlead import errors
from fairlead.analysis.conditions import Phase
from fairlead.analysis.policy import Counts
from fairlead.areas.rollouts import history, measurements, projection
from fairlead.areas.rollouts.domain import actions, check_rounds, states
from fairlead.areas.rollouts.domain.events import Ending
from fairlead.checks.spec import Check, CheckKind

WAITING = "Waiting"
"""Of a check that has no measurement yet."""

NO_VERDICT = "NoVerdict"
"""Of one whose run ended before it had any."""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step of the plan, and how far it is."""

    number: int
    weight: int
    state: str
    """done, shifting, here, ahead, skipped; stopped and unreached in a run that was rolled back."""

    pause_seconds: float = 0
    approve: bool = False
    """A person must agree before it is left."""

    mirror: int = 0
    """The percentage of requests that are copied to the canary."""

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
    """At its step."""

    needed: int | None = None
    """Measurements after which it is done at its place; None: as long as the place lasts."""

    value: float | None = None
    """The last number, what it was held against, and the unit of both."""

    limit: float | None = None
    unit: str = ""
    counts: Counts | None = None
    """What a judge had of both sides at last, and how much it needs."""

    dry_run: bool = False
    """Measured and shown, but it decides nothing."""

    at: dt.datetime | None = None
    step: int = 0
    """Where it was measured, counted from 1; 0: nowhere yet, or before the first."""


@dataclass(frozen=True, slots=True)
class KeptRevision:
    """A version that can be brought back."""

    revision: str
    label: str


@dataclass(frozen=True, slots=True)
class Detail:
    """One rollout as it stands, with its plan and its past."""

    rollout: projection.Summary
    run: int | None
    """The number of the run that plan and checks are of: the newest, unless another was asked
    for; None where none is known, then they are what the next run will have."""

    plan: tuple[PlannedStep, ...]
    checks: tuple[CheckSheet, ...]
    verbs: tuple[str, ...]
    """What can be asked of it now."""

    kept: tuple[KeptRevision, ...]
    """Where `rollback` can lead, the newest first."""

    runs: history.Runs
    """The newest first."""

    stable: str = ""
    desired: str = ""
    """The revisions that have all traffic at rest, and that were requested last."""

    unserved: str = ""
    """Why nobody performs what it asks; empty where a worker does."""


def of(sheet: projection.Sheet, now: dt.datetime, number: int | None = None) -> Detail:
    """Of the run of this number, or of the newest."""
    state = sheet.state
    assert not isinstance(state, states.Unknown)
    run = _run(sheet.runs, number)
    return Detail(
        rollout=sheet.summary(now),
        run=run.number if run else None,
        plan=_plan(state, run),
        checks=_checks(state, run),
        verbs=actions.open_now(state, now),
        kept=tuple(
            KeptRevision(version.revision, str(version))
            for version in actions.revisions(state, now)
        ),
        runs=sheet.runs,
        stable=state.rollout.stable.revision,
        desired=state.rollout.desired.revision,
    )


def _run(runs: history.Runs, number: int | None) -> history.RunMark | None:
    if number is None:
        return runs[0] if runs else None
    found = next((run for run in runs if run.number == number), None)
    if found is None:
        known = ", ".join(str(run.number) for run in runs) or "none"
        raise errors.NotFound(f"no such run is kept: {number}", hint=f"kept runs: {known}")
    return found


def _plan(
    state: states.Known | states.Gone, run: history.RunMark | None
) -> tuple[PlannedStep, ...]:
    marks = {mark.number: mark for mark in run.steps} if run else {}
    planned = run.plan if run else history.planned(state.rollout.spec.strategy)
    return tuple(
        PlannedStep(
            number=n,
            weight=step.weight,
            state=_step_state(state, run, n),
            pause_seconds=step.pause_seconds,
            approve=step.approve,
            mirror=step.mirror,
            began=marks[n].began if n in marks else None,
            reached=marks[n].reached if n in marks else None,
        )
        for n, step in enumerate(planned, 1)
    )


def _step_state(state: states.Known | states.Gone, run: history.RunMark | None, n: int) -> str:
    numbers = [mark.number for mark in run.steps] if run else []
    last = max(numbers, default=0)
    if run is None or n > last:
        return "ahead" if run is None or run.ended is None else "unreached"
    if n not in numbers:
        return "skipped"
    if n < last or run.ending == Ending.PROMOTED.value:
        return "done"
    if run.ended is not None:
        return "stopped"
    return _HERE.get(type(state), "stopped")


_HERE = {states.Shifting: "shifting", states.Analysing: "here", states.Promoting: "done"}


def _checks(
    state: states.Known | states.Gone, run: history.RunMark | None
) -> tuple[CheckSheet, ...]:
    if run is not None and run.ended is not None:
        return tuple(_ended_check(rule, run) for rule in run.rules)
    spec = state.run.spec if isinstance(state, states.Running) else state.rollout.spec
    return tuple(_check(state, check, run) for check in spec.checks)


def _ended_check(rule: history.Rule, run: history.RunMark) -> CheckSheet:
    last = _last(rule.check, run)
    sheet = CheckSheet(rule.check, "", "", WAITING, "not measured in this run")
    sheet = _measured(replace(sheet, dry_run=rule.dry_run), last)
    return replace(sheet, phase=NO_VERDICT) if sheet.phase == WAITING else sheet


def _check(
    state: states.Known | states.Gone, check: Check, run: history.RunMark | None
) -> CheckSheet:
    sheet = CheckSheet(
        name=check.name,
        asks=_asks(check),
        good=_good(check),
        phase=WAITING,
        reason="not measured yet",
        needed=check.limits.most,
        unit=check.metric.unit,
        dry_run=check.dry_run,
    )
    last = _last(check.name, run) if run else None
    if not isinstance(state, states.Queued | states.Analysing) or check not in (
        check_rounds.at_place(state)
    ):
        return _measured(sheet, last)
    # What an earlier step measured says nothing about this one.
    here = state.step + 1 if isinstance(state, states.Analysing) else 0
    standing = check_rounds.standing(check, state.round, ending=False).standing
    phase = WAITING if standing.phase is Phase.PENDING else standing.phase.value
    sheet = _measured(sheet, last if last and last.step == here else None)
    return replace(sheet, phase=phase, reason=standing.reason)


def _last(check: str, run: history.RunMark) -> measurements.CheckMark | None:
    own = [mark for mark in run.checks if mark.check == check]
    return max(own, key=lambda mark: mark.at) if own else None


def _measured(sheet: CheckSheet, mark: measurements.CheckMark | None) -> CheckSheet:
    """The card with what a mark tells."""
    if mark is None:
        return sheet
    return replace(
        sheet,
        phase=mark.phase or WAITING,
        reason=mark.reason,
        last=mark.phase,
        measured=mark.measured,
        value=mark.value,
        limit=mark.limit,
        unit=mark.unit,
        counts=mark.counts,
        at=mark.at,
        step=mark.step,
    )


def _asks(check: Check) -> str:
    match check.kind:
        case CheckKind.METRIC:
            return f"{check.source}: {check.query}" if check.source else check.query
        case CheckKind.JUDGE | CheckKind.GATE:
            return f"{check.kind.value}: {check.query}" if check.query else check.kind.value


def _good(check: Check) -> str:
    parts = [
        f"at least {check.low:g}" if check.low is not None else "",
        f"at most {check.high:g}" if check.high is not None else "",
        check.success or "",
        f"not {check.failure}" if check.failure else "",
    ]
    return ", ".join(part for part in parts if part)
