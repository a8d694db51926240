"""The story: version 1 goes live, version 2 migrates and takes over, version 3 is rolled back."""

import asyncio
import datetime as dt
import itertools
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.access import intake
from fairlead.areas.deployments.domain.spec import deployment_stream
from fairlead.areas.rollouts import detail, requests
from fairlead.areas.rollouts.domain import coordination
from fairlead.cli.demo import errors, frames, screen
from fairlead.cli.demo.load import Load, Tally
from fairlead.cli.demo.setup import DemoSetup
from fairlead.engine import messages, visibility
from fairlead.engine.store import protocol

NAME = "shop"
ENVIRONMENT = "demo"
PLACE = f"{ENVIRONMENT}/{NAME}"
"""Of its stack, and of its rollout."""

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
_FIRST_MIGRATION = """\
CREATE TABLE goods (name text PRIMARY KEY, price integer NOT NULL);
INSERT INTO goods VALUES ('rope', 12), ('anchor', 240);
"""
_SECOND_MIGRATION = """\
ALTER TABLE goods ADD COLUMN stock integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN goods.stock IS 'what can be sold now';
"""


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

    migrated_first: bool = False
    """Whether version 2's migration had run before it got its first request."""

    impacts: Mapping[str, str] = field(default_factory=dict)
    """Version -> the class that its plan's evaluation came to."""


def words(version: str, listen: int, pause: float) -> dict[str, Any]:
    """The deployment that a user would write for this version, with its files in place."""
    command = [sys.executable, "-m", "fairlead.cli.demo.stocked_shop", "--version", version]
    span = f"{int(pause * 1000)}ms"
    often = {"initialDelay": f"{int(min(pause / 2, 3) * 1000)}ms", "interval": "1s"}
    migrations = {"0001_goods.sql": _FIRST_MIGRATION}
    if version != "v1":
        migrations["0002_stock.sql"] = _SECOND_MIGRATION
    return {
        "kind": "deployment",
        "version": version,
        "environment": {"full_name": ENVIRONMENT},
        "application": {
            "name": NAME,
            "databases": [{"name": "goods", "postgres": {"migrations": "migrations"}}],
            "workload": {
                "listen": listen,
                "program": {"command": [*command, *_VERSIONS[version]], "health": "/healthz"},
                "strategy": {"steps": [10, 50], "pause": span, "bake": span},
                "checks": [
                    {"name": "success", "metric": "request-success-rate", "low": 99, **often},
                    {"name": "latency", "metric": "request-duration", "high": 1000, **often},
                ],
            },
        },
        "migrations": {"goods": migrations},
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
    _heard: dict[messages.StreamName, int] = field(default_factory=dict)
    _under_way: str = "v1"
    _revisions: dict[str, str] = field(default_factory=dict)
    _steps: dict[str, list[int]] = field(default_factory=dict)
    _endings: dict[str, tuple[str, str]] = field(default_factory=dict)
    _moments: dict[str, dt.datetime] = field(default_factory=dict)
    _impacts: dict[str, str] = field(default_factory=dict)
    _over: set[str] = field(default_factory=set)

    async def tell(self) -> StoryResult:
        load = Load(self.setup.shop_url, per_second=CUSTOMERS_A_SECOND)
        await self._deploy("v1", load.tally)
        async with load.running():
            self._say(f"load started: {CUSTOMERS_A_SECOND:g} requests/s")
            await self._calm(load.tally)
            for version in ("v2", "v3"):
                await self._deploy(version, load.tally)
                await self._calm(load.tally)
        moments = self._moments.get("rollback v3"), self._moments.get("step v3")
        after = (moments[0] - moments[1]).total_seconds() if moments[0] and moments[1] else 0.0
        seconds = time.monotonic() - self.start
        migrated, first = self._moments.get("migrated v2"), self._moments.get("begun v2")
        before = migrated is not None and first is not None and migrated <= first
        return StoryResult(
            load.tally, seconds, self._steps, self._endings, after, before, self._impacts
        )

    async def _deploy(self, version: str, tally: Tally) -> None:
        """Until its plan has ended, well or not."""
        self._under_way = version
        content = words(version, self.setup.shop, self.pause)
        await self.setup.deployer.deploy(intake.LOCAL, content)
        await self._follow(tally, lambda: version in self._over)

    async def _calm(self, tally: Tally) -> None:
        until = time.monotonic() + min(_CALM_SECONDS, self.pause)
        await self._follow(tally, lambda: time.monotonic() >= until)

    async def _follow(self, tally: Tally, over: Callable[[], bool]) -> None:
        """Show what happens until something did."""
        for _ in itertools.count():
            told, events = await self.setup.engine.read(self._read)
            for event in events:
                self._hear(event.type, event.data, event.at)
            if told is not None:
                self.last_sentence = told.rollout.sentence
                points = self.setup.numbers.recent(PLACE)
                elapsed = time.monotonic() - self.start
                self.shown.draw(frames.frame(told, points, tally, self._revisions, elapsed))
            if over():
                return
            await asyncio.sleep(_POLL_SECONDS)

    def _read(
        self, session: protocol.Session
    ) -> tuple[detail.Detail | None, list[visibility.EventView]]:
        rollout = coordination.rollout_stream(PLACE)
        deployment = deployment_stream(f"{PLACE}/{self._under_way}")
        events = [*self._news(session, rollout), *self._news(session, deployment)]
        events.sort(key=lambda event: event.at)
        if visibility.find(session, rollout) is None:
            return None, events
        return requests.read(session, PLACE, dt.datetime.now(dt.UTC)), events

    def _news(
        self, session: protocol.Session, stream: messages.StreamName
    ) -> list[visibility.EventView]:
        events = list(visibility.events(session, stream, self._heard.get(stream, 0), _PAGE))
        self._heard[stream] = events[-1].seq if events else self._heard.get(stream, 0)
        return events

    def _hear(self, kind: str, data: Mapping[str, Any], at: dt.datetime) -> None:
        """One line for what people want to hear of."""
        version = self._under_way
        match kind:
            case "Initialized":
                self._revisions[data["version"]["revision"]] = version
            case "WentLive":
                self._say(f"{version} has all traffic")
            case "RunQueued":
                self._revisions[data["pending"]["version"]["revision"]] = version
                self._moments[f"begun {version}"] = at
                self._say(f"{version} deployed: 10 %, 50 %, then 100 % while its checks pass")
            case "StepReached":
                self._steps.setdefault(version, []).append(data["weight"])
                self._moments.setdefault(f"step {version}", at)
                self._say(f"{version} has weight {data['weight']} %")
            case "PromotionStarted":
                self._say(f"{version} passed every step; promoting it")
            case "RollbackStarted":
                self._moments[f"rollback {version}"] = at
                self._say(f"rolling back {version}: {data['why']}")
            case "RunEnded":
                self._endings[version] = (data["ending"], data["why"])
                self._say(_ended(version, data["ending"]))
            case _:
                self._hear_plan(kind, data, at)

    def _hear_plan(self, kind: str, data: Mapping[str, Any], at: dt.datetime) -> None:
        """The same for its deployment, whose plan begins with the database."""
        version = self._under_way
        match kind, data.get("step"):
            case "RunStep", "PGEval":
                self._say(f"{version}: evaluating its migrations on a scratch copy")
            case "StepResult", "PGEval":
                self._say(f"{version}: {_CLASSES.get(data['impact'], data['error'])}")
                for each in data["statements"]:
                    self._say(f"    {each['impact']:8}  {each['sql']}")
                    for reason in each["reasons"]:
                        self._say(f"              {reason}")
            case "EvalJoined", _:
                self._impacts[version] = data["impact"]
            case "StepResult", "PGMigrate" if data["status"] == "DONE":
                self._moments[f"migrated {version}"] = at
                self._say(f"{version}: database migrated")
            case (("Done" | "Error" | "StackWaitFailure"), _):
                self._over.add(version)
                if version not in self._endings and kind != "Done":
                    self._endings[version] = ("Failed", data["reason"])
                    self._say(f"{version} failed: {data['reason']}")

    def _say(self, text: str) -> None:
        self.shown.say(text, time.monotonic() - self.start)


_CLASSES = {
    "NOP": "no migration is pending",
    "PARALLEL": "class PARALLEL: its migration disturbs nobody",
    "BEFORE": "class BEFORE: its migration needs no downtime, and must run first",
    "DOWNTIME": "class DOWNTIME: its migration needs the old version stopped",
}


def _ended(version: str, ending: str) -> str:
    if ending == "Promoted":
        return f"{version} promoted; the previous version is stopped"
    return f"{version} rolled back; the previous version has all traffic"
