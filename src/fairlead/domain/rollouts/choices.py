"""What people may ask of a rollout now: the verbs themselves are tried, and nothing is kept."""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fairlead import errors
from fairlead.domain.rollouts import messages, states, verbs
from fairlead.domain.rollouts.draft import Draft
from fairlead.domain.rollouts.spec import Version

ROLL_BACK = "rollback"


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody asks, in plain words."""

    verb: str
    by: str
    why: str = ""
    revision: str = ""


_VERBS: Mapping[str, Callable[[Wish], verbs.Verb]] = {
    "approve": lambda wish: messages.Approve(wish.by),
    "promote": lambda wish: messages.PromoteFully(wish.by),
    "pause": lambda wish: messages.Pause(wish.by, wish.why),
    "resume": lambda wish: messages.Resume(wish.by),
    "abort": lambda wish: messages.Abort(wish.by, wish.why),
    "retry": lambda wish: messages.Retry(wish.by),
    ROLL_BACK: lambda wish: messages.RollBackTo(wish.revision, wish.by),
}
WORDS = tuple(_VERBS)


def command(wish: Wish) -> verbs.Verb:
    """The command behind the words; Rejected where a word is missing or unknown."""
    make = _VERBS.get(wish.verb)
    if make is None:
        raise errors.Rejected(
            f"not a verb of rollouts: {wish.verb[:80]}", hint=f"use one of: {', '.join(WORDS)}"
        )
    if wish.verb == ROLL_BACK and not wish.revision:
        raise errors.Rejected(
            "no revision to roll back to",
            hint="name one that `fairlead get rollout` lists as kept",
        )
    return make(wish)


def open_now(state: states.State, now: dt.datetime) -> tuple[str, ...]:
    """The verbs that would change something."""
    tried = (word for word in WORDS if word != ROLL_BACK)
    found = [word for word in tried if _changes(state, command(Wish(word, "somebody")), now)]
    return (*found, ROLL_BACK) if revisions(state, now) else tuple(found)


def revisions(state: states.State, now: dt.datetime) -> tuple[Version, ...]:
    """The kept versions that can be brought back now, the newest first."""
    if not isinstance(state, states.Known):
        return ()
    return tuple(
        version
        for version in state.book.kept
        if _changes(state, messages.RollBackTo(version.revision, "somebody"), now)
    )


def _changes(state: states.State, verb: verbs.Verb, now: dt.datetime) -> bool:
    draft = Draft(state, now)
    try:
        verbs.obey(draft, verb)
    except errors.FairleadError:
        return False
    return bool(draft.steps)
