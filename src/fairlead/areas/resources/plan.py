"""From a file and what an API shows to the one request that would bring both together."""

import dataclasses
import secrets
from typing import Annotated, Any, Literal

import msgspec

from fairlead import errors, validation
from fairlead.areas.resources.domain import requests, urls
from fairlead.areas.resources.domain import validation as words
from fairlead.areas.resources.domain.applied import Seal
from fairlead.areas.resources.domain.delta import Differ, Known, Policy
from fairlead.areas.resources.domain.model import Json, Model
from fairlead.areas.resources.domain.requests import Request
from fairlead.errors import Problem

_ABOUT = "docs/reference/resources.md has all fields"
_BODY = "properties"
_Name = Annotated[str, msgspec.Meta(min_length=1)]


class CloudResource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A resource as a file has it."""

    kind: Literal["cloud-resource"]
    type: _Name
    resource_id: _Name
    """Where it stands: the URL of its type with names in it."""

    properties: Json
    """Its body, as the type describes it."""

    api_version: str = ""
    """The newest that was ingested where it is left out."""

    policies: dict[str, Policy] = {}
    """What becomes of values that others changed, by path: enforce, ignore, init-only."""

    @property
    def wanted_type(self) -> str:
        return f"{self.type}@{self.api_version}" if self.api_version else self.type


def read(content: Any) -> CloudResource:
    return validation.convert(content, CloudResource, about=_ABOUT)


def check(model: Model, wanted: CloudResource) -> None:
    """Invalid with every mistake that can be told without asking the API."""
    problems = [_in_body(each) for each in words.problems(model, wanted.properties)]
    if not urls.fits(model.type.url, wanted.resource_id):
        message = f"not an id of {model.type.type}"
        problems.append(Problem("resourceId", message, f"it looks like {model.type.url}"))
    if problems:
        raise errors.Invalid(problems)


def plan(model: Model, wanted: CloudResource, observed: Json | None) -> Request | None:
    """None where nothing has to change; Invalid where what is there can no longer change so."""
    if observed is None:
        return requests.create(model, wanted.resource_id, wanted.properties)
    # Nothing was applied yet as far as a file knows: it takes over what is there, and every
    # difference counts.
    seal = Seal(secrets.token_bytes(32))
    frozen = list(words.frozen(model, seal, wanted.properties, {}, observed))
    if frozen:
        raise errors.Invalid([_in_body(each) for each in frozen])
    known = Known(seal.sealed(model, wanted.properties), observed)
    changes = Differ(model, seal, wanted.policies).changes(wanted.properties, known)
    return requests.update(model, wanted.resource_id, wanted.properties, observed, changes)


def _in_body(problem: Problem) -> Problem:
    return dataclasses.replace(problem, path=f"{_BODY}.{problem.path}")
