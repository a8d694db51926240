"""Where the release of a content stands, and what each event makes of it."""

import datetime as dt
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import assert_never

from fairlead.analysis.limits import Tally
from fairlead.areas.content.domain.population import NOBODY, Share
from fairlead.areas.content.domain.release import events
from fairlead.areas.content.domain.release.events import Ending, Proposal
from fairlead.areas.content.domain.release.place import Place, Versions


class Phase(StrEnum):
    """What is done at the moment."""

    IDLE = "Idle"
    CLEARING = "Clearing"
    """The share goes to nobody, before a canary is deployed."""

    DEPLOYING = "Deploying"
    RAISING = "Raising"
    BAKING = "Baking"
    AWAITING = "AwaitingDecision"
    PROMOTING = "Promoting"
    REVERTING = "Reverting"
    RESTORING = "Restoring"
    """New instances did not become ready; what was deployed before is deployed again."""

    SETTLING = "Settling"
    """Promoted; the share goes to nobody."""


CANARY = frozenset({Phase.CLEARING, Phase.DEPLOYING, Phase.RAISING, Phase.BAKING, Phase.AWAITING})
"""A canary is on its way, and can be ended."""

RETURNING = frozenset({Phase.REVERTING, Phase.RESTORING})


@dataclass(frozen=True, slots=True)
class Run:
    """A proposal that is carried out."""

    number: int
    proposal: Proposal
    approved_by: str
    started: dt.datetime


@dataclass(frozen=True, slots=True)
class Round:
    """What the checks of a step measured so far."""

    started: dt.datetime
    ticket: int = 0
    asked: bool = False
    tallies: dict[str, Tally] = field(default_factory=dict)
    measured: dict[str, dt.datetime] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the last run ended."""

    version: str
    ending: Ending
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class Release:
    """One content: what is deployed, what is proposed, and the run in progress."""

    name: str = ""
    phase: Phase = Phase.IDLE
    stable: str = ""
    """What everybody gets outside of a run; empty while nothing was ever released."""

    deployed: Versions | None = None
    """What every instance has; None while some have one and some another."""

    wanted: Versions | None = None
    share: Share | None = NOBODY
    """Who is in the share; None while it is not known."""

    shares: tuple[events.ShareSet, ...] = ()
    """What the share was since before the last run; a plan has an end, so there are few."""

    asked_share: Share = NOBODY
    filled: bool = True
    """Whether anybody may be in the share; at first, somebody may have raised it by hand."""

    emptied: dt.datetime | None = None
    """When nobody was in the share again; instances hear of it a little later."""

    salt: str = ""
    order: int = 0
    runs: int = 0
    proposal: Proposal | None = None
    place: Place | None = None
    run: Run | None = None
    step: int = 0
    round: Round | None = None
    until: dt.datetime | None = None
    """By when the deployment in progress must be ready."""

    paused: str = ""
    ending: Ending | None = None
    by: str = ""
    why: str = ""
    """Who brought it into its phase, and why."""

    trouble: str = ""
    outcome: Outcome | None = None


def evolve(state: Release, event: events.Event) -> Release:  # noqa: PLR0911 - one for each kind
    match event:
        case events.Proposed() | events.ProposalClosed() | events.Approved() | events.Superseded():
            return _proposed(state, event)
        case events.ShareRequested() | events.ShareSet():
            return _shared(state, event)
        case events.DeploymentStarted() | events.Deployed():
            return _deployed(state, event)
        case events.MeasurementRequested() | events.Measured():
            return replace(state, round=_measured(state.round, event))
        case events.Promoted() | events.Reverted() | events.Settled():
            return _ended(state, event)
        case events.Paused(by, why):
            return replace(state, paused=f"{why} (by {by})" if why else f"paused by {by}")
        case events.Resumed():
            return replace(state, paused="")
        case events.Stalled(why):
            return replace(state, trouble=why)
        case _:
            return _turned(state, event)


def _proposed(
    state: Release,
    event: events.Proposed | events.ProposalClosed | events.Approved | events.Superseded,
) -> Release:
    match event:
        case events.Proposed(name, proposal, stable):
            known = state.deployed if state.stable == stable else Versions(stable)
            return replace(state, name=name, proposal=proposal, stable=stable, deployed=known)
        case events.ProposalClosed():
            return replace(state, proposal=None)
        case events.Approved():
            return _started(state, event)
        case events.Superseded(version, by, why):
            return replace(state, outcome=Outcome(version, Ending.SUPERSEDED, by, why), run=None)
        case unreachable:
            assert_never(unreachable)


def _turned(
    state: Release, event: events.DecisionAwaited | events.PromotionStarted | events.RevertStarted
) -> Release:
    match event:
        case events.DecisionAwaited(why):
            return replace(state, phase=Phase.AWAITING, why=why)
        case events.PromotionStarted(by, why):
            return replace(state, phase=Phase.PROMOTING, by=by, why=why, paused="")
        case events.RevertStarted(ending, by, why):
            phase = Phase.RESTORING if ending is Ending.DEPLOYMENT_FAILED else Phase.REVERTING
            return replace(state, phase=phase, ending=ending, by=by, why=why, paused="")
        case unreachable:
            assert_never(unreachable)


def _deployed(state: Release, event: events.DeploymentStarted | events.Deployed) -> Release:
    if isinstance(event, events.Deployed):
        return replace(state, deployed=event.versions, until=None, trouble="")
    versions = event.versions
    return replace(
        state,
        phase=Phase.DEPLOYING if state.phase is Phase.CLEARING else state.phase,
        wanted=versions,
        deployed=state.deployed if state.deployed == versions else None,
        order=event.order,
        until=event.until,
        trouble="",
    )


def _shared(state: Release, event: events.ShareRequested | events.ShareSet) -> Release:
    if isinstance(event, events.ShareRequested):
        return _share_requested(state, event)
    done = replace(state, share=event.share, shares=(*state.shares, event), trouble="")
    if event.share == NOBODY and state.filled:
        return replace(done, filled=False, emptied=event.at)
    if state.phase is Phase.RAISING:
        return replace(done, phase=Phase.BAKING, round=Round(event.at))
    return done


def _started(state: Release, event: events.Approved) -> Release:
    assert state.proposal is not None
    number, proposal = state.runs + 1, state.proposal
    return replace(
        state,
        phase=Phase.PROMOTING if proposal.emergency else Phase.CLEARING,
        run=Run(number, proposal, event.by, event.at),
        runs=number,
        shares=state.shares[-1:],
        place=proposal.place,
        proposal=None,
        step=0,
        round=None,
        paused="",
        ending=None,
        by=event.by,
        why=proposal.why,
    )


def _share_requested(state: Release, event: events.ShareRequested) -> Release:
    made = replace(
        state,
        order=event.order,
        asked_share=event.share,
        filled=state.filled or event.share > NOBODY,
        share=None,
        trouble="",
    )
    if event.step is None:
        return made
    assert state.run is not None
    salt = f"{state.run.proposal.version}-{state.run.number}"
    return replace(
        made, phase=Phase.RAISING, step=event.step, salt=salt, by=event.by, why=event.why
    )


def _measured(
    round_: Round | None, event: events.MeasurementRequested | events.Measured
) -> Round | None:
    if round_ is None:
        return None
    if isinstance(event, events.MeasurementRequested):
        return replace(round_, ticket=event.ticket, asked=True)
    tallies, measured, reasons = {**round_.tallies}, {**round_.measured}, {**round_.reasons}
    for each in event.findings:
        measured[each.check], reasons[each.check] = event.at, each.reason
        if each.phase is not None:
            tallies[each.check] = tallies.get(each.check, Tally()).add(each.phase)
    return replace(round_, asked=False, tallies=tallies, measured=measured, reasons=reasons)


def _ended(state: Release, event: events.Promoted | events.Reverted | events.Settled) -> Release:
    match event:
        case events.Settled():
            return replace(state, phase=Phase.IDLE)
        case events.Promoted(version, by, why):
            outcome = Outcome(version, Ending.PROMOTED, by, why)
            rest = replace(state, phase=Phase.SETTLING, stable=version)
        case events.Reverted(version):
            outcome = Outcome(version, state.ending or Ending.REVERTED, state.by, state.why)
            rest = replace(state, phase=Phase.IDLE)
        case unreachable:
            assert_never(unreachable)
    return replace(rest, run=None, round=None, outcome=outcome, step=0, until=None, ending=None)
