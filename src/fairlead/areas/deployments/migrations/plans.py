"""Which tables a plan changes without an index that bounds how many rows it reaches. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_EQUAL = re.compile(r"(?<![<>!])=(?!\s*NULL)")
_LOWER, _UPPER = re.compile(r">"), re.compile(r"<(?!>)")


def unbounded(plan: Any) -> frozenset[tuple[str, str]]:
    """From EXPLAIN (FORMAT JSON, VERBOSE): schema and name of each such table."""
    return frozenset(name for root in plan for name in _unbounded(root["Plan"]))


def _unbounded(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    targets = {_name(each) for each in _nodes(node) if each["Node Type"] == "ModifyTable"}
    for each in _scans(node):
        if _name(each) in targets and not _bounded(each):
            yield _name(each)


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for each in node.get("Plans", ()):
        yield from _nodes(each)


def _scans(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Scans of tables, but for those below a LIMIT, which stops them."""
    if node["Node Type"] == "Limit":
        return
    if "Scan" in node["Node Type"] and "Relation Name" in node:
        yield node
    for each in node.get("Plans", ()):
        yield from _scans(each)


def _bounded(scan: Mapping[str, Any]) -> bool:
    conditions = [str(each.get("Index Cond") or "") for each in _nodes(scan)]
    conditions.append(str(scan.get("TID Cond") or ""))
    return any(_bounds(each) for each in conditions)


def _bounds(condition: str) -> bool:
    """Equality bounds, and so does a range with both ends; one end alone may be all rows."""
    if _EQUAL.search(condition):
        return True
    return bool(_LOWER.search(condition) and _UPPER.search(condition))


def _name(node: Mapping[str, Any]) -> tuple[str, str]:
    return (str(node.get("Schema", "")), str(node.get("Relation Name", "")))
