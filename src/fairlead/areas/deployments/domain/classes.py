"""How much a change disturbs what runs: the ladder that evaluations climb and plans branch on."""

import enum
from collections.abc import Iterable

_LADDER = ("NOP", "PARALLEL", "BEFORE", "DOWNTIME")


class Impact(enum.Enum):
    """What a change asks of the versions that run; compared by how much it asks."""

    # Nothing to do, or nothing that the running version could notice.
    NOP = "NOP"
    # May run beside the change of version, in any order.
    PARALLEL = "PARALLEL"
    # Must be done before the new version runs; the old one lives with it.
    BEFORE = "BEFORE"
    # The old version must not run meanwhile.
    DOWNTIME = "DOWNTIME"

    @property
    def rank(self) -> int:
        """Its rung, from 0."""
        return _LADDER.index(self.value)

    def __lt__(self, other: "Impact") -> bool:
        """Whether this disturbs less."""
        return self.rank < other.rank

    def __le__(self, other: "Impact") -> bool:
        """Whether this disturbs no more."""
        return self.rank <= other.rank

    def __gt__(self, other: "Impact") -> bool:
        """Whether this disturbs more."""
        return self.rank > other.rank

    def __ge__(self, other: "Impact") -> bool:
        """Whether this disturbs no less."""
        return self.rank >= other.rank


def worst(impacts: Iterable[Impact]) -> Impact:
    """The one that disturbs most; NOP where there is none."""
    return max(impacts, default=Impact.NOP)
