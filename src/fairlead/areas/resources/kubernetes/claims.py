"""Which object has which resource: the first that names it, until it is gone.

Two objects that bring one resource to two specs would write it back and forth for ever.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from fairlead.errors import Rejected
from fairlead.kubernetes import objects
from fairlead.kubernetes.objects import Key, Object


class Taken(Rejected):
    """Another object has the resource."""


class Claim(NamedTuple):
    """An object that has a resource."""

    since: str
    uid: str
    key: Key


class Claims:
    """Of all objects of one operator; those of an operator of another scope are not known here."""

    def __init__(self) -> None:
        self._held: dict[str, Claim] = {}
        self._lives: Callable[[Claim], bool] = lambda _: True

    def begin(self, known: Iterable[Object], lives: Callable[[Claim], bool]) -> None:
        """Before anything is reconciled: what statuses say; of two, the older object has it."""
        found = [
            (str(id_), _claim(obj))
            for obj in known
            if (id_ := (obj.get("status") or {}).get("resourceId"))
        ]
        newest_first = sorted(found, key=lambda each: each[1], reverse=True)
        self._held = {_folded(id_): claim for id_, claim in newest_first}
        self._lives = lives

    def take(self, id_: str, obj: Object) -> None:
        """Taken where another object has it."""
        claim, holder = _claim(obj), self._held.get(_folded(id_))
        if holder is not None and holder.uid != claim.uid and self._lives(holder):
            raise Taken(f"{holder.key} has it already: {id_}", hint="delete one of the two")
        self._held[_folded(id_)] = claim


def _claim(obj: Object) -> Claim:
    since = str(objects.metadata(obj).get("creationTimestamp", ""))
    return Claim(since, objects.uid_of(obj), objects.key_of(obj))


def _folded(id_: str) -> str:
    return id_.strip("/").lower()
