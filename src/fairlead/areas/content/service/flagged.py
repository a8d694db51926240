"""The population by a flag of Unleash."""

from pathlib import Path

from fairlead.areas.content.domain.population import Channel
from fairlead.areas.content.settings import ContentSettings
from fairlead.clients.unleash import Access, Flags


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


def flagged(name: str, chosen: ContentSettings) -> Flagged:
    """By the settings; the flag is called as the content where they do not say it."""
    file = chosen.content_unleash_file
    access = Access(
        chosen.content_unleash_url,
        chosen.content_unleash_token,
        chosen.content_unleash_app,
        chosen.content_unleash_poll_seconds,
        Path(file) if file else None,
    )
    toggle = chosen.content_unleash_toggle or name
    return Flagged(Flags(access), toggle, chosen.content_unleash_seconds)
