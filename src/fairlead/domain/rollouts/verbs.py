"""What people ask of a rollout; each is answered in every state: done, done already, or why not."""

from typing import NoReturn, assert_never

from fairlead import errors
from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import messages, states
from fairlead.domain.rollouts.draft import Draft
from fairlead.domain.rollouts.spec import Version
from fairlead.domain.values import ALL

Verb = (
    messages.Pause
    | messages.Resume
    | messages.Approve
    | messages.PromoteFully
    | messages.Abort
    | messages.Retry
    | messages.RollBackTo
)


def obey(draft: Draft, verb: Verb) -> None:
    state = draft.state
    if isinstance(state, states.Unknown | states.Gone):
        raise errors.NotFound(
            "no such rollout", hint="deploy a version first; `fairlead get rollouts` lists them"
        )
    match verb:
        case messages.Pause():
            _pause(draft, verb)
        case messages.Resume():
            if state.book.paused is not None:
                draft.tell(told.Resumed(verb.by, draft.now))
        case messages.Approve():
            _approve(draft, state, verb)
        case messages.PromoteFully():
            _promote(draft, state, verb)
        case messages.Abort():
            _abort(draft, state, verb)
        case messages.Retry():
            _retry(draft, state, verb)
        case messages.RollBackTo():
            _roll_back(draft, state, verb)
        case unreachable:
            assert_never(unreachable)


def _pause(draft: Draft, verb: messages.Pause) -> None:
    if draft.book.paused is None:
        draft.tell(told.Paused(verb.by, verb.why or f"paused by {verb.by}", draft.now))


def _approve(draft: Draft, state: states.Known, verb: messages.Approve) -> None:
    if not isinstance(state, states.Watching) or not state.run.plan[state.step].approve:
        _refuse("nothing waits for approval", "see `fairlead get rollout` for what it waits for")
    if not state.approved:
        draft.tell(told.Approved(verb.by, draft.now))


def _promote(draft: Draft, state: states.Known, verb: messages.PromoteFully) -> None:
    match state:
        case states.Queued() | states.Moving() | states.Watching():
            if not state.run.straight:
                draft.tell(told.Straightened(verb.by))
            if isinstance(state, states.Moving) and state.step != state.run.last:
                draft.begin_move(state.run.last)
            if state.book.paused is not None:
                draft.tell(told.Resumed(verb.by, draft.now))
        case states.Promoting():
            # It is being promoted as it is; a pause of it ends.
            if state.book.paused is not None:
                draft.tell(told.Resumed(verb.by, draft.now))
        case states.GoingHome():
            _refuse("the rollout is on its way home", "retry it once it is home")
        case states.Founding() | states.Idle():
            _refuse("no rollout to promote", "change the version, or retry the last one")
        case unreachable:
            assert_never(unreachable)


def _abort(draft: Draft, state: states.Known, verb: messages.Abort) -> None:
    match state:
        case states.Queued() | states.Moving() | states.Watching():
            draft.go_home(verb.why or f"aborted by {verb.by}")
        case states.Promoting():
            _undo_promotion(draft, state, verb.why or f"aborted by {verb.by}")
        case states.GoingHome():
            pass
        case states.Founding():
            _refuse("the first version has nothing to go back to", "change it, or delete it")
        case states.Idle():
            _refuse("no rollout under way", "to undo a finished one, roll back to a revision")
        case unreachable:
            assert_never(unreachable)


def _undo_promotion(draft: Draft, state: states.Promoting, why: str) -> None:
    """While the canary carries everything the primary may become the old version again.

    Once traffic is back on the new primary it must not be changed under it: the promotion ends,
    and the old version comes back through the canary's slot, without steps.
    """
    book = state.book
    errand = told.Errand(book.stable, why, straight=True)
    if book.route.share == ALL:
        draft.go_home(why)
    elif book.due != errand:
        draft.tell(told.RunDue(errand))


def _retry(draft: Draft, state: states.Known, verb: messages.Retry) -> None:
    wanted = state.book.wanted
    why = f"retried by {verb.by}"
    match state:
        case states.GoingHome():
            if state.book.due is None:
                draft.tell(told.RunDue(told.Errand(state.run.target, why)))
        case states.Idle() if wanted.meaning != state.book.stable.meaning:
            draft.tell(told.RunDue(told.Errand(wanted, why)))
        case states.Founding() | states.Idle():
            _refuse(
                "nothing to retry: what is wanted runs", "change the version to begin a rollout"
            )
        case states.Queued() | states.Moving() | states.Watching() | states.Promoting():
            _refuse("the rollout is under way", "abort it first, or promote it")
        case unreachable:
            assert_never(unreachable)


def _roll_back(draft: Draft, state: states.Known, verb: messages.RollBackTo) -> None:
    book = state.book
    if isinstance(state, states.Founding):
        _refuse("the first version has nothing to go back to", "change it, or delete it")
    version = _kept(book, verb.revision)
    why = f"rolled back to {version} by {verb.by}"
    under_way = isinstance(state, states.Queued | states.Moving | states.Watching)
    if version == book.stable and not isinstance(state, states.Promoting):
        if under_way:
            draft.go_home(why)
        elif isinstance(state, states.Idle):
            _refuse(f"it runs already: {version}", "name an earlier revision")
        return
    if isinstance(state, states.Promoting) and version == book.stable:
        _undo_promotion(draft, state, why)
        return
    draft.tell(told.RunDue(told.Errand(version, why, straight=True)))
    if under_way:
        draft.go_home(why, told.Ending.SUPERSEDED)


def _kept(book: states.Book, revision: str) -> Version:
    for version in (book.stable, *book.kept):
        if revision in (version.revision, version.label):
            return version
    known = ", ".join(version.revision for version in book.kept) or "none"
    raise errors.NotFound(f"no such kept revision: {revision[:80]}", hint=f"kept are: {known}")


def _refuse(message: str, hint: str) -> NoReturn:
    raise errors.Rejected(message, hint=hint)
