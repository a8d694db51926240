"""The policy by which the API server itself holds a target whose template somebody changes.

A target at rest is not paused, so that it is healthy to those who look at it. Who changes its
template pauses it in the same write, whatever the tool: there is no moment in which pods of a
version that nobody watches are made, also while no operator runs. A write that replaces all of
the object keeps what we remember there (docs/decisions/0044-targets-at-rest.md).
"""

from typing import Any

from fairlead.areas.rollouts.kubernetes import names

Object = dict[str, Any]

NAME = "hold"
_NEW, _OLD = "object.metadata.annotations", "oldObject.metadata.annotations"
_KEY = f"'{names.HELD}'"
_MARKED = f"has({_NEW}) && {_KEY} in {_NEW}"
_WAS_MARKED = f"has({_OLD}) && {_KEY} in {_OLD}"
_WAS_HELD = " || ".join(
    f"{_OLD}[{_KEY}].startsWith('{one}/')" for one in (names.AT_REST, names.ON_HOLD)
)
_CHANGED = "object.spec.template != oldObject.spec.template"
_WAS_PAUSED = "has(oldObject.spec.paused) && oldObject.spec.paused"
_IS_PAUSED = "has(object.spec.paused) && object.spec.paused"
_KEPT = f"{_OLD}.transformMap(key, value, key.startsWith('{names.PREFIX}'), value)"


def spec() -> Object:
    """Of a MutatingAdmissionPolicy."""
    rule = {
        "apiGroups": [names.DEPLOYMENTS.group],
        "apiVersions": [names.DEPLOYMENTS.version],
        "resources": [names.DEPLOYMENTS.plural],
        "operations": ["UPDATE"],
    }
    conditions = {
        "held": f"{_WAS_MARKED} && ({_WAS_HELD})",
        # Whoever holds it says so by another value with each write.
        "by-others": f"!({_MARKED}) || {_NEW}[{_KEY}] == {_OLD}[{_KEY}]",
        "moves": f"{_CHANGED} || ({_WAS_PAUSED} && !({_IS_PAUSED})) || !({_MARKED})",
    }
    held = (
        f"Object{{metadata: Object.metadata{{annotations: {_KEPT}}},"
        f" spec: Object.spec{{paused: {_CHANGED} || ({_WAS_PAUSED})}}}}"
    )
    mutation = {
        "patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": held},
    }
    return {
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [
            {"name": name, "expression": told} for name, told in conditions.items()
        ],
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "mutations": [mutation],
    }
