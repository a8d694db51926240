"""Which process reconciles which namespace, when one is not enough."""

import dataclasses
import hashlib

from fairlead.errors import Rejected
from fairlead.kubernetes.objects import Key


@dataclasses.dataclass(frozen=True, slots=True)
class Shard:
    """One part of all namespaces; each part has a lease and so a leader of its own."""

    index: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise Rejected(
                f"no such shard of {self.count}: {self.index}", hint="shards count from 0"
            )

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def owns(self, key: Key) -> bool:
        return shard_of(key.namespace, self.count) == self.index

    def lease(self, name: str) -> str:
        """The lease to hold for this part.

        Shards of two different counts would overlap, so the count is changed only while none
        runs; the names tell two counts apart, that a person may see it.
        """
        return name if self.count == 1 else f"{name}-{self.index}-of-{self.count}"


def shard_of(namespace: str, count: int) -> int:
    """The same on every machine and in every release, unlike Python's own hash."""
    seen = hashlib.sha256(namespace.encode()).digest()
    return int.from_bytes(seen[:8], "big") % count
