"""The one request that brings a resource to its spec, with a reason for each thing in it.

PATCH where its schema has every changed path; else everything that was observed is put back with
the changes in it. What a plan prints is what is then sent.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from fairlead.areas.resources.domain import marks, merging, urls
from fairlead.areas.resources.domain.delta import Change
from fairlead.areas.resources.domain.model import Json, Model, Path, Place, written

_SECRET = "(secret)"  # noqa: S105 - what is shown in place of one


class Reason(msgspec.Struct, frozen=True):
    """One change, as a person reads it."""

    path: str
    why: str


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is sent."""

    method: Literal["PUT", "PATCH", "POST", "DELETE"]
    url: str
    reasons: list[Reason]
    body: Json | None = None
    if_match: str = ""
    """The version that was observed: whoever wrote in between is not overwritten."""

    if_none_match: str = ""
    """`*` where it must not be there: what somebody else made in between stays as it is."""


def create(model: Model, url: str, spec: Json, mark: str = "") -> Request:
    """Of what is not there yet; the body is the spec, with our mark where the API gives the id."""
    reasons = [Reason("", "it does not exist")]
    if not urls.is_unmade(url):
        return Request("PUT", url, reasons, spec, if_none_match="*")
    return Request("POST", urls.within(url), reasons, marks.marked(model, mark, url, spec))


def update(
    model: Model, url: str, spec: Json, observed: Json, changes: Sequence[Change]
) -> Request | None:
    """None where nothing is to be changed."""
    if not changes:
        return None
    reasons = [Reason(written(each.path), each.why) for each in changes]
    body = merging.merged(merging.taken(model, observed), changes)
    etag = str(observed.get("etag") or "")
    if is_patchable(model, changes):
        return Request("PATCH", url, reasons, merging.patch(body, changes), etag)
    whole = merging.merged(body, merging.unseen(model, spec))
    return Request("PUT", url, reasons, whole, etag)


def is_patchable(model: Model, changes: Sequence[Change]) -> bool:
    """Whether PATCH takes all that changes; a list is sent whole, so its own place counts too."""
    if "PATCH" not in model.type.verbs:
        return False
    if "PUT" not in model.type.verbs:
        return True
    return all(_takes(model, change) for change in changes)


def _takes(model: Model, change: Change) -> bool:
    said = [model.place(merging.whole(change.path)).said, model.place(change.path).said]
    return all(each is not None and each.patch for each in said)


def shown(model: Model, request: Request) -> Request:
    """The same without its secrets, for plans and logs."""
    if request.body is None:
        return request
    return msgspec.structs.replace(request, body=_hidden(model, Place(), request.body))


def without_secrets(model: Model, path: Path, value: Any) -> Any:
    """A value at a path, with what may not be shown taken out of it."""
    return _hidden(model, model.place(path), value)


def _hidden(model: Model, place: Place, value: Any) -> Any:
    if place.is_secret:
        return _SECRET
    if isinstance(value, list):
        return [_hidden(model, model.item(place), each) for each in value]
    if isinstance(value, dict):
        inner = {name: model.inside(place, name) or place for name in value}
        return {name: _hidden(model, inner[name], each) for name, each in value.items()}
    return value
