"""How people reach releases: find one by its name, read it, propose, ask something of it.

The page, the API and the command all come through here, so that a refusal and a hint are the same
wherever they are read.
"""

import contextlib
import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from fairlead import errors, values
from fairlead.access import intake, scopes, tokens
from fairlead.areas.content import description, loader
from fairlead.areas.content.differences import Differences
from fairlead.areas.content.domain.population import Share, shown_share
from fairlead.areas.content.domain.release import view
from fairlead.areas.content.domain.release.draft import MACHINE, stream
from fairlead.areas.content.domain.release.machine import RELEASE
from fairlead.areas.content.domain.release.messages import Propose
from fairlead.areas.content.domain.release.place import Place
from fairlead.areas.content.domain.release.state import Release
from fairlead.areas.content.domain.release.view import Summary
from fairlead.areas.content.release import rules
from fairlead.engine import codec, filters, machine, messages, visibility
from fairlead.engine.store import protocol

_WORDS = codec.Codec(RELEASE)
_ONLY = machine.Machines([RELEASE])
_NEWS = 500
_QUIET = frozenset({"MeasurementRequested"})
_DIFFERENCES = Differences()


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step of the run, or of what is proposed."""

    share: str
    bake_seconds: float
    approve: bool
    state: str
    """done, here, ahead"""


@dataclass(frozen=True, slots=True)
class News:
    """Something that happened."""

    at: dt.datetime
    kind: str
    text: str
    by: str


@dataclass(frozen=True, slots=True)
class SharePoint:
    """What the share was from then on, in percent."""

    at: dt.datetime
    share: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check measured last at the present step."""

    name: str
    measured: int
    reason: str


@dataclass(frozen=True, slots=True)
class Detail:
    """Everything that a page shows of one release."""

    release: Summary
    verbs: tuple[str, ...]
    steps: tuple[PlannedStep, ...]
    checks: tuple[CheckResult, ...]
    shares: tuple[SharePoint, ...]
    """In the last run, the oldest first."""

    news: tuple[News, ...]
    """The newest first."""

    unserved: str = ""
    """Why nobody performs what it asks, where that is so."""


def find(session: protocol.Session, name: str, scope: str = scopes.EVERYWHERE) -> Release:
    return _state(_view(session, name, scope))


def listed(
    session: protocol.Session, limit: int, where: str = "", scope: str = scopes.EVERYWHERE
) -> list[Summary]:
    fits = filters.where(where, _ONLY, MACHINE)
    which = visibility.StreamFilter(MACHINE, limit=limit, scope=scope, where=fits)
    return [
        view.summary(_state(each), each.updated_at) for each in visibility.streams(session, which)
    ]


def read(
    session: protocol.Session, name: str, now: dt.datetime, scope: str = scopes.EVERYWHERE
) -> Detail:
    found = _view(session, name, scope)
    state = _state(found)
    after = max(found.version - _NEWS, 0)
    events = visibility.events(session, found.name, after, _NEWS)
    return Detail(
        view.summary(state, found.updated_at),
        view.open_verbs(state, now),
        tuple(_steps(state)),
        tuple(_checks(state)),
        tuple(SharePoint(each.at, shown_share(each.share)) for each in state.shares),
        tuple(reversed([_news(each) for each in events if each.type not in _QUIET])),
        visibility.unserved(session, found, now),
    )


def check_order(session: protocol.Session, asked: rules.Proposed) -> None:
    """Rejected where the version must go through another environment first."""
    before = rules.read(asked.release).after
    if not before or asked.emergency:
        return
    found = None
    with contextlib.suppress(errors.NotFound):
        found = find(session, before)
    if found is None or found.stable != asked.version:
        raise errors.Rejected(
            f"{asked.version} is not stable in {before}",
            hint="release it there first, or here as an emergency release",
        )


async def propose(
    door: intake.Intake, caller: intake.Caller, asked: rules.Proposed, queue: str
) -> messages.Receipt:
    """Who proposes decides which content is loaded and served, and where."""
    intake.authorise(caller, tokens.Role.DEPLOYER)
    command = asked.command(caller.name)
    _check_scope(caller, command.place)
    command = await _pinned(command)
    data = msgspec.to_builtins(command)
    id_ = messages.command_id(asked.id) if asked.id else None
    request = intake.Request(stream(command.name), "Propose", data, id_, queue)
    return await door.submit(caller, request)


async def _pinned(command: Propose) -> Propose:
    """With the commit that its tag is now: should the tag be moved, it is refused afterwards."""
    content = description.read(command.place.description, Path("/"))
    commit = await loader.commit(content, command.version)
    if not commit:
        return command
    return replace(command, place=command.place.with_commit(command.version, commit))


def _check_scope(caller: intake.Caller, place: Place) -> None:
    """Forbidden where a token for one environment would act beyond it.

    On another's Deployment or flag, or as the control plane itself: its processes, ports and files,
    and what its network and accounts reach.
    """
    named = [place.kubernetes.namespace] if place.kubernetes else []
    named += [place.flag.environment] if place.flag else []
    # One repository holds the variables of many: a path in it is nobody's namespace.
    named += (
        [f"git: {place.kubernetes.git.file}"] if place.kubernetes and place.kubernetes.git else []
    )
    named += [f"this machine: port {place.local.port}"] if place.local else []
    source = place.description["source"]
    where = source["git"] or source["directory"] or source["archive"]
    named += [] if where.startswith("https://") else [f"no https://: {values.redacted(where)}"]
    foreign = [each for each in named if each != caller.scope]
    if foreign and caller.scope != scopes.EVERYWHERE:
        raise errors.Forbidden(
            f"this token releases in {caller.scope} only, not in: {foreign[0][:80]}",
            hint="name the namespace and the flag's environment as the token's scope, and a source"
            " over https://",
        )


def verb_request(
    name: str, asked: Any, command_id: messages.CommandId | None = None
) -> intake.Request:
    data = msgspec.to_builtins(asked)
    return intake.Request(stream(name), type(asked).__name__, data, command_id)


def candidates(state: Release) -> tuple[str, str]:
    """The versions whose difference matters now: stable, and what is proposed or released."""
    if state.proposal is not None:
        return state.stable, state.proposal.version
    return state.stable, state.run.proposal.version if state.run else ""


async def difference(state: Release) -> Sequence[str]:
    """What stable and the other version serve, line by line; Rejected where one does not load."""
    old, new = candidates(state)
    place = state.proposal.place if state.proposal else state.place
    if not old or not new or place is None:
        raise errors.NotFound("there are no two versions to compare", hint="propose one")
    return await _DIFFERENCES.of(description.read(place.description, Path("/")), old, new)


def _view(session: protocol.Session, name: str, scope: str) -> visibility.StreamView:
    found = None
    # A name that no stream could have is of no release either.
    with contextlib.suppress(errors.Rejected):
        if scopes.covers(scope, stream(name)):
            found = visibility.find(session, stream(name))
    if found is None:
        raise errors.NotFound(
            f"no such release: {name[:200]}", hint="list them with fairlead get releases"
        )
    return found


def _state(found: visibility.StreamView) -> Release:
    return msgspec.convert(found.data, Release)


def _steps(state: Release) -> Iterator[PlannedStep]:
    run = state.run.proposal if state.run else state.proposal
    at = view.step(state)
    for number, step in enumerate(run.plan.steps if run else (), 1):
        where = "done" if number < at else "here" if number == at else "ahead"
        bake = step.bake.total_seconds()
        yield PlannedStep(shown_share(step.share), bake, step.approve, where)


def _checks(state: Release) -> Iterator[CheckResult]:
    if state.run is None or state.round is None:
        return
    for check in state.run.proposal.plan.at(state.step):
        tally = state.round.tallies.get(check.name)
        reason = state.round.reasons.get(check.name, "not measured yet")
        yield CheckResult(check.name, tally.count if tally else 0, reason)


def _news(event: visibility.EventView) -> News:
    data: dict[str, Any] = event.data
    proposal = data.get("proposal") or {}
    words: Sequence[str] = [
        data.get("version") or proposal.get("version", ""),
        _versions(data.get("versions")),
        f"{shown_share(Share(data['share']))} %" if "share" in data else "",
        data.get("why") or proposal.get("why", ""),
        *(f"{each['check']}: {each['reason']}" for each in data.get("findings", ())),
    ]
    by = data.get("by") or proposal.get("by", "")
    return News(event.at, event.type, "; ".join(filter(None, words)), by)


def _versions(versions: dict[str, str] | None) -> str:
    if versions is None:
        return ""
    return f"stable {versions['stable']}, canary {versions.get('canary', 'none')}"
