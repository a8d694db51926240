"""What this process has performed, by its own word: orders, the last requests, what was answered.

A write that would change nothing but its order is not sent; here it counts as performed. Lost at
a restart, it is asked for again, and again costs nothing.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.areas.rollouts.domain.messages import EnsureVersion

Object = dict[str, Any]
STANDING_BY = "standby"
"""The part of a route at weight 0 that needed no write."""

_REMEMBERED = 20_000
_TEMPLATES = 2_000


@dataclass(slots=True)
class RolloutOrders:
    """What is remembered of one rollout."""

    orders: dict[str, int] = field(default_factory=dict)
    desired_objects: dict[str, EnsureVersion] = field(default_factory=dict)
    answered: Mapping[str, str] | None = None
    """Values of annotations by their verb; None before the first reconcile."""


class AppliedOrders:
    """One page for each rollout, by UID; the oldest are forgotten."""

    def __init__(self) -> None:
        self._pages: OrderedDict[str, RolloutOrders] = OrderedDict()
        self._templates: OrderedDict[tuple[str, str], Object] = OrderedDict()

    def order(self, uid: str, part: str) -> int:
        page = self._pages.get(uid)
        return page.orders.get(part, 0) if page else 0

    def desired(self, uid: str, part: str) -> EnsureVersion | None:
        page = self._pages.get(uid)
        return page.desired_objects.get(part) if page else None

    def perform(
        self, uid: str, part: str, order: int, desired: EnsureVersion | None = None
    ) -> None:
        page = self._page(uid)
        page.orders[part] = max(order, page.orders.get(part, 0))
        if desired is not None:
            page.desired_objects[part] = desired
        else:
            page.desired_objects.pop(part, None)

    def note(self, uid: str, part: str, number: int) -> None:
        """As it is now, also where it is lower than it was."""
        self._page(uid).orders[part] = number

    def answered(self, uid: str) -> Mapping[str, str] | None:
        page = self._pages.get(uid)
        return page.answered if page else None

    def answer(self, uid: str, done: Mapping[str, str]) -> Mapping[str, str]:
        """These too; all that were answered."""
        page = self._page(uid)
        page.answered = {**(page.answered or {}), **done}
        return page.answered

    def _page(self, uid: str) -> RolloutOrders:
        page = self._pages.setdefault(uid, RolloutOrders())
        self._pages.move_to_end(uid)
        while len(self._pages) > _REMEMBERED:
            self._pages.popitem(last=False)
        return page

    def template(self, uid: str, revision: str) -> Object | None:
        return self._templates.get((uid, revision))

    def keep_template(self, uid: str, revision: str, template: Object) -> None:
        self._templates[uid, revision] = template
        self._templates.move_to_end((uid, revision))
        while len(self._templates) > _TEMPLATES:
            self._templates.popitem(last=False)

    def forget(self) -> None:
        """A term begins: what another process did meanwhile is not known here."""
        self._pages.clear()
        self._templates.clear()
