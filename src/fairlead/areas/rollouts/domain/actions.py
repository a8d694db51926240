"""What people may request of a rollout now: the verbs are tried, and nothing is kept."""

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import get_args

from fairlead import errors
from fairlead.areas.rollouts.domain import declared_verbs, messages, states, verbs
from fairlead.areas.rollouts.domain.decision_builder import DecisionBuilder
from fairlead.areas.rollouts.domain.plan.spec import Version
from fairlead.values import Verb

_COMMANDS: Mapping[str, type[verbs.VerbCommand]] = {
    each.__name__: each for each in get_args(verbs.VerbCommand)
}


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """What somebody requests, in plain words."""

    verb: str
    by: str
    why: str = ""
    revision: str = ""


def command(request: ActionRequest) -> verbs.VerbCommand:
    """The command for a request; Rejected where its verb is unknown."""
    verb = declared_verbs.VERBS.get(request.verb)
    if verb is None:
        known = ", ".join(declared_verbs.VERBS)
        raise errors.Rejected(f"unknown verb: {request.verb[:80]}", hint=f"use one of: {known}")
    return made(verb, request)


def made(verb: Verb, request: ActionRequest) -> verbs.VerbCommand:
    """The verb's command with what the verb takes of the request."""
    given = {"by": request.by}
    if verb.takes_reason:
        given["why"] = request.why
    if verb.takes_revision:
        given["revision"] = request.revision
    return _COMMANDS[verb.command](**given)


def open_now(state: states.State, now: dt.datetime) -> tuple[str, ...]:
    """The verbs that would change something."""
    return tuple(
        verb.name
        for verb in declared_verbs.VERBS.values()
        if any(_changes(state, made(verb, each), now) for each in _tries(state, verb))
    )


def revisions(state: states.State, now: dt.datetime) -> tuple[Version, ...]:
    """The kept versions that can be brought back now, the newest first."""
    if not isinstance(state, states.Known):
        return ()
    return tuple(
        version
        for version in state.rollout.kept
        if _changes(state, messages.RollBackTo(version.revision, "somebody"), now)
    )


def _tries(state: states.State, verb: Verb) -> Iterator[ActionRequest]:
    if not verb.takes_revision:
        yield ActionRequest(verb.name, "somebody")
    elif isinstance(state, states.Known):
        for version in state.rollout.kept:
            yield ActionRequest(verb.name, "somebody", revision=version.revision)


def _changes(state: states.State, verb: verbs.VerbCommand, now: dt.datetime) -> bool:
    draft = DecisionBuilder(state, now)
    try:
        verbs.obey(draft, verb)
    except errors.FairleadError:
        return False
    return bool(draft.steps)
