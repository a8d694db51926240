"""Flags of Unleash: fetched now and then, evaluated here by the engine that its SDKs share.

Every fetched state becomes an engine of its own, put in place of the one before in one step: no
decision ever sees half of a change. What was known last stays in force while Unleash is away, and
in a file beyond a restart.
"""

import asyncio
import contextlib
import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import structlog
from yggdrasil_engine.engine import UnleashEngine

_MOST_BYTES = 16 * 1024 * 1024
_UNMODIFIED = 304
_OK = 200
_PAUSE_SECONDS = 0.5
"""Between two tries of a start."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Access:
    """Where Unleash is, and as whom it is asked."""

    url: str
    """Up to `/api`."""

    token: str = field(repr=False)
    app: str = "fairlead"
    poll_seconds: float = 15.0
    file: Path | None = None
    """Keeps what was known last."""


class Flags:
    """The flags of one Unleash; while nothing is known of one, it is off."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._engine: UnleashEngine | None = None
        self._etag = ""
        self.degraded = "Unleash was not asked yet"
        """Why the flags are those of an earlier time; empty where they are the present ones."""

    def enabled(self, flag: str, user: str) -> bool:
        if self._engine is None:
            return False
        now = datetime.now(UTC).isoformat()
        context = {"userId": user, "appName": self._access.app, "currentTime": now}
        return bool(self._engine.is_enabled(flag, {**context, "properties": {}}).is_enabled)

    async def start(self, patience_seconds: float) -> None:
        """Ask, but wait no longer than that; then go by the file, or by nothing."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_seconds):
                await self.refresh(patience_seconds)
                while self.degraded:
                    await asyncio.sleep(_PAUSE_SECONDS)
                    await self.refresh(patience_seconds)
        if self._engine is None and self._access.file is not None:
            with contextlib.suppress(OSError, ValueError):
                kept = await asyncio.to_thread(self._access.file.read_bytes)
                self._engine = _engine(kept)
                _log.warning("unleash_last_known", file=str(self._access.file))

    async def keep(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(self._access.poll_seconds)
            await self.refresh(self._access.poll_seconds)

    async def refresh(self, patience_seconds: float) -> None:
        try:
            async with asyncio.timeout(patience_seconds):
                await self._fetch()
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            # Never the address as it was given: it may hold a password.
            self.degraded = f"Unleash does not answer: {type(error).__name__}"
            _log.warning("unleash_unavailable", reason=self.degraded)
        else:
            self.degraded = ""

    async def _fetch(self) -> None:
        headers = {
            "Authorization": self._access.token,
            "Unleash-AppName": self._access.app,
            "Unleash-Client-Spec": "5.1.9",
            **({"If-None-Match": self._etag} if self._etag else {}),
        }
        url = f"{self._access.url.rstrip('/')}/client/features"
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(url, allow_redirects=False) as answer,
        ):
            if answer.status == _UNMODIFIED and self._engine is not None:
                return
            if answer.status != _OK:
                raise ValueError(f"HTTP {answer.status}")
            raw = await answer.content.read(_MOST_BYTES + 1)
            while len(raw) <= _MOST_BYTES and (more := await answer.content.read(_MOST_BYTES)):
                raw += more
            if len(raw) > _MOST_BYTES:
                raise ValueError("too many flags")
            self._engine = _engine(raw)
            self._etag = answer.headers.get("ETag", "")
        if self._access.file is not None:
            await asyncio.to_thread(_keep, self._access.file, raw)


def _engine(raw: bytes) -> UnleashEngine:
    """ValueError where the bytes are no state: a wrong address must not turn every flag off."""
    made = UnleashEngine()
    try:
        names = {each["name"] for each in json.loads(raw)["features"]}
        made.take_state(raw.decode())
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("no flags") from error
    # What it cannot read it drops without a word, and every flag would be off.
    if {each.name for each in made.list_known_toggles()} != names:
        raise ValueError("flags of an odd shape")
    return made


def _keep(file: Path, raw: bytes) -> None:
    # Each process its own: replicas of one machine keep the same file.
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    # A full disk costs the next start its memory, not this one its flags.
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(raw)
        beside.replace(file)
    except OSError as error:
        _log.warning("unleash_not_kept", file=str(file), reason=error.strerror)
