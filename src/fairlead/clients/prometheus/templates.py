"""Queries from metrics with arguments, in which an argument can never become query.

A template holds places such as {{ namespace }}. What may stand in a place depends on where
it is: in a string anything, escaped (and taken literally if the string is a pattern); in
brackets a duration; elsewhere a number, a duration or a name.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fairlead import errors

PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}")
_DURATION = re.compile(r"([0-9]+(ms|[smhdwy]))+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_RAW = "`"
_FIRST_PRINTABLE = " "

# A version that fails every request has no series of good ones, and a query that divides
# nothing by something is "no data": a policy of waiting would let it live. Hence `or vector(0)`.
_SUCCESS = (
    "(sum(rate({good}[{{{{ interval }}}}])) or vector(0))"
    " / sum(rate({all}[{{{{ interval }}}}])) * 100"
)
# Those between the first scrape and the last: `increase` adds a guess for the rest of the window, a
# third more where it has four scrapes. A counter that began anew in it is left out.
_COUNT = (
    "sum((max_over_time({all}[{{{{ interval }}}}]) - min_over_time({all}[{{{{ interval }}}}]))"
    " and resets({all}[{{{{ interval }}}}]) == 0)"
)
_P99 = "histogram_quantile(0.99, sum(rate({buckets}[{{{{ interval }}}}])) by (le))"


def render(template: str, arguments: Mapping[str, str]) -> str:
    """The query; Rejected where an argument is missing or does not fit its place."""
    parts: list[str] = []
    scan = _Scan()
    position = 0
    for place in PLACE.finditer(template):
        text = template[position : place.start()]
        scan.read(text)
        parts += (text, scan.fit(place[1], value(place[1], arguments)))
        position = place.end()
    return "".join((*parts, template[position:]))


@dataclass(slots=True)
class _Scan:
    """Where in a query we are, after all that was read."""

    quote: str = ""
    pattern: bool = False
    brackets: bool = False
    comment: bool = False
    _escaped: bool = False
    _before: str = ""

    def read(self, text: str) -> None:
        for character in text:
            if self.quote:
                self._read_quoted(character)
            else:
                self._read_bare(character)

    def fit(self, name: str, value: str) -> str:
        """The value as it may stand here."""
        if self.quote and not self._escaped:
            return _quoted(name, value, self.quote, pattern=self.pattern)
        kinds = (_DURATION,) if self.brackets else (_DURATION, _NUMBER, _NAME)
        if self.quote or self.comment or not any(kind.fullmatch(value) for kind in kinds):
            wanted = "a duration such as 1m" if self.brackets else "a number or a plain name"
            raise errors.Rejected(
                f"argument {name} is not allowed here in the query: {value[:80]!r}",
                hint=f"use {wanted}, or quote the placeholder to allow any text",
            )
        self._before = ""
        return value

    def _read_quoted(self, character: str) -> None:
        if self._escaped:
            self._escaped = False
        elif character == "\\" and self.quote != _RAW:
            self._escaped = True
        elif character == self.quote:
            self.quote = ""

    def _read_bare(self, character: str) -> None:
        if self.comment:
            self.comment = character != "\n"
        elif character in "\"'`":
            self.quote, self.pattern = character, self._before == "~"
        elif character == "#":
            self.comment = True
        elif character in "[]":
            self.brackets = character == "["
        if not character.isspace():
            self._before = character


def value(name: str, arguments: Mapping[str, str]) -> str:
    """The argument of this name; Rejected where it is missing."""
    if name not in arguments:
        raise errors.Rejected(
            f"missing query argument: {name}",
            hint=f"known arguments: {', '.join(sorted(arguments)) or 'none'}",
        )
    return arguments[name]


def _quoted(name: str, value: str, quote: str, *, pattern: bool) -> str:
    literal = _SPECIAL.sub(r"\\\1", value) if pattern else value
    if quote == _RAW:
        if _RAW in literal:
            raise errors.Rejected(
                f"argument {name} cannot stand between backquotes: {value[:80]!r}",
                hint='use "…" in the template',
            )
        return literal
    return "".join(_escaped(name, literal, quote))


def _escaped(name: str, literal: str, quote: str) -> Iterator[str]:
    for character in literal:
        if character == quote:
            yield f"\\{quote}"
        elif character in _ESCAPES:
            yield _ESCAPES[character]
        elif character < _FIRST_PRINTABLE:
            raise errors.Rejected(
                f"argument {name} holds a control character: {literal[:80]!r}",
                hint="remove it",
            )
        else:
            yield character


def _pair(all_requests: str, not_failed: str, buckets: str) -> dict[str, str]:
    """Success in percent, requests, and the 99th percentile in milliseconds, of three selectors."""
    good = f"{all_requests[:-1]},{not_failed}}}"
    return {
        "request-success-rate": _SUCCESS.format(good=good, all=all_requests),
        "request-count": _COUNT.format(all=all_requests),
        "request-duration": _P99.format(buckets=buckets),
    }


def _envoy(labels: str) -> dict[str, str]:
    return _pair(
        f"envoy_cluster_upstream_rq_xx{{{labels}}}",
        'envoy_response_code_class!="5"',
        f"envoy_cluster_upstream_rq_time_bucket{{{labels}}}",
    )


_ISTIO_WORKLOAD = (
    'reporter="destination",destination_workload_namespace="{{ namespace }}",'
    'destination_workload=~"{{ target }}"'
)
_ISTIO_CLUSTER = (
    'cluster_name="outbound|{{ port }}||{{ service }}.{{ namespace }}.svc.cluster.local"'
)

# Provider -> metric -> template. Arguments beside interval:
BUILT_IN: Mapping[str, Mapping[str, str]] = {
    # namespace, target: the workload, as Istio's own proxies count its requests.
    "istio": _pair(
        f"istio_requests_total{{{_ISTIO_WORKLOAD}}}",
        'response_code!~"5.*"',
        f"istio_request_duration_milliseconds_bucket{{{_ISTIO_WORKLOAD}}}",
    ),
    # namespace, service, port: as a gateway that istiod drives counts them.
    "istio-gateway": _pair(
        f"envoy_cluster_upstream_rq{{{_ISTIO_CLUSTER}}}",
        'response_code_class!="5xx"',
        f"envoy_cluster_upstream_rq_time_bucket{{{_ISTIO_CLUSTER}}}",
    ),
    # namespace, service, port: Envoy Gateway with `mergeBackends`, which alone counts each
    # backend of a route by itself.
    "envoy-gateway": _envoy(
        'envoy_cluster_name="service/{{ namespace }}/{{ service }}/{{ port }}/http"'
    ),
    # cluster: any Envoy; on the local platform the version.
    "envoy": _envoy('envoy_cluster_name="{{ cluster }}"'),
}
