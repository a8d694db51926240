"""What the programs of a workload wrote: asked for by version, in pieces of limited size."""

from dataclasses import dataclass
from typing import Protocol

from fairlead import errors
from fairlead.areas.rollouts import detail
from fairlead.values import one_of
from fairlead.web.services import Service

MOST_LINES = 1000
"""Of one process, in one answer."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line, and the process that wrote it."""

    source: str
    """SLOT-REVISION.NUMBER"""

    text: str


@dataclass(frozen=True, slots=True)
class LogPage:
    """Lines process by process, each in the order in which they were written."""

    lines: list[LogLine]
    next: str
    """Where to go on: what is written later comes after it."""


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Which lines of a workload."""

    name: str
    revision: str = ""
    """Also of processes that have stopped; empty: of those that run."""

    tail: int = 100
    after: str = ""
    """Instead of the last lines: those after a page."""


class Logs(Protocol):
    """Who keeps them."""

    async def read(self, request: LogRequest) -> LogPage: ...


WORKLOAD_LOGS: Service[Logs] = Service("workload logs")


def revision(told: detail.Detail, version: str) -> str:
    """The revision behind a version as people call it; NotFound where none is known by it."""
    if not version:
        return ""
    known = {told.rollout.stable: told.stable}
    known |= {run.target: run.revision for run in reversed(told.runs)}
    known |= {kept.label: kept.revision for kept in told.kept}
    if version in known:
        return known[version]
    if version in (told.desired, *known.values()):
        return version
    raise errors.NotFound(f"no such version: {version[:80]}", hint=one_of(version[:80], known))
