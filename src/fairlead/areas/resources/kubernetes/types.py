"""What users write in the object of a resource, and what it shows them."""

from typing import Annotated, Any, Literal

import msgspec

from fairlead.areas.resources.domain.delta import Policy

RESERVED = ("owner", "resourceId", "resourceName", "policy")
"""Fields of an object that are no part of the body, where the two stand side by side."""

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=260)]


class OwnerWords(msgspec.Struct, frozen=True, rename="camel"):
    """What the resource stands in: an object of the same namespace, or anything by its id."""

    name: str = ""
    kind: str = ""
    """CloudResource, where it is left out."""

    namespace: str = ""
    """None but the object's own."""

    resource_id: str = ""


class PolicyWords(msgspec.Struct, frozen=True, rename="camel"):
    """What is written back, how often it is looked at, and what goes with the object."""

    deletion: Literal["delete", "retain"] = "delete"
    refresh: str = "1h"
    drift: dict[str, Policy] = {}
    """By path: enforce, ignore or init-only."""


class PlaceWords(msgspec.Struct, frozen=True, rename="camel"):
    """Where a resource stands, whatever its type."""

    owner: OwnerWords = OwnerWords()
    resource_id: str = ""
    """Attaches to the resource of this id; it must be there."""

    resource_name: str = ""
    """The object's own name, where it is left out."""

    policy: PolicyWords = PolicyWords()


class CloudResourceSpec(PlaceWords, frozen=True, kw_only=True):
    """A resource of an API that was described, kept as it stands here."""

    type: _Name
    api_version: str = ""
    """The newest that is known, where it is left out."""

    properties: dict[str, Any] = {}
    """The body, as `fairlead resources describe TYPE` shows it."""


class ConditionWords(msgspec.Struct, rename="camel"):
    """A condition as Kubernetes spells it."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""


class Difference(msgspec.Struct):
    """What the last write was for."""

    path: str = ""
    why: str = ""


class CloudResourceStatus(msgspec.Struct, rename="camel"):
    """Where the resource stands."""

    resource_id: str = ""
    api_version: str = ""
    phase: str = ""
    message: str = ""
    differs: list[Difference] = []
    observed: dict[str, Any] = {}
    """What the API shows, without its secrets."""

    memory: dict[str, Any] = {}
    """For the operator: what was applied last, sealed."""

    seal: str = ""
    round: int = 0
    observed_generation: int = 0
    conditions: list[ConditionWords] = []
