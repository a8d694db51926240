"""News over the web."""

import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from fairlead import errors
from fairlead.checks.notifiers.webhook import WebhookNotifier
from fairlead.checks.subject import News
from fairlead.clients.webhooks import Hooks, Manners
from tests.unit.checks.about import NOW
from tests.unit.checks.web_server import Stand, answer, standing


@contextlib.asynccontextmanager
async def telling(*answers: bytes, news: str = "") -> AsyncIterator[tuple[WebhookNotifier, Stand]]:
    hooks = Hooks(Manners(deadline_seconds=1.0))
    async with hooks.open(), standing(answers) as stand:
        yield WebhookNotifier(hooks, f"{stand.origin}{news}" if news else ""), stand


async def test_news_are_posted_where_the_operator_says() -> None:
    news = News("team/shop", "RolledBack", "errors at 7 %", NOW)

    async with telling(answer(), news="/news") as (web, stand):
        await web.notify(news)
        await web.notify(news)
    async with telling(answer()) as (quiet, nobody):
        await quiet.notify(news)

    assert json.loads(stand.heard[0].body) == {
        "rollout": "team/shop",
        "kind": "RolledBack",
        "text": "errors at 7 %",
        "at": "2030-01-01T12:00:00Z",
    }
    assert stand.heard[0].headers["webhook-id"] == stand.heard[1].headers["webhook-id"]
    assert not nobody.heard


async def test_news_that_are_refused_are_an_error_for_the_outbox() -> None:
    async with telling(answer(400, b"what?"), news="/news") as (web, _):
        with pytest.raises(errors.Rejected, match="status 400: what"):
            await web.notify(News("team/shop", "RolledBack", "x", NOW))
