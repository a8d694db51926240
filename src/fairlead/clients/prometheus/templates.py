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


def built_in(counter: str, good: str, buckets: str, labels: str) -> Mapping[str, str]:
    """The built-in metrics: success in percent, requests, and the 99th percentile in milliseconds.

    Of a counter of requests, the label of those that did not fail, and a histogram of times.
    """
    every, well = f"{counter}{{{labels}}}", f"{counter}{{{labels},{good}}}"
    return {
        "request-success-rate": _SUCCESS.format(good=well, all=every),
        "request-count": _COUNT.format(all=every),
        "request-duration": _P99.format(buckets=f"{buckets}{{{labels}}}"),
    }


def envoy(labels: str) -> Mapping[str, str]:
    """As Envoy itself counts the requests of a cluster."""
    return built_in(
        "envoy_cluster_upstream_rq_xx",
        'envoy_response_code_class!="5"',
        "envoy_cluster_upstream_rq_time_bucket",
        labels,
    )


ENVOY = envoy('envoy_cluster_name="{{ cluster }}"')
"""Of any Envoy; on the local platform a cluster is a version."""
