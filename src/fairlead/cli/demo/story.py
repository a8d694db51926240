"""The story: version 1 goes live, version 2 takes over in steps, version 3 is rolled back."""

import asyncio
import datetime as dt
import itertools
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlead.access import intake
from fairlead.areas.rollouts import detail, requests
from fairlead.areas.rollouts.domain import coordination
from fairlead.cli.demo import errors, frames, screen, shop
from fairlead.cli.demo.load import Load, Tally
from fairlead.cli.demo.setup import DemoSetup
from fairlead.engine import visibility
from fairlead.engine.store import protocol

NAME = "shop"
SHARES = [10, 50, 100]
BAD_SHARE = SHARES[0]
CUSTOMERS_A_SECOND = 120.0
_POLL_SECONDS = 0.25
_CALM_SECONDS = 2.0
_PATIENCE_SECONDS = 120.0
_PAGE = 500
# What each version is like; every fourth answer of the third is an error.
_VERSIONS: Mapping[str, tuple[str, ...]] = {
    "v1": ("--delay-ms", "12"),
    "v2": ("--delay-ms", "8"),
    "v3": ("--delay-ms", "12", "--errors", "0.25"),
}


@dataclass(frozen=True, slots=True)
class StoryResult:
    """What happened, for the summary."""

    tally: Tally
    seconds: float
    steps: Mapping[str, list[int]]
    endings: Mapping[str, tuple[str, str]]
    """Version -> how its run ended, and why."""

    rolled_back_after: float
    """Seconds from version 3's first request to its rollback."""


def words(version: str, listen: int, pause: float) -> dict[str, Any]:
    """The file that a user would write for this version."""
    command = [sys.executable, str(Path(shop.__file__)), "--version", version]
    span = f"{int(pause * 1000)}ms"
    often = {"initialDelay": f"{int(min(pause / 2, 3) * 1000)}ms", "interval": "1s"}
    return {
        "name": NAME,
        "listen": listen,
        "version": version,
        "program": {"command": [*command, *_VERSIONS[version]], "health": "/healthz"},
        "strategy": {"steps": [10, 50], "pause": span, "bake": span},
        "checks": [
            {"name": "success", "metric": "request-success-rate", "low": 99, **often},
            {"name": "latency", "metric": "request-duration", "high": 1000, **often},
        ],
    }


async def tell(setup: DemoSetup, shown: screen.Screen, pause: float) -> StoryResult:
    """Until the last run has ended; StoryFailed where something else happens."""
    teller = _Teller(setup, shown, pause)
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS + 10 * pause):
            return await teller.tell()
    except TimeoutError as error:
        raise errors.StoryFailed(f"it did not finish in time: {teller.last_sentence}") from error


@dataclass(slots=True)
class _Teller:
    setup: DemoSetup
    shown: screen.Screen
    pause: float
    start: float = field(default_factory=time.monotonic)
    last_sentence: str = "nothing deployed"
    _last_seq: int = 0
    _under_way: str = "v1"
    _revisions: dict[str, str] = field(default_factory=dict)
    _steps: dict[str, list[int]] = field(default_factory=dict)
    _endings: dict[str, tuple[str, str]] = field(default_factory=dict)
    _moments: dict[str, dt.datetime] = field(default_factory=dict)
    _live: bool = False

    async def tell(self) -> StoryResult:
        load = Load(self.setup.shop_url, per_second=CUSTOMERS_A_SECOND)
        await self._deploy("v1")
        await self._follow(load.tally, lambda: self._live)
        async with load.running():
            self._say(f"load started: {CUSTOMERS_A_SECOND:g} requests/s")
            await self._calm(load.tally)
            for version in ("v2", "v3"):
                await self._deploy(version)
                await self._follow(load.tally, lambda: self._under_way in self._endings)
                await self._calm(load.tally)
        moments = self._moments.get("rollback v3"), self._moments.get("step v3")
        after = (moments[0] - moments[1]).total_seconds() if moments[0] and moments[1] else 0.0
        seconds = time.monotonic() - self.start
        return StoryResult(load.tally, seconds, self._steps, self._endings, after)

    async def _deploy(self, version: str) -> None:
        self._under_way = version
        content = words(version, self.setup.shop, self.pause)
        request, _ = await self.setup.deployer.deploy(intake.LOCAL, content)
        self._revisions[request.revision] = version

    async def _calm(self, tally: Tally) -> None:
        until = time.monotonic() + min(_CALM_SECONDS, self.pause)
        await self._follow(tally, lambda: time.monotonic() >= until)

    async def _follow(self, tally: Tally, over: Callable[[], bool]) -> None:
        """Show what happens until something did."""
        for _ in itertools.count():
            told, events = await self.setup.engine.read(self._read)
            for event in events:
                self._hear(event.type, event.data, event.at)
            self.last_sentence = told.rollout.sentence
            points = self.setup.numbers.recent(NAME)
            elapsed = time.monotonic() - self.start
            self.shown.draw(frames.frame(told, points, tally, self._revisions, elapsed))
            if over():
                return
            await asyncio.sleep(_POLL_SECONDS)

    def _read(self, session: protocol.Session) -> tuple[detail.Detail, list[visibility.EventView]]:
        stream = coordination.rollout_stream(NAME)
        events = list(visibility.events(session, stream, self._last_seq, _PAGE))
        self._last_seq = events[-1].seq if events else self._last_seq
        return requests.read(session, NAME, dt.datetime.now(dt.UTC)), events

    def _hear(self, kind: str, data: Mapping[str, Any], at: dt.datetime) -> None:
        """One line for what people want to hear of."""
        version = self._under_way
        match kind:
            case "WentLive":
                self._live = True
                self._say(f"{version} has all traffic")
            case "RunQueued":
                self._say(f"{version} deployed: 10 %, 50 %, then 100 % while its checks pass")
            case "StepReached":
                self._steps.setdefault(version, []).append(data["share"])
                self._moments.setdefault(f"step {version}", at)
                self._say(f"{version} has weight {data['share']} %")
            case "PromotionStarted":
                self._say(f"{version} passed every step; promoting it")
            case "RollbackStarted":
                self._moments[f"rollback {version}"] = at
                self._say(f"rolling back {version}: {data['why']}")
            case "RunEnded":
                self._endings[version] = (data["ending"], data["why"])
                self._say(_ended(version, data["ending"]))

    def _say(self, text: str) -> None:
        self.shown.say(text, time.monotonic() - self.start)


def _ended(version: str, ending: str) -> str:
    if ending == "Promoted":
        return f"{version} promoted; the previous version is stopped"
    return f"{version} rolled back; the previous version has all traffic"
