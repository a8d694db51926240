"""The first version: made ready, then given the route. There is nothing to compare it with."""

from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import sight, states
from fairlead.domain.rollouts.draft import Draft, is_fresh
from fairlead.domain.traffic.routes import AT_HOME


def advance(draft: Draft) -> None:
    book = draft.book
    if not is_fresh(book) or book.sight is None:
        return
    pods = book.sight.primary
    asleep = book.replicas == 0 and pods is not None and pods.revision == book.stable.revision
    if book.route_order:
        if book.shown and (asleep or _stands(book)):
            draft.tell(told.WentLive(draft.now))
    elif asleep or _stands(book):
        # A route to nothing is an error page: the pods come first.
        draft.ask_route(AT_HOME, "the first version is ready")


def _stands(book: states.Book) -> bool:
    pods = book.sight.primary if book.sight else None
    return sight.is_ready(pods, book.stable.revision, book.full)
