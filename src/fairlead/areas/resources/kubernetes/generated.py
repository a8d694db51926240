"""Typed kinds, made from a description on demand: for those who want `kubectl explain`.

Their objects have the body as their spec, beside where it stands, and are otherwise as those of
CloudResource are. Nothing is pruned, so that a misspelt name is refused and not lost.
"""

import re
from collections.abc import Mapping

from fairlead.areas.resources.domain import references
from fairlead.areas.resources.domain.classes import ClassifiedProperty
from fairlead.areas.resources.domain.model import Json
from fairlead.areas.resources.domain.reading import ResourceType
from fairlead.areas.resources.kubernetes.types import RESERVED
from fairlead.errors import Rejected
from fairlead.kubernetes import rbac
from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.objects import Object, Resource

GROUP = "cloud.fairlead.dev"
VERSION = "v1alpha1"
_WORD = re.compile(r"[A-Z]?[^A-Z]*")
_LONGEST = 63
_SHORTEST = 3
_OPEN = "x-kubernetes-preserve-unknown-fields"
_PLAIN = {"string", "integer", "number", "boolean"}


def api(type_: str) -> Resource:
    """`Microsoft.Compute/virtualMachineScaleSets`: virtualMachineScaleSet, as the document has it.

    Without its provider, but with what it stands in: names of children alone are seldom unique.
    """
    first, *rest = type_.split("/")
    # What has a dot is whose it is.
    named = rest if "." in first and rest else [first, *rest]
    parts = [re.sub(r"\W", "", each) for each in named]
    *above, last = parts
    stem = _joined([_singular(each) for each in above])
    kind, plural = _joined([stem, _singular(last)]), _joined([stem, last]).lower()
    if not plural.isascii() or not plural[:1].isalpha() or len(plural) > _LONGEST:
        raise Rejected(f"no kind can be called after: {type_}", hint="use a CloudResource")
    return Resource(GROUP, VERSION, plural if plural != kind.lower() else f"{plural}s", kind)


def short_names(resource: Resource) -> tuple[str, ...]:
    """Its initials, such as vmss; shorter ones are taken by others."""
    initials = "".join(each[0] for each in _WORD.findall(resource.kind) if each).lower()
    return (initials,) if len(initials) >= _SHORTEST else ()


def definition(kind: Kind, of: ResourceType) -> Object:
    """The CustomResourceDefinition of a typed kind."""
    taken = [each for each in RESERVED if any(said.path == each for said in of.properties)]
    if taken:
        hint = "use a CloudResource, whose body stands apart"
        raise Rejected(f"{of.type} has properties of its own called {', '.join(taken)}", hint=hint)
    made = rbac.definition(kind)
    made["metadata"]["annotations"] = {"fairlead.dev/type": f"{of.type}@{of.version}"}
    (version,) = made["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"] = {**_properties(of), **spec["properties"]}
    spec["description"] = f"A resource of the type {of.type}, API version {of.version}."
    spec[_OPEN] = True
    return made


def _properties(of: ResourceType) -> Json:
    said = [each for each in of.properties if each.class_ != "read-only"]
    tree: Json = {}
    for each in said:
        at = tree
        for step in each.path.replace("[]", ".[]").split("."):
            at = at.setdefault(step, {})
    by_path = {each.path: each for each in said}
    return {name: _schema(name, below, by_path) for name, below in tree.items()}


def _schema(path: str, below: Json, said: Mapping[str, ClassifiedProperty]) -> Json:
    own = said.get(path)
    about: Json = {"description": _sentence(own)} if own else {}
    if "[]" in below or (own is not None and own.type == "array"):
        inner = _schema(f"{path}[]", below.get("[]", {}), said)
        return {**about, "type": "array", "items": inner}
    if "*" in below:
        inner = _schema(f"{path}.*", below["*"], said)
        return {**about, "type": "object", "additionalProperties": inner}
    if below:
        inner = {name: _schema(f"{path}.{name}", each, said) for name, each in below.items()}
        return {**about, "type": "object", "properties": inner, _OPEN: True}
    return {**about, **_leaf(own)}


def _leaf(own: ClassifiedProperty | None) -> Json:
    if own is None:
        # An item of a list, or where the description goes no further: whatever it is.
        return {_OPEN: True}
    if own.secret:
        name = {"type": "string", "description": "SECRET/KEY, of the object's namespace"}
        return {"type": "object", "properties": {references.NAME: name}}
    if own.type in _PLAIN:
        return {"type": own.type}
    return {"type": "object", _OPEN: True} if own.type == "object" else {_OPEN: True}


def _sentence(own: ClassifiedProperty) -> str:
    values = [str(each) for each in own.enum or ()]
    told = f"{own.class_}; one of {', '.join(values)}" if values else own.class_
    return f"{told}; items by {', '.join(own.list_key)}" if own.list_key else told


def _singular(name: str) -> str:
    for end, one in (("ies", "y"), ("sses", "ss"), ("ss", "ss"), ("is", "is"), ("s", "")):
        if name.endswith(end) and len(name) > len(end):
            return name[: len(name) - len(end)] + one
    return name


def _joined(names: list[str]) -> str:
    """In camel case, with the first letter as it is."""
    first, *more = [each for each in names if each] or [""]
    return first + "".join(each[:1].upper() + each[1:] for each in more)
