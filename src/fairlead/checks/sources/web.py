"""A number on a page: read by GET, and found in its JSON by what stands after # in the address."""

import contextlib
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from http import HTTPStatus
from urllib.parse import quote, unquote, urldefrag

import msgspec

from fairlead import errors
from fairlead.analysis import conditions
from fairlead.checks import pointer, queries
from fairlead.checks.provider import Problem, Provider, World, tried
from fairlead.checks.spec import Check, When
from fairlead.checks.subject import Names, Naming, Side, Subject
from fairlead.clients import webhooks
from fairlead.clients.prometheus import templates
from fairlead.clients.webhooks import Call, Hooks, Hosts
from fairlead.settings import MeasureSettings

_AUTHORITY = re.compile(r"https?://[^/?#]*[/?]")


class WebSource:
    """The port `MetricSource`."""

    def __init__(self, hooks: Hooks, hosts: Hosts, naming: Naming) -> None:
        self._hooks = hooks
        self._hosts = hosts
        self._naming = naming

    async def ask(self, check: Check, about: Subject) -> conditions.Answer:
        try:
            return await self._read(check, about)
        except errors.FairleadError as error:
            return conditions.Unanswered(f"{error.message}; {error.hint}")

    async def _read(self, check: Check, about: Subject) -> conditions.Answer:
        side = Side.PRIMARY if check.when is When.START else Side.CANARY
        _, given = queries.arguments(self._naming, about, side, check.span)
        url, at = address(check.query, given)
        self._hosts.check(url)
        key = webhooks.key(about.name, check.name, str(about.ticket), about.since.isoformat())
        reply = await self._hooks.call(Call(url, key))
        if reply.status == HTTPStatus.NO_CONTENT:
            return conditions.Silent("the page has no content")
        if reply.status != HTTPStatus.OK:
            raise webhooks.refusal(url, reply)
        try:
            content = msgspec.json.decode(reply.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise errors.Rejected(
                f"{webhooks.shown(url)} does not answer in JSON: {reply.words}",
                hint="let it answer with JSON that holds the number",
            ) from error
        found = pointer.find(content, at)
        if found is None:
            return conditions.Silent(f"nothing at {at or 'the whole page'}")
        return conditions.Answered(found)


def provider(chosen: MeasureSettings) -> Provider[WebSource]:
    hosts = Hosts.read(chosen.hooks_hosts)

    def problems(check: Check, release: str, names: Names) -> Iterator[Problem]:
        del release
        given = queries.sample(check, names)
        yield from tried("query", lambda: hosts.check(address(check.query, given)[0]))

    @contextlib.asynccontextmanager
    async def opened(world: World) -> AsyncIterator[WebSource]:
        yield WebSource(world.hooks, hosts, world.naming)

    return Provider(opened, problems)


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
