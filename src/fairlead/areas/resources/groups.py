"""Everything of known types that stands in one place: a resource group with all below it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead import errors
from fairlead.areas.resources import host as hosts
from fairlead.areas.resources.catalogue import Entry
from fairlead.areas.resources.domain import urls
from fairlead.areas.resources.domain.model import Json, Model
from fairlead.areas.resources.domain.reconcile.messages import ErrorClass, Failure
from fairlead.areas.resources.finding import Api, Finder

_UNTELLING = (ErrorClass.DEPENDENCY, ErrorClass.REFUSED, ErrorClass.CREDENTIALS)


@dataclass(frozen=True, slots=True)
class Found:
    """One resource."""

    model: Model
    id: str
    observed: Json


@dataclass(frozen=True, slots=True)
class Walk:
    """Down from an id, through the collections of each type that is known."""

    api: Api
    models: Sequence[Model]

    async def below(self, place: str) -> tuple[list[Found], list[str]]:
        """All of them, owners first, and what could not be listed."""
        found: list[Found] = []
        untold: list[str] = []
        for model in sorted(self.models, key=lambda each: len(urls.segments(each.type.url))):
            finder = Finder(self.api, model)
            for collection in _collections(model, [place, *(each.id for each in found)]):
                told = await self._told(finder, collection)
                if isinstance(told, Failure):
                    untold.append(f"{collection}: {told.message}")
                else:
                    found += told
        return found, untold

    async def _told(self, finder: Finder, collection: str) -> list[Found] | Failure:
        if urls.fits(finder.model.type.url, collection):
            return await self._one(finder, collection)
        listed = await finder.listed(collection)
        if isinstance(listed, Failure):
            if listed.kind not in _UNTELLING:
                raise errors.Unavailable(
                    f"the API does not list {collection}: {listed.message}", hint="try again"
                )
            return listed
        ids = [finder.id_in(collection, each) for each in listed]
        fitting = [each for each in ids if each and urls.fits(finder.model.type.url, each)]
        found: list[Found] = []
        for id_ in fitting:
            told = await self._one(finder, id_)
            if isinstance(told, Failure):
                return told
            found += told
        return found

    async def _one(self, finder: Finder, id_: str) -> list[Found] | Failure:
        """A list may show less of it than it shows itself."""
        shown = await finder.at(id_)
        if isinstance(shown, Failure):
            return shown
        return [] if shown.observed is None else [Found(finder.model, id_, shown.observed)]


def newest(chosen: Any, entries: Iterable[Entry], place: str) -> list[Model]:
    """The types that may stand below a place, each in its newest version."""
    head = urls.segments(place)
    names = {each.type for each in entries if _may_stand(urls.segments(each.url), head)}
    found = [hosts.model(chosen, name) for name in sorted(names)]
    return [each for each in found if _may_stand(urls.segments(each.type.url), head)]


def without_children(found: Found, all_: Sequence[Found]) -> Json:
    """What a resource shows, less those of its lists whose items are resources of their own."""
    ids = {each.id.lower() for each in all_ if each is not found}
    return _without(found.observed, ids)


def _without(value: Json, ids: set[str]) -> Json:
    kept: Json = {}
    for name, each in value.items():
        if isinstance(each, list) and any(_is_one(item, ids) for item in each):
            continue
        kept[name] = _without(each, ids) if isinstance(each, dict) else each
    return kept


def _is_one(item: Any, ids: set[str]) -> bool:
    """Of its items: another place that only refers to one has no more than the id."""
    is_whole = isinstance(item, dict) and len(item) > 1
    return is_whole and str(item.get("id", "")).lower() in ids


def _collections(model: Model, owners: Sequence[str]) -> list[str]:
    """Where resources of a type may stand: in what holds them, or alone under a fixed name."""
    parts = model.type.url.strip("/").split("/")
    is_fixed = not parts[-1].startswith("{")
    if not is_fixed and not model.type.is_listed:
        return []
    made = []
    for owner in owners:
        known = owner.strip("/").split("/")
        rest = parts[len(known) : len(parts) if is_fixed else -1]
        fits = len(known) < len(parts) and _may_stand(
            urls.segments(model.type.url), urls.segments(owner)
        )
        if fits and not any(each.startswith("{") for each in rest):
            made.append("/".join(["", *known, *rest]))
    return made


def _may_stand(template: Sequence[str], head: Sequence[str]) -> bool:
    return len(head) < len(template) and all(
        part.lower() in ("{}", name.lower()) for part, name in zip(template, head, strict=False)
    )
