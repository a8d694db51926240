"""Workers on one store spend one budget, and stop together when the API says so."""

import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from fairlead.areas.resources.budgeted import Budgeted, subscription
from fairlead.areas.resources.domain.budget import BUDGET
from fairlead.clients.arm.client import Answer, Follow, Question
from fairlead.engine import service
from fairlead.engine.store import sqlite
from fairlead.engine.testing import HandWoundClock
from tests.unit.areas.resources.driven import ID


class Api:
    """Answers, and counts."""

    def __init__(self) -> None:
        self.asked, self.answer = 0, Answer(200, {})

    async def ask(self, _: Question) -> Answer:
        self.asked += 1
        return self.answer

    async def follow(self, _: Follow, correlation: str = "") -> Answer:
        del correlation
        return self.answer


@contextlib.asynccontextmanager
async def workers(
    folder: Path, api: Api, wall: HandWoundClock
) -> AsyncIterator[tuple[Budgeted, Budgeted]]:
    async with contextlib.AsyncExitStack() as stack:
        made = []
        for _ in range(2):
            store = sqlite.SqliteStore(folder / "store.db", [BUDGET.name])
            store.migrate()
            engine = service.Engine(service.Parts(store, (BUDGET,), wall=wall), perform=False)
            await stack.enter_async_context(engine.running())
            made.append(Budgeted(api, "a", {"reads": 2400, "writes": 1200}, engine))
        yield made[0], made[1]


@pytest.mark.parametrize(("method", "most"), [("GET", 200), ("PUT", 100)])
async def test_two_workers_spend_no_more_than_one_would(
    method: str, most: int, tmp_path: Path
) -> None:
    api, wall = Api(), HandWoundClock()
    async with workers(tmp_path, api, wall) as both:
        for _ in range(most):
            for each in both:
                answer = await each.ask(Question(method, ID, "1"))

        assert answer.status == 429
        assert answer.retry_after is not None
        assert api.asked == most
        wall.advance(timedelta(minutes=1))
        for _ in range(most):
            for each in both:
                await each.ask(Question(method, ID, "1"))
        assert api.asked == most + most / 5


async def test_what_the_api_refuses_stops_all_workers_as_long_as_it_says(tmp_path: Path) -> None:
    api, wall = Api(), HandWoundClock()
    api.answer = Answer(429, None, retry_after=timedelta(seconds=50))
    async with workers(tmp_path, api, wall) as (one, other):
        for each in (one, one, other, other):
            assert (await each.ask(Question("GET", ID, "1"))).status == 429
        assert api.asked == 1

        api.answer = Answer(200, {})
        wall.advance(timedelta(seconds=51))
        assert (await other.ask(Question("GET", ID, "1"))).status == 200
        assert (await one.ask(Question("PUT", ID, "1"))).status == 200


async def test_another_subscription_has_its_own(tmp_path: Path) -> None:
    api, wall = Api(), HandWoundClock()
    async with workers(tmp_path, api, wall) as (one, _):
        for _ in range(101):
            await one.ask(Question("PUT", ID, "1"))
        elsewhere = ID.replace("/s/", "/t/", 1)

        assert (await one.ask(Question("PUT", elsewhere, "1"))).status == 200


async def test_without_an_engine_nothing_is_counted() -> None:
    api = Api()
    alone = Budgeted(api, "a", {"reads": 12, "writes": 12})
    for _ in range(50):
        assert (await alone.ask(Question("GET", ID, "1"))).status == 200


def test_a_subscription_is_read_from_the_id() -> None:
    assert subscription(ID) == "s"
    assert subscription("/robots/7") == ""
    assert subscription("/subscriptions") == ""
