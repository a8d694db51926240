"""From what a check says to the query that is sent: a built-in metric, or a template of its own.

A query is about one slot. Its arguments are the names that the platform gives that slot, those of
the primary with `primary-` before them, and what is known of the rollout itself.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from fairlead import errors
from fairlead.analysis import fields
from fairlead.checks.spec import BUILT_IN, REQUEST_COUNT, Check
from fairlead.checks.subject import Names, Naming, Side, Subject
from fairlead.clients.prometheus import render

METRICS = frozenset(BUILT_IN)
PRIMARY_PREFIX = "primary-"
OWN_ARGUMENTS = ("rollout", "revision", "weight", "interval")
_PROMQL = "PromQL:"
_PAIRS = {")": "(", "]": "[", "}": "{"}


def arguments(
    naming: Naming, about: Subject, side: Side, window: dt.timedelta
) -> tuple[Mapping[str, str], dict[str, str]]:
    """The built-in metrics of whoever counts its requests, and all that a query may ask for."""
    names = naming(about, side)
    primary = names if side is Side.PRIMARY else naming(about, Side.PRIMARY)
    own = {
        "rollout": about.name,
        "revision": about.version(side).revision,
        "weight": f"{about.weight:g}",
        "interval": duration(window),
    }
    return names.metrics, _together(names, primary, own)


def rendered(query: str, metrics: Mapping[str, str], given: Mapping[str, str]) -> str:
    """The query to send; Rejected where it cannot be made."""
    if not query.strip():
        raise errors.Rejected(
            "a check without a query",
            hint=f"write PromQL, or name a built-in metric: {', '.join(sorted(METRICS))}",
        )
    if query not in (*METRICS, REQUEST_COUNT):
        return render(query, given)
    if query not in metrics:
        raise errors.Rejected(
            f"nobody counts requests here for the built-in metric: {query}",
            hint="write a query of your own, or let a mesh or a gateway count them",
        )
    return render(metrics[query], given)


def duration(window: dt.timedelta) -> str:
    """As PromQL writes it, in whole seconds and at least one."""
    return f"{max(1, int(window.total_seconds()))}s"


def of_metric(metric: fields.Metric) -> str:
    """The query of one of the judge's metrics; a built-in one needs its name only."""
    if metric.query is None:
        if metric.name in METRICS:
            return metric.name
        raise errors.Rejected(
            f"metric of the judge without a query: {metric.name}", hint='add "query": "…"'
        )
    if isinstance(metric.query, str):
        return metric.query
    return _of_kayenta(metric.name, metric.query)


def sample(check: Check, names: Names) -> dict[str, str]:
    """Arguments as they may come, to try a query before there is anything to ask about."""
    own = dict.fromkeys(OWN_ARGUMENTS, "1") | {"interval": duration(check.span)}
    return _together(names, names, own)


def unclosed(query: str) -> str | None:
    """What is open at the query's end, or closed without a beginning; the rest is Prometheus's."""
    open_: list[str] = []
    quote, escaped, comment = "", False, False
    for character in query:
        if comment:
            comment = character != "\n"
        elif quote:
            ends = character == quote and not escaped
            escaped = character == "\\" and not escaped and quote != "`"
            quote = "" if ends else quote
        elif character in "\"'`":
            quote = character
        elif character == "#":
            comment = True
        elif character in "([{":
            open_.append(character)
        elif character in _PAIRS and (not open_ or open_.pop() != _PAIRS[character]):
            return character
    return quote or (open_[-1] if open_ else None)


def _together(names: Names, primary: Names, own: Mapping[str, str]) -> dict[str, str]:
    of_primary = {f"{PRIMARY_PREFIX}{key}": value for key, value in primary.arguments.items()}
    return {**names.arguments, **of_primary, **own}


def _of_kayenta(name: str, query: Any) -> str:
    """Kayenta's own form, as far as it is PromQL: {"customInlineTemplate": "PromQL:…"}."""
    text = query.get("customInlineTemplate") if isinstance(query, dict) else None
    if not isinstance(text, str) or not text.startswith(_PROMQL) or "${" in text:
        raise errors.Rejected(
            f"query of a metric that cannot be read: {name}",
            hint='write "query": "sum(rate(…))", with {{ interval }} and the names of the slot',
        )
    return text.removeprefix(_PROMQL)
