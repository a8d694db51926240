"""The population by a flag of Unleash."""

from fairlead.areas.content.domain.population import Channel
from fairlead.clients.unleash import Flags


class Flagged:
    """Whoever the flag lets in gets the canary."""

    def __init__(self, flags: Flags, toggle: str, patience_seconds: float) -> None:
        self._flags = flags
        self._toggle = toggle
        self._patience = patience_seconds

    @property
    def degraded(self) -> str:
        return self._flags.degraded

    def channel(self, identity: str) -> Channel:
        # Asked without an id, a flag with the stickiness `default` would draw lots.
        if identity and self._flags.enabled(self._toggle, identity):
            return Channel.CANARY
        return Channel.STABLE

    async def start(self) -> None:
        await self._flags.start(self._patience)

    async def keep(self) -> None:
        await self._flags.keep()
