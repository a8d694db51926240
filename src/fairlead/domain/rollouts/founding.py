"""The first version: made ready, then given the route. There is nothing to compare it with."""

from fairlead.domain.rollouts import events as told
from fairlead.domain.rollouts import sight
from fairlead.domain.rollouts.draft import Draft, is_fresh
from fairlead.domain.traffic.routes import AT_HOME


def advance(draft: Draft) -> None:
    book = draft.book
    if not is_fresh(book) or book.sight is None:
        return
    if book.route_order:
        if book.shown:
            draft.tell(told.WentLive(draft.now))
    elif sight.is_ready(book.sight.primary, book.stable.revision, book.full):
        # A route to nothing is an error page: the pods come first.
        draft.ask_route(AT_HOME, "the first version is ready")
