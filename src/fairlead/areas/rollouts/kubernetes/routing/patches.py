"""The difference of two JSON values as a JSON patch (RFC 6902) that names no more than it must.

What a patch does not name stays as it is on the server, byte for byte, whatever it means.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Operation = dict[str, Any]


def diff(before: Any, after: Any, path: str = "") -> Iterator[Operation]:
    """Operations that turn the first value into the second, in the order to be done."""
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _maps(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _lists(before, after, path)
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        yield {"op": "replace", "path": path, "value": after}


def _maps(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Operation]:
    for key in before:
        if key not in after:
            yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}
    for key, value in after.items():
        here = f"{path}/{_escaped(key)}"
        if key in before:
            yield from diff(before[key], value, here)
        else:
            yield {"op": "add", "path": here, "value": value}


def _lists(before: list[Any], after: list[Any], path: str) -> Iterator[Operation]:
    start = _alike(before, after)
    end = _alike(before[start:][::-1], after[start:][::-1])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    both = min(len(old), len(new))
    for index in range(both):
        yield from diff(old[index], new[index], f"{path}/{start + index}")
    # From the back, so that no removal moves what a later one names.
    for index in reversed(range(both, len(old))):
        yield {"op": "remove", "path": f"{path}/{start + index}"}
    for index in range(both, len(new)):
        yield {"op": "add", "path": f"{path}/{start + index}", "value": new[index]}


def _alike(one: list[Any], other: list[Any]) -> int:
    """How many items are the same from the start on."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
