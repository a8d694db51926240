"""From an object to the declaration that the machine takes, by the words of its type."""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fairlead import errors, validation
from fairlead.areas.resources import plan as plans
from fairlead.areas.resources.domain import references, urls
from fairlead.areas.resources.domain import validation as words
from fairlead.areas.resources.domain.model import Json, Model
from fairlead.areas.resources.domain.reconcile.messages import Declared, Origin
from fairlead.areas.resources.kubernetes.types import (
    RESERVED,
    CloudResourceSpec,
    OwnerWords,
    PlaceWords,
)
from fairlead.checks.rules import duration
from fairlead.errors import Problem
from fairlead.kubernetes import objects
from fairlead.kubernetes.objects import Object

FROM_RESOURCE = "fromResource"
_SECRET = re.compile(r"[a-z0-9][a-z0-9.-]{0,252}/[A-Za-z0-9._-]{1,253}")
_ABOUT = "docs/reference/resources.md has all fields"
_PARAMETER = "{}"

Sibling = Callable[[str, str], Object | None]
"""An object of a resource in the same namespace, by its kind (empty: CloudResource) and name."""


class Form(NamedTuple):
    """How a kind says what it wants."""

    type: str = ""
    """The type of its objects; empty where each says its own."""

    version: str = ""

    @property
    def body(self) -> str:
        """Where its body stands, as a path of the object begins."""
        return "spec" if self.type else "spec.properties"


@dataclasses.dataclass(frozen=True, slots=True)
class Settled:
    """What the installation says of objects that do not."""

    model: Callable[[str, str], Model]
    """By type and version; the newest where that is empty."""

    owner: str = ""
    """The id of what resources stand in that name no owner."""

    within: str = ""
    """How ids must begin, one of these; empty: as they like."""


class Parsed(NamedTuple):
    """An object that was read, with all of it that needs no other object."""

    model: Model
    place: PlaceWords
    properties: Json


def parsed(form: Form, settled: Settled, obj: Object) -> Parsed:
    """Invalid with every mistake that the object alone shows, each by its field."""
    place, type_, version, properties = _read(form, obj)
    if place.policy.refresh != plans.NEVER:
        duration(place.policy.refresh, "spec.policy.refresh")
    model = settled.model(type_, version)
    found = [*_problems(form, model, properties), *_misplaced(place, obj, model, settled)]
    if found:
        raise errors.Invalid(found)
    return Parsed(model, place, properties)


def declared(
    form: Form, settled: Settled, obj: Object, sibling: Sibling, origin: Origin
) -> Declared:
    """Rejected where it makes no sense, or what it refers to is not there yet."""
    found = parsed(form, settled, obj)
    id_ = _id(found, settled, obj, sibling)
    _check_within(settled, obj, id_)
    policy = found.place.policy
    whole = plans.CloudResource(
        kind="cloud-resource",
        type=found.model.type.type,
        resource_id=id_,
        properties=_joined(found.properties, sibling),
        api_version=found.model.type.version,
        policies=policy.drift,
        deletion=policy.deletion,
        refresh=policy.refresh,
    )
    made = plans.declared(found.model, whole)
    attaches = bool(found.place.resource_id)
    return dataclasses.replace(made, origin=origin, attaches=attaches)


def secrets(form: Form, obj: Object) -> Sequence[tuple[str, str]]:
    """The keys of Secrets that values come from, each with the field that says so."""
    spec = obj.get("spec") or {}
    body = spec if form.type else spec.get("properties")
    return _named(body, form.body)


def _read(form: Form, obj: Object) -> tuple[PlaceWords, str, str, Json]:
    spec = obj.get("spec") or {}
    if not form.type:
        whole = validation.convert(spec, CloudResourceSpec, "spec", about=_ABOUT)
        return whole, whole.type, whole.api_version, whole.properties
    beside = {name: spec[name] for name in RESERVED if name in spec}
    body = {name: value for name, value in spec.items() if name not in RESERVED}
    place = validation.convert(beside, PlaceWords, "spec", about=_ABOUT)
    return place, form.type, form.version, body


def _problems(form: Form, model: Model, properties: Json) -> Iterator[Problem]:
    """A value of another resource is of the right type, as far as can be told by now."""
    known = _replaced(properties, lambda _: None)
    unnamed = references.resolved(known, lambda name: name)
    for each in (*words.problems(model, unnamed), *references.problems(model, known)):
        yield dataclasses.replace(each, path=f"{form.body}.{each.path}")
    if any(references.outputs(properties)):
        hint = f"write {{{FROM_RESOURCE}: NAME/PATH}}, of the same namespace"
        yield Problem(form.body, "outputs by id are for files", hint)
    for path, name in _named(properties, form.body):
        if not _SECRET.fullmatch(name):
            hint = f"write {{{references.NAME}: SECRET/KEY}}"
            yield Problem(path, f"not a key of a Secret: {name[:80]}", hint)


def _misplaced(place: PlaceWords, obj: Object, model: Model, settled: Settled) -> Iterator[Problem]:
    owner, own = place.owner, objects.key_of(obj).namespace
    if owner.namespace and owner.namespace != own:
        told = f"an owner of another namespace: {owner.namespace}"
        yield Problem("spec.owner.namespace", told, "name an object of the same namespace")
    if place.resource_id and not urls.fits(model.type.url, place.resource_id):
        told, hint = f"not an id of {model.type.type}", f"it looks like {model.type.url}"
        yield Problem("spec.resourceId", told, hint)
    for path, id_ in (
        ("spec.resourceId", place.resource_id),
        ("spec.owner.resourceId", owner.resource_id),
    ):
        if id_ and not _is_within(settled, own, id_):
            yield Problem(path, "outside of what this namespace may have", _within(settled, own))


def _id(found: Parsed, settled: Settled, obj: Object, sibling: Sibling) -> str:
    place, url = found.place, found.model.type.url
    if place.resource_id:
        return place.resource_id
    above = _owner(place.owner, settled, obj, sibling)
    name = place.resource_name or objects.metadata(obj)["name"]
    rest = urls.segments(url)[len(above.strip("/").split("/")) :]
    id_ = "/".join((above.rstrip("/"), *(name if part == _PARAMETER else part for part in rest)))
    if rest.count(_PARAMETER) != 1 or not urls.fits(url, id_):
        raise errors.Invalid(
            [
                Problem(
                    "spec.owner",
                    f"a {found.model.type.type} does not stand in {above[:200]}",
                    f"its id looks like {url}",
                )
            ]
        )
    return id_


def _owner(owner: OwnerWords, settled: Settled, obj: Object, sibling: Sibling) -> str:
    if owner.resource_id:
        return owner.resource_id
    if owner.name:
        return str(_output(owner.kind, owner.name, "", sibling))
    if settled.owner:
        return settled.owner.replace("{namespace}", objects.key_of(obj).namespace)
    hint = "name an object, or the id of a resource group; FAIRLEAD_RESOURCES_OWNER is for all"
    raise errors.Invalid([Problem("spec.owner", "neither owner nor resourceId", hint)])


def _output(kind: str, name: str, path: str, sibling: Sibling) -> Any:
    """What another resource shows: its id, or a value of it."""
    found = sibling(kind, name)
    status: Mapping[str, Any] = (found or {}).get("status") or {}
    value: Any = status.get("resourceId") if not path else status.get("observed")
    if found is not None and not _is_ready(status):
        value = None
    for step in path.split(".") if path else ():
        value = _member(value, step)
    if value is None:
        said = f"{kind or 'CloudResource'}/{name}"
        missing = f"{said} has no {path} yet" if found and path else f"waits for {said}"
        raise errors.Rejected(missing, hint="it goes on once that is Ready and shows it")
    return value


def _is_ready(status: Mapping[str, Any]) -> bool:
    conditions = status.get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _member(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        return value[int(step)]
    return None


def _joined(properties: Json, sibling: Sibling) -> Json:
    def shown(told: str) -> Any:
        name, _, path = told.partition("/")
        return _output("", name, path, sibling)

    found = _replaced(properties, shown)
    assert isinstance(found, dict)
    return found


def _replaced(value: Any, by: Callable[[str], Any]) -> Any:
    """With what stands for values of other resources in their places."""
    if isinstance(value, dict):
        told = value.get(FROM_RESOURCE)
        if set(value) == {FROM_RESOURCE} and isinstance(told, str):
            return by(told)
        return {name: _replaced(each, by) for name, each in value.items()}
    return [_replaced(each, by) for each in value] if isinstance(value, list) else value


def _named(value: Any, path: str) -> Sequence[tuple[str, str]]:
    name = references.name_of(value)
    if name is not None:
        return [(path, name)]
    if isinstance(value, dict):
        return [one for key, each in value.items() for one in _named(each, f"{path}.{key}")]
    if isinstance(value, list):
        return [one for at, each in enumerate(value) for one in _named(each, f"{path}[{at}]")]
    return []


def _check_within(settled: Settled, obj: Object, id_: str) -> None:
    namespace = objects.key_of(obj).namespace
    if not _is_within(settled, namespace, id_):
        told, hint = f"outside of what this namespace may have: {id_}", _within(settled, namespace)
        raise errors.Invalid([Problem("spec.owner", told, hint)])


def _is_within(settled: Settled, namespace: str, id_: str) -> bool:
    begins = _beginnings(settled, namespace)
    folded = f"{id_.rstrip('/').lower()}/"
    return not begins or any(folded.startswith(f"{each.lower()}/") for each in begins)


def _within(settled: Settled, namespace: str) -> str:
    return f"FAIRLEAD_RESOURCES_WITHIN names {', '.join(_beginnings(settled, namespace))}"


def _beginnings(settled: Settled, namespace: str) -> list[str]:
    told = settled.within.replace("{namespace}", namespace)
    return [each.strip().rstrip("/") for each in told.split(",") if each.strip()]
