"""News to one address of the operator's choice, by POST; nothing where none is set."""

import contextlib
from collections.abc import AsyncIterator

import msgspec

from fairlead.checks.provider import Provider, World
from fairlead.checks.subject import News
from fairlead.clients import webhooks
from fairlead.clients.webhooks import Call, Hooks
from fairlead.settings import MeasureSettings


class WebhookNotifier:
    """The port `Notifier`."""

    def __init__(self, hooks: Hooks, url: str) -> None:
        self._hooks = hooks
        self._url = url

    async def notify(self, news: News) -> None:
        if not self._url:
            return
        told = {"rollout": news.name, "kind": news.kind, "text": news.text, "at": news.at}
        key = webhooks.key(news.name, news.kind, news.text, news.at.isoformat())
        reply = await self._hooks.call(Call(self._url, key, msgspec.json.encode(told)))
        if reply.status not in webhooks.ACCEPTED:
            raise webhooks.refusal(self._url, reply)


def provider(chosen: MeasureSettings) -> Provider[WebhookNotifier]:
    @contextlib.asynccontextmanager
    async def opened(world: World) -> AsyncIterator[WebhookNotifier]:
        yield WebhookNotifier(world.hooks, chosen.hooks_news_url)

    return Provider(opened)
