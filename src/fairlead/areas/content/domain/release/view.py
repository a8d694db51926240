"""What people see of a release: its line, its steps, what they may ask now, and who gets what."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, get_args

from fairlead import errors, values
from fairlead.areas.content.domain import population
from fairlead.areas.content.domain.population import Channel, Population, shown_share
from fairlead.areas.content.domain.release import machine, messages
from fairlead.areas.content.domain.release.declared_verbs import VERBS
from fairlead.areas.content.domain.release.events import Proposal
from fairlead.areas.content.domain.release.place import NO_VERSION, Place
from fairlead.areas.content.domain.release.state import Phase, Release

_COMMANDS: Mapping[str, type] = {each.__name__: each for each in get_args(machine.Verb)}
_STEPPING = frozenset({Phase.RAISING, Phase.BAKING, Phase.AWAITING})
_NOW = {
    Phase.IDLE: "nothing is in progress",
    Phase.CLEARING: "the share goes to nobody before {version} is deployed",
    Phase.DEPLOYING: "{version} is being deployed, to nobody yet",
    Phase.RAISING: "the share goes to {asked} %",
    Phase.BAKING: "{asked} % get {version}",
    Phase.AWAITING: "{why}",
    Phase.PROMOTING: "{version} becomes stable: {why}",
    Phase.REVERTING: "everybody returns to {stable}: {why}",
    Phase.RESTORING: "{stable} is being restored: {why}",
    Phase.SETTLING: "everybody gets {stable}; the share goes to nobody",
}


@dataclass(frozen=True, slots=True)
class Summary:
    """A release in one line."""

    name: str
    phase: str
    sentence: str
    stable: str
    canary: str
    """Empty while no run is in progress."""

    share: str
    """In percent; of what was asked for last."""

    step: int
    """Counted from 1; 0 where it is at none."""

    steps: int
    proposed: str
    """A version that waits for review; empty where none does."""

    proposed_by: str
    terms: str
    """Of the proposal: from where to where, and how its share grows."""

    revision: str
    """Of the proposal: what an approval must name."""

    outcome: str
    why: str
    updated: dt.datetime


@dataclass(frozen=True, slots=True)
class Seen:
    """What one identity gets."""

    identity: str
    channel: str
    version: str
    settled: bool
    """False while some instances have other versions, or the share is being changed."""


def summary(state: Release, updated: dt.datetime) -> Summary:
    run, proposal, outcome = state.run, state.proposal, state.outcome
    return Summary(
        name=state.name,
        phase=machine.shown_phase(state),
        sentence=sentence(state),
        stable=state.stable,
        canary=run.proposal.version if run else "",
        share=shown_share(state.asked_share),
        step=step(state),
        steps=len(run.proposal.plan.steps) if run else 0,
        proposed=proposal.version if proposal else "",
        proposed_by=proposal.by if proposal else "",
        terms=terms(proposal) if proposal else "",
        revision=proposal.revision if proposal else "",
        outcome=f"{outcome.version}: {outcome.ending.value}" if outcome else "",
        why=state.trouble or state.paused or (outcome.why if outcome and not run else state.why),
        updated=updated,
    )


def step(state: Release) -> int:
    """Counted from 1; 0 where it is at none."""
    return state.step + 1 if state.phase in _STEPPING else 0


def sentence(state: Release) -> str:
    version = state.run.proposal.version if state.run else ""
    asked = shown_share(state.asked_share)
    words = {"version": version, "asked": asked, "why": state.why, "stable": state.stable}
    told = [_NOW[state.phase].format(**words)]
    if state.phase is Phase.IDLE and state.stable:
        told = [f"everybody gets {state.stable}"]
    if state.proposal is not None:
        what = "emergency release" if state.proposal.emergency else "release"
        by = f"{state.proposal.by}: {state.proposal.why}"
        told.append(f"{what} of {state.proposal.version} waits for review, proposed by {by}")
    if state.paused:
        told.append(f"paused: {state.paused}")
    return "; ".join([*told, *([state.trouble] if state.trouble else [])])


def terms(proposal: Proposal) -> str:
    """What a review is about, in one line."""
    shares = [f"{shown_share(each.share)} %" for each in proposal.plan.steps]
    steps = "for everybody at once" if proposal.emergency else f"in steps of {', '.join(shares)}"
    signed = "signed" if proposal.place.description.get("public_key") else "not signed"
    what = f"{proposal.version} from {_origin(proposal)} ({signed})"
    return values.redacted(f"{what} to {_target(proposal.place)}, {steps}")


def _origin(proposal: Proposal) -> str:
    source = {
        key: str(value) for key, value in proposal.place.description.get("source", {}).items()
    }
    if where := source.get("git"):
        tag = source.get("tag", "{version}").replace("{version}", proposal.version)
        commit = proposal.place.commits.get(proposal.version, "")
        return f"tag {tag} of {where} at {f'commit {commit[:12]}' if commit else 'any commit'}"
    if where := source.get("directory"):
        return f"folder {where}/{proposal.version}"
    return source.get("archive", "").replace("{version}", proposal.version)


def _target(place: Place) -> str:
    share = (
        f", its share by flag {place.flag.name} in {place.flag.environment}" if place.flag else ""
    )
    if place.local is not None:
        return f"port {place.local.port} of this machine{share}"
    assert place.kubernetes is not None
    at, git = place.kubernetes, place.kubernetes.git
    through = f" through {git.file} of branch {git.branch}" if git else ""
    return f"Deployment {at.namespace}/{at.deployment}{through}{share}"


def command(verb: str, by: str, why: str = "", revision: str = "") -> Any:
    """The command for a verb; Rejected where it is unknown."""
    declared = VERBS.get(verb)
    if declared is None:
        raise errors.Rejected(f"unknown verb: {verb[:80]}", hint=f"use one of: {', '.join(VERBS)}")
    given = {"by": by} | ({"why": why} if declared.takes_reason else {})
    if declared.takes_revision:
        given["revision"] = revision
    return _COMMANDS[declared.command](**given)


def open_verbs(state: Release, now: dt.datetime) -> tuple[str, ...]:
    """Those that would change something, for somebody who proposed nothing."""
    revision = state.proposal.revision if state.proposal else ""
    asked = {verb: command(verb, "\0somebody", revision=revision) for verb in VERBS}
    return tuple(verb for verb in VERBS if _changes(state, asked[verb], now))


def who(state: Release, identity: str) -> Seen:
    """What this identity gets, by the share as it was asked for last."""
    versions = state.wanted or state.deployed
    canary = versions.canary if versions else NO_VERSION
    inside = _channel(state, identity) is Channel.CANARY and canary != NO_VERSION
    settled = state.share is not None and state.deployed == versions
    stable = versions.stable if versions else state.stable
    channel = Channel.CANARY if inside else Channel.STABLE
    return Seen(identity, channel.value, canary if inside else stable, settled)


def _channel(state: Release, identity: str) -> Channel:
    if state.place is not None and state.place.flag is not None:
        # As far as its one strategy has the flag's name as its group, which is Unleash's default.
        found = population.bucket(state.place.flag.name, identity)
        percent = Decimal(state.asked_share) / 100
        inside = bool(identity) and population.enabled(found, percent)
        return Channel.CANARY if inside else Channel.STABLE
    return Population(state.salt, state.asked_share).channel(identity)


def _changes(state: Release, asked: messages.Approve, now: dt.datetime) -> bool:
    try:
        return bool(machine.decide(state, asked, now).events)
    except errors.FairleadError:
        return False
