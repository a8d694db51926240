"""Does the live object already say what we want? Pure, and the reason a no-op costs nothing.

Only the fields that we name are compared: what others or the API server add is not ours.
What we stopped naming cannot be seen that way, so an annotation carries the digest of what we
applied last: where it differs, we apply, and server-side apply lets go of the rest.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from fairlead.kubernetes.objects import Object
from fairlead.values import quantity

DIGEST = "fairlead.dev/applied"

# Lists whose items the API server tells apart by fields; all other lists are owned whole.
_KEYED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "containers": (("name",),),
    "initContainers": (("name",),),
    "ephemeralContainers": (("name",),),
    "volumes": (("name",),),
    "volumeMounts": (("mountPath",),),
    "env": (("name",),),
    "imagePullSecrets": (("name",),),
    "ports": (("containerPort", "protocol"), ("port", "protocol")),
    "ownerReferences": (("uid",),),
    "conditions": (("type",),),
}
_KEY_DEFAULTS = {"protocol": "TCP"}
# In typed kinds, the maps under these names hold quantities, which are stored in one spelling.
_QUANTITY_MAPS = frozenset({"limits", "requests", "capacity", "hard", "overhead"})
_QUANTITY_FIELDS = frozenset({"sizeLimit", "divisor"})
# Kinds that Kubernetes itself has in Go: there false, zero and nothing are the same as missing.
# Custom kinds keep what they are given, also those in groups of k8s.io such as Gateway API.
_TYPED_GROUPS = frozenset({"", "apps", "batch", "autoscaling", "policy"}) | {
    f"{group}.k8s.io"
    for group in ("networking", "coordination", "events", "rbac.authorization", "discovery")
}


def digest(value: Any) -> str:
    """A short name for a value: same value, same name."""
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:16]


def is_typed(obj: Object) -> bool:
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    return group in _TYPED_GROUPS


def differences(desired: Object, live: Object) -> list[str]:
    """The paths at which the live object does not say what we want; empty means equal."""
    if _says(live, desired):
        # Word for word, which is nearly always so; the walk below knows other spellings too.
        return []
    found: list[str] = []
    _Comparison(found, typed=is_typed(desired)).value(desired, live, "", "")
    return found


def projection(live: Any, desired: Any) -> Any:
    """The live values at the fields that `desired` names."""
    if isinstance(desired, dict) and isinstance(live, dict):
        return {key: projection(live[key], desired[key]) for key in desired if key in live}
    return live


class _Comparison:
    """One walk over both objects, collecting paths."""

    def __init__(self, found: list[str], *, typed: bool) -> None:
        self._found = found
        self._typed = typed

    def value(self, desired: Any, live: Any, path: str, parent: str) -> None:
        if isinstance(desired, dict) and isinstance(live, dict):
            self._map(desired, live, path)
        elif isinstance(desired, list) and isinstance(live, list):
            self._list(desired, live, path)
        elif not self._same(desired, live, path, parent):
            self._found.append(path)

    def _map(self, desired: Mapping[str, Any], live: Mapping[str, Any], path: str) -> None:
        name = path.rpartition(".")[2]
        for key, value in desired.items():
            here = f"{path}.{key}" if path else key
            if key in live:
                self.value(value, live[key], here, name)
            elif value is not None and not (self._typed and _is_empty(value)):
                self._found.append(here)

    def _list(self, desired: list[Any], live: list[Any], path: str) -> None:
        keys = self._keys(desired, path)
        if not keys:
            if len(desired) != len(live):
                self._found.append(path)
                return
            for index, (one, other) in enumerate(zip(desired, live, strict=True)):
                self.value(one, other, f"{path}[{index}]", "")
            return
        held = {_identity(item, keys): item for item in live if isinstance(item, dict)}
        for item in desired:
            identity = _identity(item, keys)
            here = f"{path}[{','.join(map(str, identity))}]"
            if identity in held:
                self.value(item, held[identity], here, "")
            else:
                self._found.append(here)

    def _keys(self, items: list[Any], path: str) -> tuple[str, ...]:
        name = path.rpartition(".")[2]
        if not self._typed and not path.startswith("metadata."):
            return ()
        for keys in _KEYED.get(name, ()):
            if all(isinstance(item, dict) and keys[0] in item for item in items):
                return keys
        return ()

    def _same(self, desired: Any, live: Any, path: str, parent: str) -> bool:
        if desired == live and isinstance(desired, bool) == isinstance(live, bool):
            return True
        if self._typed and (
            parent in _QUANTITY_MAPS or path.rpartition(".")[2] in _QUANTITY_FIELDS
        ):
            one, other = quantity(str(desired)), quantity(str(live))
            return one is not None and one == other
        return False


def _says(live: Any, desired: Any) -> bool:
    """True where every field that we name is there with the very same value."""
    # Loops, not all() over a generator: this runs for every child of every object.
    if isinstance(desired, dict):
        if not isinstance(live, dict):
            return False
        for key, value in desired.items():
            if key not in live or not _says(live[key], value):
                return False
        return True
    if isinstance(desired, list):
        if not isinstance(live, list) or len(live) != len(desired):
            return False
        return all(map(_says, live, desired))
    return type(live) is type(desired) and bool(live == desired)


def _identity(item: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(item.get(key, _KEY_DEFAULTS.get(key)) for key in keys)


def _is_empty(value: Any) -> bool:
    """What Go leaves out of JSON. Not maps: `emptyDir: {}` says something, and stays."""
    return not value and not isinstance(value, dict)
