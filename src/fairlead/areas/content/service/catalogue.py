"""All that may be asked for, by path: which document, and which of its answers."""

import bisect
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fairlead import errors
from fairlead.areas.content.description import NONE, Description
from fairlead.areas.content.domain import semver
from fairlead.areas.content.domain.edition import Document, Edition
from fairlead.areas.content.domain.identity import cluster
from fairlead.areas.content.domain.population import Channel
from fairlead.areas.content.service.answers import Answer, answer

PREFIX = "/api/gathering"
AUTHORIZATION = "Authorization"
_LONGEST_KEPT = 256
TOO_LOW = "the given OCP version is lower than the first one in the cluster map"
HeaderMap = Mapping[str, str]
"""The headers of a request, by names in small letters."""

_BELOW = "the version is lower than the first one in the map"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no answer for this version of who asks."""

    status: int
    message: str


Chosen = Callable[[str], Answer | Refusal]
"""From the version of who asks, empty where the path has none."""

Channels = Mapping[Channel, Chosen]


@dataclass(frozen=True, slots=True)
class Identity:
    """How it is known who asks, and by which header."""

    header: str
    identify: Callable[[HeaderMap], str | Refusal]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What is served of one content: both channels, built before the first request."""

    name: str
    exact: Mapping[str, Channels]
    """By whole path."""

    selected: Mapping[tuple[str, str], Channels]
    """By what stands before and after the version of who asks in the path."""

    documents: tuple[str, ...]
    """Paths of the description of the API."""

    identity: Identity
    stable: str = ""
    canary: str = ""

    def find(self, path: str) -> tuple[Channels, str] | None:
        if found := self.exact.get(path):
            return found, ""
        if path in self.documents:
            return None
        for (before, after), channels in self.selected.items():
            if path.startswith(before) and path.endswith(after):
                version = path[len(before) : len(path) - len(after)]
                if _is_part(path, version, before + after):
                    return channels, version
        return None


def _is_part(path: str, version: str, around: str) -> bool:
    """Whether it is one part of a path; `..` is a way, and no version."""
    return "/" not in version and version not in {"", ".", ".."} and len(path) > len(around)


def told(content: Description) -> Identity:
    """By whatever id is sent along; nobody vouches for it."""
    if content.kind == "gathering":
        return Identity("User-Agent", lambda headers: cluster(headers.get("user-agent", "")))
    header = content.identity.lower()
    return Identity(content.identity, lambda headers: headers.get(header, ""))


def catalogue(
    content: Description, stable: Edition, canary: Edition | None, identity: Identity | None = None
) -> Catalogue:
    """Without a canary everybody gets stable, whatever the share says."""
    both = {Channel.STABLE: stable, Channel.CANARY: canary or stable}
    known = identity or told(content)
    made = {
        name: {
            channel: chooser(
                each.documents[name], each.version, channel, known.header, content.kind
            )
            # With no canary, stable is what the canary's share gets, and it is called so.
            for channel, each in both.items()
        }
        for name in stable.documents
    }
    if canary is None:
        made = {name: dict.fromkeys(Channel, each[Channel.STABLE]) for name, each in made.items()}
    versions = (stable.version, canary.version if canary else NONE)
    if content.kind == "gathering":
        return _gathering(content.name, made, known, versions)
    return _generic(content, made[""], known, versions)


def _gathering(
    name: str, made: Mapping[str, Channels], known: Identity, versions: tuple[str, str]
) -> Catalogue:
    return Catalogue(
        name,
        exact={f"{PREFIX}{part}/gathering_rules": made["v1"] for part in ("", "/v1")},
        selected={(f"{PREFIX}/v2/", "/gathering_rules"): made["v2"]},
        documents=tuple(f"{PREFIX}{part}/openapi.json" for part in ("", "/v1", "/v2")),
        identity=known,
        stable=versions[0],
        canary=versions[1],
    )


def _generic(
    content: Description, made: Channels, known: Identity, versions: tuple[str, str]
) -> Catalogue:
    path = f"/content/{content.name}"
    return Catalogue(
        content.name,
        exact={} if content.map else {path: made},
        selected={(f"{path}/", ""): made} if content.map else {},
        documents=(f"{path}/openapi.json",),
        identity=known,
        stable=versions[0],
        canary=versions[1],
    )


def chooser(document: Document, version: str, channel: Channel, vary: str, kind: str) -> Chosen:
    made = {body: answer(body, version, channel, vary) for body in document.bodies}
    answers = tuple(made[body] for body in document.bodies)
    if not document.starts:
        return lambda _: answers[0]

    def chosen(asked: str) -> Answer | Refusal:
        try:
            key = semver.parse(asked).key
        except errors.Rejected as error:
            if kind != "gathering":
                return Refusal(400, f"not a semantic version: '{asked}': {error.message}")
            said = f"Error during parsing param 'ocpVersion' with value '{asked}'."
            return Refusal(400, f"{said} Error: '{error.message}'")
        at = bisect.bisect_right(document.starts, key) - 1
        below = TOO_LOW if kind == "gathering" else _BELOW
        return Refusal(404, below) if at < 0 else answers[at]

    # Clients have few versions; whoever makes up many only turns the cache over.
    known = functools.lru_cache(maxsize=1024)(chosen)
    return lambda asked: known(asked) if len(asked) <= _LONGEST_KEPT else chosen(asked)
