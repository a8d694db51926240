"""What areas run in this process and their pages ask for, each under a key of its own type."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Service(Generic[T]):
    """The key of one service; whoever has it knows the type of what it stands for."""

    name: str


class Services:
    """The services of one process."""

    def __init__(self, known: Mapping[Service[Any], Any] | None = None) -> None:
        self._known = dict(known or {})

    def find(self, key: Service[T]) -> T | None:
        """None where nobody provides it here."""
        found: T | None = self._known.get(key)
        return found

    def provided(self, key: Service[T], service: T) -> "Services":
        """These and one more."""
        return Services({**self._known, key: service})

    def __or__(self, others: "Services") -> "Services":
        return Services({**self._known, **others._known})
