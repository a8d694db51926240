"""From a file to what is declared, and what would be sent for it."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from fairlead import errors, validation
from fairlead.areas.resources.domain import urls
from fairlead.areas.resources.domain import validation as words
from fairlead.areas.resources.domain.applied import Seal
from fairlead.areas.resources.domain.delta import Policy
from fairlead.areas.resources.domain.hooks import Point
from fairlead.areas.resources.domain.model import Json, Model
from fairlead.areas.resources.domain.reconcile.draft import stream
from fairlead.areas.resources.domain.reconcile.messages import Apply, Declared, LastApplied
from fairlead.areas.resources.domain.reconcile.planning import planned
from fairlead.areas.resources.domain.requests import Request
from fairlead.checks.rules import duration
from fairlead.engine.messages import Send, StreamName
from fairlead.errors import Problem

_ABOUT = "docs/reference/resources.md has all fields"
_BODY = "properties"
NEVER = "never"
_RETAIN = "retain"
_Name = Annotated[str, msgspec.Meta(min_length=1)]


class CloudResource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A resource as a file has it."""

    kind: Literal["cloud-resource"]
    type: _Name
    properties: Json
    """Its body, as the type describes it; secrets by name."""

    resource_id: str = ""
    """Where it stands: the URL of its type with names in it. The last may be a name of ours in
    braces, where the API gives the id."""

    owner: str = ""
    """The id of what it stands in, with `name` instead of `resourceId`."""

    name: str = ""

    api_version: str = ""
    """The newest that was ingested where it is left out."""

    policies: dict[str, Policy] = {}
    """What becomes of values that others changed, by path: enforce, ignore, init-only."""

    deletion: Literal["delete", "retain"] = "delete"
    """Whether the resource goes with its declaration."""

    refresh: str = "1h"
    """How often it is looked at though nothing was declared anew; or never."""

    mark: str = ""
    """A property by which one that the API names is known as ours; else in its labels or tags."""

    @property
    def wanted_type(self) -> str:
        return f"{self.type}@{self.api_version}" if self.api_version else self.type


def read(content: Any) -> CloudResource:
    return validation.convert(content, CloudResource, about=_ABOUT)


def declared(model: Model, wanted: CloudResource) -> Declared:
    """Invalid with every mistake that can be told without asking the API."""
    spec = model.hooks.spec(Point.BEFORE_VALIDATE, wanted.resource_id, wanted.properties)
    wanted = msgspec.structs.replace(wanted, properties=spec)
    problems = [_in_body(each) for each in words.mistakes(model, wanted.properties)]
    id_, unfit = _place(model, wanted)
    problems += unfit
    if problems:
        raise errors.Invalid(problems)
    every = None if wanted.refresh == NEVER else duration(wanted.refresh, "refresh")
    return Declared(
        model.type.type,
        model.type.version,
        id_,
        wanted.properties,
        wanted.policies,
        wanted.deletion == _RETAIN,
        every,
        wanted.mark,
    )


def start(parent: StreamName, words: Mapping[str, object]) -> Send:
    """The step of a plan: a file, and the queue of the API that it is for.

    What only the type tells is found by whoever performs it, and fails the step.
    """
    file = read(dict(words) if "resource" not in words else words["resource"])
    if not file.api_version or not file.resource_id:
        raise errors.Rejected(
            "a step of a plan says the whole of a resource", hint="give apiVersion and resourceId"
        )
    every = None if file.refresh == NEVER else duration(file.refresh, "refresh")
    wanted = Declared(
        *(file.type, file.api_version, file.resource_id, file.properties, file.policies),
        *(file.deletion == _RETAIN, every, file.mark),
    )
    queue = words.get("queue")
    command = Apply(wanted, parent, parent)
    return Send(stream(wanted.id), command, queue if isinstance(queue, str) else None)


def plan(
    model: Model, seal: Seal, wanted: Declared, last: LastApplied, observed: Json | None
) -> Request | None:
    """None where nothing has to change; Invalid where what is there can no longer change so.

    By a declaration whose secrets were put in.
    """
    if observed is not None:
        applied = last.applied or {}
        frozen = list(words.frozen(model, seal, wanted.properties, applied, observed))
        if frozen:
            raise errors.Invalid([_in_body(each) for each in frozen])
    return planned(model, seal, wanted, last, observed).request


def _place(model: Model, wanted: CloudResource) -> tuple[str, list[Problem]]:
    """Its id, and what is wrong with that."""
    looks, field_ = f"it looks like {model.type.url}", "resourceId"
    id_ = wanted.resource_id
    if wanted.owner or wanted.name:
        field_ = "owner"
        id_ = "" if id_ else urls.below(model.type.url, wanted.owner, wanted.name) or ""
        looks = f"give an owner and a name, and no resourceId; {looks}"
    if not urls.fits(model.type.url, id_):
        return id_, [Problem(field_, f"not an id of {model.type.type}", looks)]
    if urls.is_unmade(id_) and not model.type.create:
        return id_, [Problem(field_, "this API lets us name it", "write the name without braces")]
    return id_, []


def _in_body(problem: Problem) -> Problem:
    return dataclasses.replace(problem, path=f"{_BODY}.{problem.path}")
