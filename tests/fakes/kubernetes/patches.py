"""Merge patch (RFC 7386) and JSON patch (RFC 6902)."""

import copy
from typing import Any

from tests.fakes.kubernetes.refusals import RefusalError, bad_request


def merge(target: Any, change: Any) -> Any:
    if not isinstance(change, dict):
        return copy.deepcopy(change)
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in change.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def json_patch(target: Any, operations: list[dict[str, Any]]) -> Any:
    document = copy.deepcopy(target)
    for operation in operations:
        document = _operate(document, operation)
    return document


def _operate(document: Any, operation: dict[str, Any]) -> Any:
    path = _steps(operation["path"])
    match operation["op"]:
        case "add":
            return _add(document, path, operation["value"])
        case "remove":
            return _remove(document, path)
        case "replace":
            _get(document, path)
            return _add(_remove(document, path), path, operation["value"])
        case "test":
            if _get(document, path) != operation["value"]:
                raise _failed(f"testing path {operation['path']} failed")
            return document
        case "move":
            source = _steps(operation["from"])
            value = _get(document, source)
            return _add(_remove(document, source), path, value)
        case "copy":
            return _add(document, path, copy.deepcopy(_get(document, _steps(operation["from"]))))
        case other:
            raise bad_request(f"unknown JSON patch operation: {other}")


def _steps(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _failed(why: str) -> RefusalError:
    return RefusalError(422, "Invalid", f"the server rejected our request: {why}")


def _get(document: Any, path: list[str]) -> Any:
    try:
        for step in path:
            document = document[int(step)] if isinstance(document, list) else document[step]
    except (KeyError, IndexError, ValueError, TypeError):
        raise _failed(f"missing path /{'/'.join(path)}") from None
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else int(last), value)
    else:
        parent[last] = value
    return document


def _remove(document: Any, path: list[str]) -> Any:
    _get(document, path)
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        del parent[int(last)]
    else:
        del parent[last]
    return document
