"""An API asked within its budget: what would be too much is answered as the API itself would."""

import asyncio
import datetime as dt
import secrets
from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec

from fairlead.areas.resources.domain import budget
from fairlead.areas.resources.finding import Api
from fairlead.clients.arm.client import Answer, Follow, Question
from fairlead.engine import service, visibility
from fairlead.engine.messages import CommandId

_READS = frozenset({"GET", "HEAD"})
_REFUSED = dt.timedelta(seconds=30)
_SUBSCRIPTIONS = "subscriptions"


@dataclass(slots=True)
class _Hand:
    """What this worker drew of one budget and did not spend yet."""

    left: int = 0
    until: dt.datetime | None = None
    """Drawn in vain: nothing is there before then."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class Budgeted:
    """Spends what all workers on a store share; without an engine, as much as is asked for."""

    api: Api
    place: str
    hourly: dict[budget.Kind, int]
    """0: as much as one likes."""

    engine: service.Engine | None = None
    _worker: str = field(default_factory=lambda: secrets.token_hex(8))
    _hands: dict[tuple[str, budget.Kind], _Hand] = field(default_factory=dict)

    async def ask(self, question: Question) -> Answer:
        kind: budget.Kind = "reads" if question.method in _READS else "writes"
        key = (subscription(question.id), kind)
        wait = await self._spent(*key)
        if wait is not None:
            return _too_much(wait, f"{self.hourly[kind]:,} {kind} an hour")
        answer = await self.api.ask(question)
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            await self._paused(*key, answer.retry_after or _REFUSED)
        return answer

    async def follow(self, at: Follow, correlation: str = "") -> Answer:
        """Where an operation is told stands in no subscription: the API paces it by Retry-After."""
        return await self.api.follow(at, correlation)

    async def _spent(self, of: str, kind: budget.Kind) -> dt.timedelta | None:
        """Take one; how long to wait where there is none."""
        if self.engine is None or not self.hourly[kind]:
            return None
        hand = self._hands.setdefault((of, kind), _Hand())
        # A thousand that find it empty draw once.
        async with hand.lock:
            now = self.engine.now()
            if hand.until is not None and now < hand.until:
                return hand.until - now
            if not hand.left:
                hand.until = await self._drawn(self.engine, hand, of, kind)
            if hand.until is not None:
                return hand.until - now
            hand.left -= 1
            return None

    async def _drawn(
        self, engine: service.Engine, hand: _Hand, of: str, kind: budget.Kind
    ) -> dt.datetime | None:
        name, hourly = budget.stream(self.place, of, kind), self.hourly[kind]
        draw = budget.Draw(self._worker, hourly)
        taken = await engine.observe(name, draw, CommandId(f"draw {secrets.token_hex(16)}"))
        view = await engine.read(lambda session: visibility.find(session, name))
        purse = msgspec.convert(view.data, budget.Purse) if view else budget.Purse()
        hand.left = purse.granted.get(self._worker, 0) if taken.events else 0
        if hand.left:
            return None
        now = engine.now()
        return now + budget.next_draw(purse, hourly, now)

    async def _paused(self, of: str, kind: budget.Kind, span: dt.timedelta) -> None:
        if self.engine is None or not self.hourly[kind]:
            return
        hand, until = self._hands[of, kind], self.engine.now() + span
        hand.left, hand.until = 0, until
        name = budget.stream(self.place, of, kind)
        once = CommandId(f"pause {secrets.token_hex(16)}")
        await self.engine.observe(name, budget.Pause(until), once)


def subscription(id_: str) -> str:
    """That an id stands in; empty where it stands in none."""
    parts = id_.strip("/").split("/")
    return parts[1].lower() if len(parts) > 1 and parts[0].lower() == _SUBSCRIPTIONS else ""


def _too_much(wait: dt.timedelta, limit: str) -> Answer:
    said = {"code": "TooManyRequests", "message": f"the budget is used up: {limit}"}
    return Answer(HTTPStatus.TOO_MANY_REQUESTS, {"error": said}, retry_after=wait)
