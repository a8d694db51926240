"""Places for effects: whatever hangs, other kinds and other streams still get theirs.

A kind is a queue with a type of effect. Half of a worker's places are shared out in advance, the
same number to each kind; the other half goes to whoever comes first. So a kind whose every effect
hangs fills its own places and the common ones, and no more. Of what a kind can have, one stream
gets at most half.

Effects beyond that stay in the store, held by nobody: nothing waits in memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.engine import batch, messages

Kind = tuple[str, type]
"""A queue and a type of effect."""


@dataclass(slots=True)
class _Bulkhead:
    """The places of one kind."""

    reserve: int
    most: int
    used: int = 0
    streams: dict[int, int] = field(default_factory=dict)
    """Places in use, by stream."""

    most_of_one: int = field(init=False)
    """How many places one stream may have."""

    def __post_init__(self) -> None:
        self.most_of_one = (self.most + 1) // 2


class Bulkheads:
    """Who may start. Changed on the event loop; `rooms` and `busy` may be asked by any thread."""

    def __init__(self, places: int, limits: Mapping[Kind, int | None]) -> None:
        reserve = places // (2 * len(limits)) if limits else 0
        self._common = places - reserve * len(limits)
        most = reserve + self._common
        self._kinds = {
            kind: _Bulkhead(min(reserve, limit or most), min(most, limit or most))
            for kind, limit in limits.items()
        }
        self._taken = 0
        """Common places in use."""

        self._placed: dict[messages.Hold, _Bulkhead] = {}

    def rooms(self) -> dict[Kind, int]:
        """How many more of each kind this worker can take on."""
        return {kind: self._room(each) for kind, each in self._kinds.items()}

    def room(self, kind: Kind) -> int:
        return self._room(self._kinds[kind])

    def used(self) -> dict[Kind, int]:
        """How many of each kind are being performed."""
        return {kind: each.used for kind, each in self._kinds.items()}

    def busy(self, kind: Kind) -> list[int]:
        """Streams that have all the places of this kind that one may have."""
        each = self._kinds[kind]
        # A copy: the event loop may change it while a writer's thread looks.
        return [stream for stream, used in dict(each.streams).items() if used >= each.most_of_one]

    def enter(self, asked: batch.PendingEffect) -> bool:
        """Take a place; False where there is none."""
        each = self._kinds[asked.queue, type(asked.effect)]
        hold = asked.hold
        before = each.streams.get(hold.stream, 0)
        if before >= each.most_of_one:
            return False
        if each.used >= each.reserve:
            if self._is_full(each):
                return False
            self._taken += 1
        each.used += 1
        each.streams[hold.stream] = before + 1
        self._placed[hold] = each
        return True

    def leave(self, hold: messages.Hold) -> bool:
        """Give a place back; whether that made room where there was none."""
        each = self._placed.pop(hold, None)
        if each is None:
            return False
        before = each.streams.pop(hold.stream)
        was_full = before >= each.most_of_one or (each.used >= each.reserve and self._is_full(each))
        each.used -= 1
        if each.used >= each.reserve:
            self._taken -= 1
        if before > 1:
            each.streams[hold.stream] = before - 1
        return was_full

    def _is_full(self, each: _Bulkhead) -> bool:
        """Asked of a kind that has used up its own places."""
        return self._taken >= self._common or each.used >= each.most

    def _room(self, each: _Bulkhead) -> int:
        room = self._common - self._taken
        if each.used < each.reserve:
            room += each.reserve - each.used
        return min(room, each.most - each.used)
