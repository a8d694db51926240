"""What a release needs of the world. Every call may come twice; the last one counts."""

from enum import StrEnum
from typing import NamedTuple, Protocol

from fairlead.areas.content.domain.population import Population
from fairlead.areas.content.domain.release.place import Place, Versions


class Progress(StrEnum):
    """How far a deployment has come."""

    WAITING = "waiting"
    READY = "ready"
    FAILED = "failed"
    """It will not become ready by waiting."""


class Observed(NamedTuple):
    """How far a deployment is, and what holds it up."""

    progress: Progress
    reason: str = ""


class ShareWriter(Protocol):
    """Who lets people into the canary."""

    async def set(self, name: str, place: Place, chosen: Population) -> None:
        """Let this share in; it is in force for whoever asks from now on when this returns."""
        ...


class Deployer(Protocol):
    """Where the service runs."""

    async def deploy(self, name: str, place: Place, versions: Versions) -> Observed:
        """Let every instance have these versions; do not wait for it.

        An old instance goes only when a new one is ready with both versions. READY means that
        none with other versions is left.
        """
        ...
