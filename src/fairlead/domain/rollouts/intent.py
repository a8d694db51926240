"""What the owner of a rollout wants, read as a level: only a difference from before does anything.

A run starts where the version means something else than the one wanted before; replicas, the
spec and the override flag are taken in without one.
"""

from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import states
from fairlead.domain.rollouts.draft import Draft
from fairlead.domain.rollouts.messages import Want
from fairlead.domain.rollouts.spec import Version


def want(draft: Draft, asked: Want) -> None:
    state = draft.state
    if isinstance(state, states.Unknown | states.Gone):
        draft.tell(
            told.Founded(
                asked.name, asked.spec, asked.version, asked.replicas, asked.generation, draft.now
            )
        )  # fmt: skip
        draft.ask_primary(asked.version)
        return
    _take_wish(draft, asked)
    if asked.override != state.book.override:
        draft.tell(told.OverrideSeen(asked.override))
    if asked.version.meaning != state.book.wanted.meaning:
        _take_version(draft, asked)
    elif asked.override and not draft.book.override_spent:
        _override_running(draft)


def primary_version(state: states.Known) -> Version:
    """The version that the primary holds or is to hold."""
    return state.run.target if isinstance(state, states.Promoting) else state.book.stable


def _take_wish(draft: Draft, asked: Want) -> None:
    book = draft.book
    before = (book.spec, book.replicas, book.generation)
    if before == (asked.spec, asked.replicas, asked.generation):
        return
    draft.tell(told.Respecified(asked.spec, asked.replicas, asked.generation))
    state = draft.state
    if asked.replicas != book.replicas and isinstance(state, states.Known):
        draft.ask_primary(primary_version(state))


def _take_version(draft: Draft, asked: Want) -> None:
    state, version = draft.state, asked.version
    assert isinstance(state, states.Known)
    asleep = isinstance(state, states.Idle) and state.book.replicas == 0
    if isinstance(state, states.Founding) or asleep:
        # Nothing carries traffic: there is nobody to protect, and nothing to compare with.
        draft.tell(told.Refounded(version, draft.now))
        draft.ask_primary(version)
        return
    override = asked.override and not draft.book.override_spent
    back = version.meaning == state.book.stable.meaning and not isinstance(state, states.Promoting)
    why = f"{version} is what runs already" if back else f"{version} is wanted"
    draft.tell(told.Wanted(version, not back, why, override))
    match state:
        case states.Queued() | states.Moving() | states.Watching() if back:
            draft.go_home(f"{version}, the stable version, is wanted again", told.Ending.REVERTED)
        case states.Queued() | states.Moving() | states.Watching():
            draft.go_home(f"{version} is wanted instead", told.Ending.SUPERSEDED)
        case _:
            # On the way home and while promoting, what is wanted next waits its turn.
            pass


def _override_running(draft: Draft) -> None:
    state = draft.state
    running = isinstance(state, states.Queued | states.Moving | states.Watching)
    if running and isinstance(state, states.Running) and state.run.target == state.book.wanted:
        draft.tell(told.Straightened("the override flag", override=True))
