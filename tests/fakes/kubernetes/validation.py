"""The structural schema of a custom kind at work: defaults, pruning, and what it refuses."""

import copy
from collections.abc import Mapping
from typing import Any

Cause = tuple[str, str, str]
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
_WHOLE = ("apiVersion", "kind", "metadata")


def conform(obj: dict[str, Any], schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[Cause]]:
    """The object pruned and defaulted, and every objection to it."""
    causes: list[Cause] = []
    body = {name: value for name, value in obj.items() if name not in _WHOLE}
    kept = _value(body, {**schema, "type": "object"}, "", causes)
    return {**{n: obj[n] for n in _WHOLE if n in obj}, **kept}, causes


def _value(value: Any, schema: Mapping[str, Any], path: str, causes: list[Cause]) -> Any:
    expected = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        return value
    if expected and not _is(value, expected):
        text = f'Invalid value: "{_name(value)}": {path} in body must be of type {expected}: '
        causes.append(("FieldValueTypeInvalid", path, f'{text}"{_name(value)}"'))
        return value
    _bounds(value, schema, path, causes)
    if expected == "object":
        return _object(value, schema, path, causes)
    if expected == "array":
        items = schema.get("items") or {}
        return [_value(v, items, f"{path}[{i}]", causes) for i, v in enumerate(value)]
    return value


def _object(
    value: dict[str, Any], schema: Mapping[str, Any], path: str, causes: list[Cause]
) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    kept: dict[str, Any] = {}
    for name, part in value.items():
        here = f"{path}.{name}" if path else name
        if name in properties:
            kept[name] = _value(part, properties[name], here, causes)
        elif isinstance(others, Mapping):
            kept[name] = _value(part, others, here, causes)
        elif others or schema.get("x-kubernetes-preserve-unknown-fields"):
            kept[name] = part
    for name, part in properties.items():
        if name not in kept and "default" in part:
            kept[name] = _value(copy.deepcopy(part["default"]), part, f"{path}.{name}", causes)
    for name in schema.get("required") or ():
        if name not in kept:
            here = f"{path}.{name}" if path else name
            causes.append(("FieldValueRequired", here, "Required value"))
    return kept


def _bounds(value: Any, schema: Mapping[str, Any], path: str, causes: list[Cause]) -> None:
    said = f"Invalid value: {value}: {path} in body should be"
    if "minimum" in schema and value < schema["minimum"]:
        bound = f"{said} greater than or equal to {schema['minimum']}"
        causes.append(("FieldValueInvalid", path, bound))
    if "maximum" in schema and value > schema["maximum"]:
        bound = f"{said} less than or equal to {schema['maximum']}"
        causes.append(("FieldValueInvalid", path, bound))
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(f'"{choice}"' for choice in schema["enum"])
        text = f'Unsupported value: "{value}": supported values: {allowed}'
        causes.append(("FieldValueNotSupported", path, text))


def _is(value: Any, expected: str) -> bool:
    if isinstance(value, bool):
        return expected == "boolean"
    return isinstance(value, _TYPES[expected])


def _name(value: Any) -> str:
    for name, kinds in _TYPES.items():
        if isinstance(value, kinds) and not (isinstance(value, bool) and name != "boolean"):
            return name
    return "null"
