"""Where a resource is: at its id, or where our mark is among all, if the API gives the ids."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from fairlead.areas.resources import responses
from fairlead.areas.resources.domain import marks, merging, references, requests, urls
from fairlead.areas.resources.domain.delta import Change
from fairlead.areas.resources.domain.hooks import Occasion, Point
from fairlead.areas.resources.domain.model import NOTHING, Json, Model, found
from fairlead.areas.resources.domain.reconcile.messages import (
    Declared,
    ErrorClass,
    Failure,
    LastApplied,
)
from fairlead.clients.arm.client import Answer, Follow, Question

_NO_BODY = Failure(ErrorClass.TRANSIENT, "the API shows no resource")
_NO_LIST = Failure(ErrorClass.REFUSED, "the API lists its resources in no way that is understood")
_UNKNOWN = "it may have been made already, and the API has no way to tell"
_ASKS = Failure(
    ErrorClass.REFUSED,
    f"{_UNKNOWN}: if you find it, declare it by its id; if not, delete this and apply it anew",
    unknown=True,
)
_MOST_PAGES = 1000
_LISTS = ("value", "items", "data", "results")


class Api(Protocol):
    """Where resources are."""

    async def ask(self, question: Question) -> Answer: ...

    async def follow(self, at: Follow, correlation: str = "") -> Answer: ...


class Shown(NamedTuple):
    """What the API has; None where it has none."""

    observed: Json | None
    etag: str = ""
    given: str = ""
    """Its id, where that is the API's to give."""


class Finder(NamedTuple):
    """Asks one API for one type."""

    api: Api
    model: Model
    correlation: str = ""

    def can_search(self, declared: Declared) -> bool:
        return self.model.type.is_listed and marks.path(self.model, declared.mark) is not None

    async def shown(self, declared: Declared, last: LastApplied) -> Shown | Failure:
        if not urls.is_unmade(declared.id):
            return await self.at(declared.id)
        if last.given:
            there = await self.at(last.given)
            if isinstance(there, Failure) or there.observed is not None:
                return there
        if self.can_search(declared):
            return await self._searched(declared)
        if last.creation and not self.model.type.repeat_header:
            return _ASKS
        return Shown(None)

    async def at(self, id_: str) -> Shown | Failure:
        answer = await self.api.ask(self._question(id_))
        if responses.is_absent(answer):
            return Shown(None)
        if answer.status != HTTPStatus.OK:
            return self.failure(answer)
        if not isinstance(answer.body, dict):
            return _NO_BODY
        return Shown(self.model.hooks.observed(id_, answer.body), answer.etag, id_)

    async def joined(self, id_: str, observed: Json) -> tuple[Json, list[str]]:
        """With what further calls tell, and why some of them told nothing."""
        warnings, changes = [], []
        for each in self.model.hooks.joins:
            answer = await self.api.ask(self._question(f"{id_}/{each.path.strip('/')}"))
            if answer.status == HTTPStatus.OK:
                changes.append(Change(tuple(each.into.split(".")), answer.body, ""))
            else:
                warnings.append(f"{each.path}: {responses.failure(answer).message}")
        return merging.merged(observed, changes), warnings

    def failure(self, answer: Answer) -> Failure:
        """By the class that a hook gives it, if one does."""
        plain = responses.failure(answer)
        code, message = responses.said(answer.body)
        about = {"status": int(answer.status), "code": code, "message": message}
        heard = self.model.hooks.run(
            Occasion(Point.CLASSIFY_ERROR, self.model.type.type, about=about)
        )
        return replace(plain, kind=ErrorClass(heard.about.get("class", plain.kind)))

    async def listed(self, collection: str) -> list[Json] | Failure:
        """All of them, or why that cannot be said."""
        items: list[Json] = []
        async for page in self._pages(collection):
            if isinstance(page, Failure):
                return page
            items += page
        return items

    def given(self, declared: Declared, answer: Answer) -> str:
        """The id that the answer to a creation tells; empty where it tells none."""
        for each in (answer.location, self.id_in(urls.within(declared.id), answer.body)):
            if each and urls.fits(self.model.type.url, each) and not urls.is_unmade(each):
                return each
        return ""

    def id_in(self, collection: str, body: Any) -> str:
        """Of what is shown: under the name that the URL has for it, or as `id` or `name`."""
        last = self.model.type.url.rpartition("/")[2].strip("{}")
        for name in (last, "id", "name"):
            said = body.get(name) if isinstance(body, Mapping) else None
            if isinstance(said, str) and said.startswith("/"):
                return said
            if isinstance(said, str | int) and not isinstance(said, bool) and said != "":
                return f"{collection}/{quote(str(said), safe='@:.~()')}"
        return ""

    async def _searched(self, declared: Declared) -> Shown | Failure:
        listed = await self.listed(urls.within(declared.id))
        if isinstance(listed, Failure):
            return listed
        mark = declared.mark
        ours = [each for each in listed if marks.bears(self.model, mark, declared.id, each)]
        if not ours:
            return Shown(None)
        if len(ours) > 1:
            return Failure(ErrorClass.REFUSED, f"our mark is on several of them: {len(ours)}")
        given = self.id_in(urls.within(declared.id), ours[0])
        if not given or not urls.fits(self.model.type.url, given):
            return Failure(ErrorClass.REFUSED, "it is there, and the API does not show its id")
        return await self.at(given)

    async def _pages(self, collection: str) -> AsyncIterator[list[Json] | Failure]:
        answer = await self.api.ask(self._question(collection))
        for _ in range(_MOST_PAGES):
            if answer.status != HTTPStatus.OK:
                yield responses.failure(answer)
                return
            items, link = _page(answer.body, self.model.type.paging)
            if items is None:
                yield _NO_LIST
                return
            yield items
            link = link or answer.next_page
            if not link:
                return
            answer = await self.api.follow(Follow("page", link), self.correlation)
        yield _NO_LIST

    def _question(self, id_: str) -> Question:
        version = self.model.type.version
        return Question("GET", id_, version, correlation=self.correlation)


async def outputs(
    api: Api, model: Callable[[str, str], Model], declared: Declared, correlation: str = ""
) -> Mapping[references.Output, Any] | Failure:
    """What its properties take from others."""
    known: dict[references.Output, Any] = {}
    for each in set(references.outputs(declared.properties)):
        type_, _, version = each.type.partition("@")
        of = model(type_, version)
        if not urls.fits(of.type.url, each.id):
            return Failure(ErrorClass.REFUSED, f"not an id of {of.type.type}: {each.id[:80]}")
        path = tuple(each.path.split("."))
        if of.has_secret(of.place(path), None):
            return Failure(ErrorClass.REFUSED, f"a secret is no output: {each.path}")
        shown = await Finder(api, of, correlation).at(each.id)
        if isinstance(shown, Failure):
            return shown
        value = NOTHING if shown.observed is None else found(shown.observed, path)
        if value is NOTHING or value is None:
            told = f"it takes {each.path} of what does not show it yet: {each.id}"
            return Failure(ErrorClass.DEPENDENCY, told)
        known[each] = requests.without_secrets(of, path, value)
    return known


def _page(body: Any, paging: str | None) -> tuple[list[Json] | None, str]:
    """Its items and the link to the next; None where it is not known whether there are more."""
    if isinstance(body, list):
        return [each for each in body if isinstance(each, dict)], ""
    if not isinstance(body, dict):
        return None, ""
    lists = [name for name, each in body.items() if isinstance(each, list)]
    name = next((each for each in _LISTS if each in lists), lists[0] if len(lists) == 1 else "")
    link = body.get(paging) if paging else ""
    more = [each for each in body if each != paging and _says_more(each) and body[each]]
    if not name or (more and not link):
        return None, ""
    return [each for each in body[name] if isinstance(each, dict)], str(link or "")


def _says_more(name: str) -> bool:
    folded = name.lower()
    return any(word in folded for word in ("next", "cursor", "more", "continuation", "token"))
