"""The story: version 1 goes live, version 2 takes over step by step, version 3 is taken back."""

import asyncio
import datetime as dt
import itertools
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlead._demo import shop
from fairlead._demo.load import Load, Tally
from fairlead.cli.demo import frames, screen, untold
from fairlead.cli.demo.stage import Stage
from fairlead.domain.rollouts import bonds, detail
from fairlead.engine import library
from fairlead.engine.store import protocol
from fairlead.intents import intake, requests

NAME = "shop"
SHARES = [10, 50, 100]
BAD_SHARE = SHARES[0]
CUSTOMERS_A_SECOND = 120.0
_LOOK_SECONDS = 0.25
_CALM_SECONDS = 2.0
_PATIENCE_SECONDS = 120.0
_PAGE = 500
# What each version is like; a quarter of the third's answers are errors.
_VERSIONS: Mapping[str, tuple[str, ...]] = {
    "v1": ("--delay-ms", "12"),
    "v2": ("--delay-ms", "8"),
    "v3": ("--delay-ms", "12", "--errors", "0.25"),
}


@dataclass(frozen=True, slots=True)
class Told:
    """What happened, for the summary."""

    tally: Tally
    seconds: float
    steps: Mapping[str, list[int]]
    endings: Mapping[str, tuple[str, str]]
    """Version -> how its run ended, and why."""

    taken_back_after: float
    """Seconds from version 3's first request to the way home."""


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


async def tell(stage: Stage, shown: screen.Screen, pause: float) -> Told:
    """Until the last version has come to its end; Untold where something else happens."""
    teller = _Teller(stage, shown, pause)
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS + 10 * pause):
            return await teller.tell()
    except TimeoutError as error:
        raise untold.Untold(f"it did not come to its end: {teller.last_sentence}") from error


@dataclass(slots=True)
class _Teller:
    stage: Stage
    shown: screen.Screen
    pause: float
    start: float = field(default_factory=time.monotonic)
    last_sentence: str = "nothing was deployed"
    _seen: int = 0
    _under_way: str = "v1"
    _revisions: dict[str, str] = field(default_factory=dict)
    _steps: dict[str, list[int]] = field(default_factory=dict)
    _endings: dict[str, tuple[str, str]] = field(default_factory=dict)
    _moments: dict[str, dt.datetime] = field(default_factory=dict)
    _live: bool = False

    async def tell(self) -> Told:
        load = Load(self.stage.shop_url, per_second=CUSTOMERS_A_SECOND)
        await self._deploy("v1")
        await self._follow(load.tally, lambda: self._live)
        async with load.running():
            self._say(f"customers arrive, {CUSTOMERS_A_SECOND:g} a second")
            await self._calm(load.tally)
            for version in ("v2", "v3"):
                await self._deploy(version)
                await self._follow(load.tally, lambda: self._under_way in self._endings)
                await self._calm(load.tally)
        home = self._moments.get("home v3"), self._moments.get("step v3")
        after = (home[0] - home[1]).total_seconds() if home[0] and home[1] else 0.0
        seconds = time.monotonic() - self.start
        return Told(load.tally, seconds, self._steps, self._endings, after)

    async def _deploy(self, version: str) -> None:
        self._under_way = version
        content = words(version, self.stage.shop, self.pause)
        wish, _ = await self.stage.deployer.deploy(intake.LOCAL, content)
        self._revisions[wish.revision] = version

    async def _calm(self, tally: Tally) -> None:
        until = time.monotonic() + min(_CALM_SECONDS, self.pause)
        await self._follow(tally, lambda: time.monotonic() >= until)

    async def _follow(self, tally: Tally, over: Callable[[], bool]) -> None:
        """Show what happens until something did."""
        for _ in itertools.count():
            told, events = await self.stage.engine.read(self._look)
            for event in events:
                self._hear(event.type, event.data, event.at)
            self.last_sentence = told.rollout.sentence
            points = self.stage.numbers.recent(NAME)
            elapsed = time.monotonic() - self.start
            self.shown.draw(frames.frame(told, points, tally, self._revisions, elapsed))
            if over():
                return
            await asyncio.sleep(_LOOK_SECONDS)

    def _look(self, session: protocol.Session) -> tuple[detail.Detail, list[library.EventView]]:
        stream = bonds.rollout_stream(NAME)
        events = list(library.events(session, stream, self._seen, _PAGE))
        self._seen = events[-1].seq if events else self._seen
        return requests.look(session, NAME, dt.datetime.now(dt.UTC)), events

    def _hear(self, kind: str, data: Mapping[str, Any], at: dt.datetime) -> None:
        """One line for what people want to hear of."""
        version = self._under_way
        match kind:
            case "WentLive":
                self._live = True
                self._say(f"{version} carries all traffic")
            case "RunQueued":
                self._say(f"{version} is deployed: 10, 50, then 100 % while its numbers hold")
            case "StepReached":
                self._steps.setdefault(version, []).append(data["share"])
                self._moments.setdefault(f"step {version}", at)
                self._say(f"{version} has {data['share']} % of the requests")
            case "PromotionBegan":
                self._say(f"{version} held at every step: it becomes the primary")
            case "HomeBegan":
                self._moments[f"home {version}"] = at
                self._say(f"{version} goes home: {data['why']}")
            case "RunEnded":
                self._endings[version] = (data["ending"], data["why"])
                self._say(_ended(version, data["ending"]))

    def _say(self, text: str) -> None:
        self.shown.say(text, time.monotonic() - self.start)


def _ended(version: str, ending: str) -> str:
    if ending == "Promoted":
        return f"{version} carries all traffic; the version before it is stopped"
    return f"{version} is gone; the version before it carries all traffic"
