"""Answers as bytes, made once: every encoding, with its headers, its ETag and its 304."""

import functools
import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import brotli

from fairlead.areas.content.domain.edition import Body
from fairlead.areas.content.domain.population import Channel
from fairlead.areas.content.service import http1
from fairlead.areas.content.service.http1 import Headers

JSON = "application/json"
PLAIN = ""
_SUFFIX = {PLAIN: "", "gzip": "-gzip", "br": "-br"}
_WORTH = 256
"""Below so many bytes, compressed ones fit into the same packet."""

_LONGEST = 256
"""No client has longer preferences, and what is kept of them stays small."""


@dataclass(frozen=True, slots=True)
class Form:
    """One encoding of an answer."""

    head: bytes
    unmodified: bytes
    body: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What one body is sent as; there is one of each, so it is known by being itself."""

    file: str
    version: str
    channel: Channel
    forms: Mapping[str, Form]
    etags: frozenset[str]

    def form(self, accepted: str) -> Form:
        for encoding in preferred(accepted):
            if found := self.forms.get(encoding):
                return found
        return self.forms[PLAIN]

    def known(self, if_none_match: str) -> bool:
        """Whether the client says that it has this already, in whichever encoding."""
        if if_none_match in self.etags:
            return True
        given = (each.strip().removeprefix("W/") for each in if_none_match.split(","))
        return any(each in self.etags or each == "*" for each in given)


def answer(body: Body, version: str, channel: Channel, vary: str) -> Answer:
    digest = hashlib.sha256(body.data).hexdigest()[:32]
    coded = {PLAIN: body.data}
    if len(body.data) >= _WORTH:
        coded |= {
            "gzip": gzip.compress(body.data, 9, mtime=0),
            "br": brotli.compress(body.data),
        }
    etags = {encoding: f'"{digest}{_SUFFIX[encoding]}"' for encoding in coded}
    # Private: a shared cache that does not heed Vary would hand a canary to everybody.
    shared = [
        ("cache-control", "private, no-cache"),
        ("vary", f"Accept-Encoding, {vary}"),
        ("fairlead-channel", str(channel)),
        ("fairlead-version", version),
    ]
    forms = {
        encoding: _form(data, encoding, [*shared, ("etag", etags[encoding])])
        for encoding, data in coded.items()
    }
    return Answer(body.file, version, channel, forms, frozenset(etags.values()))


def _form(data: bytes, encoding: str, shared: Headers) -> Form:
    coded = [("content-encoding", encoding)] if encoding else []
    headers = [("content-type", JSON), ("content-length", str(len(data))), *coded, *shared]
    return Form(http1.head(200, headers), http1.head(304, shared), data)


def preferred(accepted: str) -> tuple[str, ...]:
    """The encodings that a client takes, best first: brotli, then gzip, of equal weight."""
    return _preferred(accepted) if len(accepted) <= _LONGEST else ()


@functools.lru_cache(maxsize=256)
def _preferred(accepted: str) -> tuple[str, ...]:
    weights: dict[str, float] = {}
    for part in accepted.lower().split(","):
        name, _, parameter = part.strip().partition(";")
        weights[name.strip()] = _weight(parameter.strip())
    usual = weights.get("*", 0.0)
    found = [(weights.get(name, usual), name) for name in ("br", "gzip")]
    return tuple(name for weight, name in sorted(found, key=_heaviest) if weight > 0)


def _heaviest(found: tuple[float, str]) -> float:
    return -found[0]


def _weight(parameter: str) -> float:
    if not parameter.startswith("q="):
        return 1.0
    try:
        weight = float(parameter[2:])
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0
