"""Field ownership: who set what, and server-side apply upon it.

A path is a tuple of FieldsV1 elements: "f:name", 'k:{"name":"web"}' for an item of a list
that is told apart by keys, 'v:"text"' for an item of a set.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any

from fairlead.kubernetes.objects import Object
from tests.fakes.kubernetes.kinds import Served
from tests.fakes.kubernetes.refusals import RefusalError

Path = tuple[str, ...]
Owned = set[Path]
_MISSING = object()
_MAP = object()
# Nobody owns what names an object or what the server itself writes.
_UNOWNED = {("f:apiVersion",), ("f:kind",)} | {
    ("f:metadata", f"f:{name}")
    for name in (
        *("name", "namespace", "uid", "creationTimestamp", "resourceVersion", "generation"),
        *("managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName"),
    )
}


def leaves(obj: Object, served: Served) -> dict[Path, Any]:
    """Every owned path with its value; maps in between stand as _MAP."""
    found: dict[Path, Any] = {}
    for name, value in obj.items():
        _walk(value, (f"f:{name}",), name, served, found)
    return {p: v for p, v in found.items() if not any(p[: len(u)] == u for u in _UNOWNED)}


def applied(obj: Object, served: Served) -> Owned:
    """What an apply of this configuration owns: leaves and list items, not the maps between."""
    everything = leaves(obj, served)
    return {p for p, v in everything.items() if v is not _MAP or not p[-1].startswith("f:")}


def apply(live: Object, wanted: Object, served: Served) -> Object:
    """The live object with the wanted fields laid over it."""
    merged: Object = _merge(live, wanted, "", served)
    return merged


def conflicts(live: Object, wanted: Object, served: Served, owned: Owned) -> list[Path]:
    """Paths that another owns, and that applying `wanted` would change."""
    before, after = leaves(live, served), leaves(wanted, served)
    return sorted(
        p for p in owned & set(after) if after[p] is not _MAP and before.get(p) != after[p]
    )


def changed(old: Object, new: Object, served: Served) -> tuple[Owned, Owned]:
    """What an update touched: paths set or changed, and all paths that are there now."""
    before, after = leaves(old, served), leaves(new, served)
    touched = {p for p, v in after.items() if before.get(p, _MISSING) != v}
    return touched, set(after)


def without(obj: Object, gone: Owned, served: Served) -> Object:
    """The object after its applier stopped naming these paths."""
    left: Object = copy.deepcopy(obj)
    # A list item goes before its fields: without its key fields it could not be found.
    for path in sorted(gone, key=len):
        _drop(left, path, served)
    return left


def encode(owned: Owned) -> Object:
    tree: Object = {}
    for path in sorted(owned):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
        node["."] = {}
    return _trim(tree)


def decode(tree: Object) -> Owned:
    return set(_members(tree, ()))


def refusal(clashes: list[tuple[str, str, Path]]) -> RefusalError:
    """`clashes` are (manager, version, path)."""
    causes = tuple(
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{manager}" using {version}',
            "field": dotted(path),
        }
        for manager, version, path in clashes
    )
    said = "; ".join(f"{c['message']}: {c['field']}" for c in causes)
    count = f"{len(clashes)} conflict{'s' if len(clashes) > 1 else ''}"
    return RefusalError(409, "Conflict", f"Apply failed with {count}: {said}", causes)


def dotted(path: Path) -> str:
    text = ""
    for step in path:
        sort, rest = step[:2], step[2:]
        if sort == "f:":
            text += f".{rest}"
        elif sort == "k:":
            text += (
                "[" + ",".join(f"{k}={json.dumps(v)}" for k, v in json.loads(rest).items()) + "]"
            )
        else:
            text += f"[={rest}]"
    return text


def _walk(value: Any, path: Path, name: str, served: Served, found: dict[Path, Any]) -> None:
    if isinstance(value, dict) and value and name not in served.atomic:
        found[path] = _MAP
        for key, part in value.items():
            _walk(part, (*path, f"f:{key}"), f"{name}.{key}", served, found)
    elif isinstance(value, list) and name in served.list_keys:
        found[path] = _MAP
        for item in value:
            step = _step(item, served.list_keys[name])
            if step.startswith("k:"):
                _walk(item, (*path, step), name, served, found)
            else:
                found[*path, step] = item
    else:
        found[path] = value


def _step(item: Any, keys: tuple[str, ...]) -> str:
    if not keys:
        return "v:" + json.dumps(item, separators=(",", ":"))
    # A key field may be left out where the server has a default for it.
    named = {key: item.get(key, "TCP") for key in keys}
    return "k:" + json.dumps(named, separators=(",", ":"), sort_keys=True)


def _merge(live: Any, wanted: Any, name: str, served: Served) -> Any:
    if isinstance(live, dict) and isinstance(wanted, dict) and name not in served.atomic:
        merged = copy.deepcopy(live)
        for key, value in wanted.items():
            here = f"{name}.{key}" if name else key
            merged[key] = _merge(live.get(key), value, here, served)
        return merged
    if isinstance(live, list) and isinstance(wanted, list) and name in served.list_keys:
        keys = served.list_keys[name]
        known = {_step(item, keys): item for item in live}
        for item in wanted:
            step = _step(item, keys)
            known[step] = _merge(known.get(step), item, name, served) if keys else item
        return list(known.values())
    return copy.deepcopy(wanted)


def _drop(node: Any, path: Path, served: Served, name: str = "") -> None:
    step, rest = path[0], path[1:]
    if isinstance(node, dict) and step.startswith("f:"):
        key = step[2:]
        here = f"{name}.{key}" if name else key
        if not rest:
            node.pop(key, None)
        elif key in node:
            _drop(node[key], rest, served, here)
            if node[key] in ({}, []):
                del node[key]
    elif isinstance(node, list):
        keys = served.list_keys.get(name, ())
        for item in [item for item in node if _step(item, keys) == step]:
            if rest:
                _drop(item, rest, served, name)
            else:
                node.remove(item)


def _members(tree: Object, path: Path) -> Iterator[Path]:
    for step, below in tree.items():
        if step == ".":
            yield path
        elif below:
            yield from _members(below, (*path, step))
        else:
            yield (*path, step)


def _trim(tree: Object) -> Object:
    """A leaf is an empty map; only a member with members below needs its dot."""
    return {
        step: {} if set(below) == {"."} else _trim(below) if step != "." else below
        for step, below in tree.items()
    }
