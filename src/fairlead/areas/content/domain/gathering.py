"""What the original service sends for a version: its two shapes, and what they must hold.

A field that is not named here is dropped, as it was by the original. The schemas are its content
repository's rules in our words.
"""

from typing import Any

from fairlead.areas.content.domain import go_json
from fairlead.areas.content.domain.go_json import Ordered

V1_FILE = "v1/rules.json"
V2_MAP = "v2/cluster_version_mapping.json"
_ALERT = {"type": "string", "pattern": "^[a-zA-Z0-9_]{1,128}$"}
_OPENSHIFT = {"type": "string", "pattern": "^openshift-[a-z0-9-]{1,128}$"}
_LINES = {"type": "integer", "minimum": 1, "maximum": 4096}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    properties = {**required, **(optional or {})}
    return {"type": "object", "required": list(required), "properties": properties}


_CONDITION = {
    "oneOf": [
        _object({"type": {"const": "alert_is_firing"}, "alert": _object({"name": _ALERT})}),
        _object(
            {
                "type": {"const": "cluster_version_matches"},
                "cluster_version": _object(
                    {"version": {"type": "string", "minLength": 1, "maxLength": 64}}
                ),
            }
        ),
    ]
}
_FUNCTIONS = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 8,
    "additionalProperties": False,
    "properties": {
        "api_request_counts_of_resource_from_alert": _object({"alert_name": _ALERT}),
        "containers_logs": _object(
            {"alert_name": _ALERT, "tail_lines": _LINES},
            {
                "container": {"type": "string"},
                "namespace": _OPENSHIFT,
                "previous": {"type": "boolean"},
            },
        ),
        "image_streams_of_namespace": _object({"namespace": _OPENSHIFT}),
        "logs_of_namespace": _object({"namespace": _OPENSHIFT, "tail_lines": _LINES}),
        "pod_definition": _object({"alert_name": _ALERT}),
    },
}
_RULES = {
    "type": "array",
    "maxItems": 64,
    "uniqueItems": True,
    "items": _object(
        {
            "conditions": {
                "type": "array",
                "maxItems": 8,
                "items": _CONDITION,
                "uniqueItems": True,
            },
            "gathering_functions": _FUNCTIONS,
        }
    ),
}
_CONTAINER_LOG = _object(
    {
        "namespace": {"type": "string", "pattern": "^(openshift|kube)-[a-z0-9-]{1,128}$"},
        "pod_name_regex": {"type": "string", "minLength": 1},
        "messages": {"type": "array", "items": {"type": "string"}},
    },
    {"previous": {"type": "boolean"}},
)
V1_SCHEMA = _object({"version": {"type": "string"}, "rules": _RULES})
V2_SCHEMA = _object(
    {
        "version": {"type": "string"},
        "conditional_gathering_rules": _RULES,
        "container_logs": {"type": "array", "items": _CONTAINER_LOG},
    }
)


def v1(data: Any) -> str:
    return go_json.encode(Ordered(version=data["version"], rules=_rules(data["rules"])))


def v2(data: Any) -> str:
    return go_json.encode(
        Ordered(
            conditional_gathering_rules=_rules(data["conditional_gathering_rules"]),
            container_logs=[_container_log(each) for each in data["container_logs"]],
            version=data["version"],
        )
    )


def _rules(rules: list[Any]) -> list[Ordered]:
    return [_rule(each) for each in rules]


def _rule(rule: Any) -> Ordered:
    shown = Ordered()
    # Go leaves an empty list out, and keeps an empty map behind an interface.
    if rule["conditions"]:
        shown["conditions"] = rule["conditions"]
    shown["gathering_functions"] = rule["gathering_functions"]
    return shown


def _container_log(log: Any) -> Ordered:
    shown = Ordered(namespace=log["namespace"], pod_name_regex=log["pod_name_regex"])
    if log.get("previous"):
        shown["previous"] = True
    shown["messages"] = log["messages"]
    return shown
