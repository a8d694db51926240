"""Clusters that ask all the time, and what each of them was allowed to get at that moment.

What was allowed follows from the events of the release alone: while new instances replace old ones
both may answer, while the share is being changed both shares may hold, and an instance hears of a
new share a moment later.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec

from fairlead.areas.content.domain.population import Channel
from fairlead.areas.content.domain.release.place import NO_VERSION, Versions
from fairlead.engine.visibility import EventView

IDS = [f"cluster-{number:04}" for number in range(1000)]
PATH = "/api/gathering/v1/gathering_rules"
_AT_ONCE = 8
_PAUSE_SECONDS = 0.03
Inside = Callable[[str, str, int], Channel]
"""From salt, identity and share to the channel."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one cluster got."""

    identity: str
    began: float
    ended: float
    version: str
    trouble: str = ""


@dataclass
class Clusters:
    """A thousand of them, some at a time, for as long as the block lasts."""

    url: str
    answers: list[Answer] = field(default_factory=list)

    @contextlib.asynccontextmanager
    async def polling(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._poll(IDS[each::_AT_ONCE])) for each in range(_AT_ONCE)]
        try:
            yield
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def sweep(self) -> dict[str, str]:
        """What each gets now."""
        async with aiohttp.ClientSession() as session:
            found = [await self.ask(session, each) for each in IDS]
        return {each.identity: each.version for each in found}

    async def ask(self, session: aiohttp.ClientSession, identity: str) -> Answer:
        headers = {"User-Agent": f"insights-operator/4.17 cluster/{identity}"}
        began, version, trouble = time.time(), "", ""
        try:
            async with session.get(f"{self.url}{PATH}", headers=headers) as answer:
                body = await answer.read()
                trouble = "" if answer.status == 200 else f"HTTP {answer.status}"
                version = msgspec.json.decode(body)["version"] if not trouble else ""
        except (aiohttp.ClientError, OSError) as error:
            trouble = repr(error)
        found = Answer(identity, began, time.time(), version, trouble)
        self.answers.append(found)
        return found

    async def _poll(self, some: Sequence[str]) -> None:
        async with aiohttp.ClientSession() as session:
            for identity in itertools.cycle(some):
                await self.ask(session, identity)
                await asyncio.sleep(_PAUSE_SECONDS)


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may be in force from a moment on."""

    since: float
    versions: frozenset[Versions]
    shares: frozenset[tuple[str, int]]


def allowed(events: Iterable[EventView]) -> list[Allowed]:
    """What the release let be in force, from one event to the next."""
    versions: frozenset[Versions] = frozenset()
    shares = frozenset({("", 0)})
    asked, salt, version, number = 0, "", "", 0
    found = []
    for event in events:
        data: dict[str, Any] = event.data
        match event.type:
            case "Approved":
                version, number = data["version"], number + 1
            case "ShareRequested":
                asked = data["share"]
                salt = f"{version}-{number}" if data.get("step") is not None else salt
                shares |= {(salt, asked)}
            case "ShareSet":
                shares = frozenset({(salt, asked)})
            case "DeploymentStarted":
                versions |= {msgspec.convert(data["versions"], Versions)}
            case "Deployed":
                versions = frozenset({msgspec.convert(data["versions"], Versions)})
        found.append(Allowed(event.at.timestamp(), versions, shares))
    return found


def violations(
    answers: Iterable[Answer], history: list[Allowed], lag: float, inside: Inside
) -> Iterator[str]:
    """Every answer that no state allowed which held while it was given, or shortly before."""
    for answer in answers:
        if answer.trouble:
            took = answer.ended - answer.began
            yield f"{answer.identity}: {answer.trouble} after {took:.1f} s, at {answer.began:.1f}"
            continue
        held = [
            each
            for each, next_ in itertools.pairwise([*history, None])
            if each is not None
            and each.since <= answer.ended + 0.1
            and (next_ is None or next_.since >= answer.began - lag)
        ]
        fine = {one for each in held for one in _versions(each, answer.identity, inside)}
        if answer.version not in fine:
            yield f"{answer.identity} got {answer.version}, allowed were {sorted(fine)}"


def _versions(state: Allowed, identity: str, inside: Inside) -> Iterator[str]:
    for each, (salt, share) in itertools.product(state.versions, state.shares):
        canary = inside(salt, identity, share) is Channel.CANARY and each.canary != NO_VERSION
        yield each.canary if canary else each.stable
