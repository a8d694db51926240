"""A gate behind an address: asked by POST, open or closed by the status and the JSON of its answer.

Status 200 to 204 opens it unless it says `"open": false`; 403, 409 and 423 keep it closed.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from fairlead.checks.provider import Problem, Provider, World, tried
from fairlead.checks.spec import Check
from fairlead.checks.subject import Names, Subject, Version
from fairlead.clients import webhooks
from fairlead.clients.webhooks import Call, Hooks, Hosts, Reply
from fairlead.settings import MeasureSettings

_CLOSED = (HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT, HTTPStatus.LOCKED)


class WebhookGate:
    """The port `Gate`."""

    def __init__(self, hooks: Hooks, hosts: Hosts) -> None:
        self._hooks = hooks
        self._hosts = hosts

    async def is_open(self, check: Check, about: Subject) -> tuple[bool, str]:
        self._hosts.check(check.query)
        body = msgspec.json.encode(_question(check, about))
        key = webhooks.key(about.name, check.name, str(about.ticket), about.since.isoformat())
        reply = await self._hooks.call(Call(check.query, key, body))
        if reply.status in _CLOSED:
            return False, _said(reply)
        if reply.status not in webhooks.ACCEPTED:
            raise webhooks.refusal(check.query, reply)
        return _opens(reply), _said(reply)


def provider(chosen: MeasureSettings) -> Provider[WebhookGate]:
    hosts = Hosts.read(chosen.hooks_hosts)

    def problems(check: Check, release: str, names: Names) -> Iterator[Problem]:
        del release, names
        yield from tried("query", lambda: hosts.check(check.query))

    @contextlib.asynccontextmanager
    async def opened(world: World) -> AsyncIterator[WebhookGate]:
        yield WebhookGate(world.hooks, hosts)

    return Provider(opened, problems)


def _question(check: Check, about: Subject) -> dict[str, Any]:
    return {
        "rollout": about.name,
        "check": check.name,
        "when": check.when.value,
        "weight": about.weight,
        "since": about.since,
        "primary": _version(about.primary),
        "canary": _version(about.canary),
    }


def _version(version: Version) -> dict[str, str]:
    return {"revision": version.revision, "label": version.label}


def _content(reply: Reply) -> Mapping[str, Any]:
    try:
        content = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _opens(reply: Reply) -> bool:
    # Only a plain no closes what the status opened: an answer without a word is a yes.
    return _content(reply).get("open") is not False


def _said(reply: Reply) -> str:
    reason = _content(reply).get("reason")
    if isinstance(reason, str):
        return Reply(reply.status, reason.encode()).words
    return reply.words or f"status {reply.status}"
