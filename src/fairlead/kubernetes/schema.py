"""Kinds from code: a CustomResourceDefinition made from the types that read the objects.

The schema is structural (no references, one type per place), so the API server prunes, sets
defaults and refuses by itself. What a type cannot say, CEL rules say: `__rules__` on a type,
or `KindSchema.rules` for the whole object. A type with `__open__` keeps what it does not name.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import inspect as types

from fairlead.errors import Rejected
from fairlead.kubernetes.objects import Object, Resource

CRDS = Resource(
    *("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"),
    namespaced=False,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule; `path` names the field that a refusal points at, as in ".steps"."""

    rule: str
    message: str
    path: str = ""

    def schema(self) -> Object:
        fields = {"rule": self.rule, "message": self.message, "fieldPath": self.path}
        return {name: value for name, value in fields.items() if value}


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """What `kubectl get` shows; priority above 0 only with `-o wide`."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0
    description: str = ""

    def schema(self) -> Object:
        shown: Object = {"name": self.name, "jsonPath": self.path, "type": self.type}
        if self.priority:
            shown["priority"] = self.priority
        if self.description:
            shown["description"] = self.description
        return shown


@dataclasses.dataclass(frozen=True, slots=True)
class KindSchema:
    """How a custom kind is installed: the types of its spec and status, what kubectl shows."""

    spec: type
    status: type
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    rules: tuple[Rule, ...] = ()


def definition(resource: Resource, kind: KindSchema) -> Object:
    """The object that installs the kind."""
    names: Object = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    version: Object = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _whole(kind)},
        "subresources": {"status": {}},
    }
    if kind.columns:
        version["additionalPrinterColumns"] = [column.schema() for column in kind.columns]
    spec = {
        "group": resource.group,
        "names": names,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "versions": [version],
    }
    meta = {"name": f"{resource.plural}.{resource.group}"}
    return {"apiVersion": CRDS.api_version, "kind": CRDS.kind, "metadata": meta, "spec": spec}


def keyed(*fields: str) -> Mapping[str, Any]:
    """For `Meta(extra_json_schema=…)` of a list: its items are told apart by these fields."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(fields)}


def structural(of: type) -> Object:
    """The structural schema of one type."""
    return _schema(types.type_info(of), of.__name__)


def _whole(kind: KindSchema) -> Object:
    schema: Object = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural(kind.spec),
            "status": structural(kind.status),
        },
    }
    if described := _sentence(kind.spec):
        schema["description"] = described
    if kind.rules:
        schema["x-kubernetes-validations"] = [rule.schema() for rule in kind.rules]
    return schema


def _schema(info: types.Type, place: str) -> Object:
    if isinstance(info, types.Metadata):
        below = _schema(info.type, place)
        return {**below, **(info.extra_json_schema or {})}
    for kinds, make in _MAKERS:
        if isinstance(info, kinds):
            return make(info, place)
    raise Rejected(
        f"no structural schema for {type(info).__name__}: {place}",
        hint="use a struct, list, dict, text, number, bool, literal or enum",
    )


def _bounded(info: Any, schema: Object) -> Object:
    """The bounds that `msgspec.Meta` put on a type, in the words of OpenAPI v3."""
    named = {
        "ge": "minimum",
        "le": "maximum",
        "multiple_of": "multipleOf",
        "pattern": "pattern",
        "min_length": _length(schema, "min"),
        "max_length": _length(schema, "max"),
    }
    for ours, theirs in named.items():
        value = getattr(info, ours, None)
        if value is not None:
            schema[theirs] = value
    for ours, bound in (("gt", "minimum"), ("lt", "maximum")):
        value = getattr(info, ours, None)
        if value is not None:
            schema[bound] = value
            schema[f"exclusive{bound.capitalize()}"] = True
    return schema


def _length(schema: Object, end: str) -> str:
    unit = {"array": "Items", "object": "Properties"}.get(schema["type"], "Length")
    return f"{end}{unit}"


def _text(info: Any, place: str) -> Object:
    del place
    return _bounded(info, {"type": "string"})


def _integer(info: Any, place: str) -> Object:
    del place
    return _bounded(info, {"type": "integer", "format": "int64"})


def _number(info: Any, place: str) -> Object:
    del place
    return _bounded(info, {"type": "number"})


def _boolean(info: Any, place: str) -> Object:
    del info, place
    return {"type": "boolean"}


def _moment(info: Any, place: str) -> Object:
    del info, place
    return {"type": "string", "format": "date-time"}


def _anything(info: Any, place: str) -> Object:
    del info, place
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _literal(info: Any, place: str) -> Object:
    return _choice(list(info.values), place)


def _enum(info: Any, place: str) -> Object:
    return _choice([member.value for member in info.cls], place)


def _choice(values: list[Any], place: str) -> Object:
    kinds = {type(value) for value in values}
    if kinds == {str}:
        return {"type": "string", "enum": values}
    if kinds == {int}:
        return {"type": "integer", "enum": values}
    raise Rejected(f"choices of more than one type: {place}", hint="use texts only, or numbers")


def _array(info: Any, place: str) -> Object:
    below = _schema(info.item_type, f"{place}[]")
    return _bounded(info, {"type": "array", "items": below})


def _table(info: Any, place: str) -> Object:
    if isinstance(info.value_type, types.AnyType):
        # Whatever it is: of a plain object, the values would have to be objects, too.
        return _anything(info, place)
    below = _schema(info.value_type, f"{place}.*")
    return _bounded(info, {"type": "object", "additionalProperties": below})


def _record(info: Any, place: str) -> Object:
    properties: Object = {}
    required: list[str] = []
    for field in info.fields:
        here = f"{place}.{field.encode_name}"
        part = _schema(field.type, here)
        if field.required:
            required.append(field.encode_name)
        elif (default := _default(field)) is not None:
            part["default"] = default
        properties[field.encode_name] = part
    schema: Object = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if described := _sentence(info.cls):
        schema["description"] = described
    if getattr(info.cls, "__open__", False):
        schema["x-kubernetes-preserve-unknown-fields"] = True
    rules: tuple[Rule, ...] = getattr(info.cls, "__rules__", ())
    if rules:
        schema["x-kubernetes-validations"] = [rule.schema() for rule in rules]
    return schema


def _default(field: types.Field) -> Any:
    """What the API server fills in; None where the field stays absent."""
    if field.default is not msgspec.NODEFAULT:
        value = field.default
    elif field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    else:
        return None
    return None if value is msgspec.UNSET else _said(msgspec.to_builtins(value))


def _said(value: Any) -> Any:
    """Without what is absent, at any depth: null is no value of a field."""
    if isinstance(value, dict):
        return {key: _said(below) for key, below in value.items() if below is not None}
    return value


def _union(info: Any, place: str) -> Object:
    """Only `X | None` (may be absent) and `int | str` have a structural form."""
    parts = [part for part in info.types if not isinstance(part, types.NoneType)]
    if len(parts) == 1:
        return _schema(parts[0], place)
    if {type(part) for part in parts} == {types.IntType, types.StrType}:
        return {"x-kubernetes-int-or-string": True}
    raise Rejected(
        f"a union has no structural schema: {place}", hint="use one optional field per choice"
    )


def _sentence(of: type) -> str:
    """The first paragraph of a docstring that the author wrote."""
    written = of.__dict__.get("__doc__") or ""
    # A dataclass without a docstring gets its signature as one.
    if written.startswith(f"{of.__name__}("):
        return ""
    return " ".join(inspect.cleandoc(written).split("\n\n")[0].split())


_Maker = Callable[[Any, str], Object]
_MAKERS: tuple[tuple[type | tuple[type, ...], _Maker], ...] = (
    (types.BoolType, _boolean),
    (types.IntType, _integer),
    (types.FloatType, _number),
    (types.StrType, _text),
    ((types.DateTimeType,), _moment),
    (types.AnyType, _anything),
    (types.LiteralType, _literal),
    (types.EnumType, _enum),
    ((types.ListType, types.VarTupleType, types.SetType, types.FrozenSetType), _array),
    (types.DictType, _table),
    ((types.StructType, types.DataclassType), _record),
    (types.UnionType, _union),
)
