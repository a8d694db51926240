"""Gates, numbers and news over the web.

A gate is asked by POST: an answer with status 200 to 204 opens it unless it says `"open": false`;
403, 409 and 423 keep it closed. A number is read by GET; the part of its address after # points
into the JSON that comes back, as a JSON pointer does.
"""

import hashlib
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote, urldefrag

import msgspec

from fairlead import errors
from fairlead.adapters.measures import hooks, pointer, queries
from fairlead.adapters.measures.hooks import Call, Hooks, Hosts, Reply
from fairlead.adapters.prometheus import templates
from fairlead.domain.analysis import conditions
from fairlead.domain.rollouts import messages
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.ports import Naming
from fairlead.domain.rollouts.spec import Check, Version, When

_CLOSED = (HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT, HTTPStatus.LOCKED)
_AUTHORITY = re.compile(r"https?://[^/?#]*[/?]")
_OPEN = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT)


class WebGates:
    """The port `Gates`."""

    def __init__(self, hooks_: Hooks, hosts: Hosts, naming: Naming, news_url: str = "") -> None:
        self._hooks = hooks_
        self._hosts = hosts
        self._naming = naming
        self._news_url = news_url

    async def is_open(self, check: Check, about: messages.Measure) -> tuple[bool, str]:
        self._hosts.check(check.query)
        body = msgspec.json.encode(_question(check, about))
        key = _key(about.name, check.name, str(about.ticket), about.since.isoformat())
        reply = await self._hooks.call(Call(check.query, key, body))
        if reply.status in _CLOSED:
            return False, _said(reply)
        if reply.status not in _OPEN:
            raise _refused(check.query, reply)
        return _opens(reply), _said(reply)

    async def read(self, check: Check, about: messages.Measure) -> conditions.Answer:
        try:
            return await self._read(check, about)
        except errors.FairleadError as error:
            return conditions.Unanswered(f"{error.message}; {error.hint}")

    async def notify(self, news: messages.Notify) -> None:
        if not self._news_url:
            return
        told = {"rollout": news.name, "kind": news.kind, "text": news.text, "at": news.at}
        key = _key(news.name, news.kind, news.text, news.at.isoformat())
        reply = await self._hooks.call(Call(self._news_url, key, msgspec.json.encode(told)))
        if reply.status not in _OPEN:
            raise _refused(self._news_url, reply)

    async def _read(self, check: Check, about: messages.Measure) -> conditions.Answer:
        slot = Slot.PRIMARY if check.when is When.START else Slot.CANARY
        _, given = queries.arguments(self._naming, about, slot, check.span)
        url, at = address(check.query, given)
        self._hosts.check(url)
        key = _key(about.name, check.name, str(about.ticket), about.since.isoformat())
        reply = await self._hooks.call(Call(url, key))
        if reply.status == HTTPStatus.NO_CONTENT:
            return conditions.Silent("the page has no content")
        if reply.status != HTTPStatus.OK:
            raise _refused(url, reply)
        try:
            content = msgspec.json.decode(reply.body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise errors.Rejected(
                f"{hooks.shown(url)} does not answer in JSON: {reply.words}",
                hint="let it answer with JSON that holds the number",
            ) from error
        found = pointer.find(content, at)
        if found is None:
            return conditions.Silent(f"nothing at {at or 'the whole page'}")
        return conditions.Answered(found)


def address(query: str, given: Mapping[str, str]) -> tuple[str, str]:
    """The page and the pointer into it; what fills a place can become no other part of either."""
    page, fragment = urldefrag(query)
    authority_end = _AUTHORITY.match(page)
    for place in (*templates.PLACE.finditer(page), *templates.PLACE.finditer(fragment)):
        if authority_end is None or place.start() < authority_end.end() or place.string is fragment:
            raise errors.Rejected(
                f"argument where none may stand in an address: {place[0]}",
                hint="use it in the path or after the question mark",
            )
    url = templates.PLACE.sub(lambda place: _filled(place[1], given), page)
    return url, pointer.checked(unquote(fragment))


def _filled(name: str, given: Mapping[str, str]) -> str:
    value = templates.value(name, given)
    if set(value) <= {"."}:
        raise errors.Rejected(
            f"argument {name} is no part of an address: {value!r}", hint="leave it out"
        )
    return quote(value, safe="")


def _question(check: Check, about: messages.Measure) -> dict[str, Any]:
    return {
        "rollout": about.name,
        "check": check.name,
        "when": check.when.value,
        "share": about.share,
        "since": about.since,
        "primary": _version(about.primary),
        "canary": _version(about.canary),
    }


def _version(version: Version) -> dict[str, str]:
    return {"revision": version.revision, "label": str(version)}


def _key(*parts: str) -> str:
    """The same for every try of one question, and never used for another."""
    return f"fl_{hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]}"


def _content(reply: Reply) -> Mapping[str, Any]:
    try:
        content = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, RecursionError):
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


def _refused(url: str, reply: Reply) -> errors.FairleadError:
    said = f"{hooks.shown(url)} answers with status {reply.status}: {reply.words}"
    if reply.status == HTTPStatus.UNAUTHORIZED:
        return errors.Unauthorised(said, hint="look at the secret on both sides, and their clocks")
    return errors.Rejected(said, hint="see what it wants of us, or name another address")
