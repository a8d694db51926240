"""The population by our own share, from a file that a release writes or a ConfigMap brings."""

import asyncio
import contextlib
from pathlib import Path

import msgspec
import structlog

from fairlead import errors
from fairlead.areas.content.domain import population
from fairlead.areas.content.domain.population import Channel, Population

_EVERY_SECONDS = 1.0
_MOST_BYTES = 4096
_log = structlog.get_logger(__name__)


class _Words(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    salt: str
    share: str
    canary: str = ""


class OwnShare:
    """Reads the file again whenever it changed; keeps what it knew where it makes no sense."""

    def __init__(self, file: Path | None, canary: str) -> None:
        self._file = file
        self._canary = canary
        self._population = Population("")
        self._raw = b""
        self.degraded = ""

    def channel(self, identity: str) -> Channel:
        return self._population.channel(identity)

    async def start(self) -> None:
        await self.refresh()

    async def keep(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            await self.refresh()

    async def refresh(self) -> None:
        if self._file is None:
            return
        try:
            raw = await asyncio.to_thread(_read, self._file)
            if raw != self._raw or self.degraded:
                # A file may be older than this instance: what it says of another canary is over.
                self._population = parse(raw).of(self._canary)
                self._raw = raw
                share = population.shown_share(self._population.share)
                _log.info("population_changed", share=share, salt=self._population.salt)
            self.degraded = ""
        except (errors.Rejected, OSError) as error:
            said = f"cannot read the share: {self._file}: {error}"
            if said != self.degraded:
                _log.warning("population_degraded", reason=said)
            self.degraded = said


def parse(raw: bytes) -> Population:
    """From `{"salt": "1.0.2", "share": "12.5"}`, where wanted with the canary that is meant."""
    try:
        words = msgspec.json.decode(raw, type=_Words)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = 'write {"salt": "1.0.2", "share": "12.5"}'
        raise errors.Rejected(f"not a share: {error}", hint=hint) from error
    return Population(words.salt, population.parse_share(words.share), words.canary)


def encoded(chosen: Population) -> bytes:
    share = population.shown_share(chosen.share)
    return msgspec.json.encode(_Words(chosen.salt, share, chosen.canary))


def write(file: Path, chosen: Population) -> None:
    """Whole or not at all: a reader in between finds the one before."""
    beside = file.with_name(f".{file.name}.new")
    beside.write_bytes(encoded(chosen))
    with contextlib.suppress(OSError):
        beside.chmod(0o644)
    beside.replace(file)


def _read(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(_MOST_BYTES)
