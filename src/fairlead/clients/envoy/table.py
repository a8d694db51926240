"""Who gets which requests: versions, and sites with rules that share requests among them.

Everything here is checked before Envoy sees it, so that a person hears our words; Envoy's
own refusal stays as the second line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fairlead import errors

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
# The characters that HTTP allows in the name of a header or a cookie.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_WHOLE = 100


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a program and the loopback ports on which it answers."""

    name: str
    ports: tuple[int, ...]
    # With a path Envoy itself asks each port, and leaves out those that answer badly.
    health_path: str | None = None

    def __post_init__(self) -> None:
        _check_name("version", self.name)
        if not self.ports:
            raise errors.Rejected(
                f"version without a port: {self.name}", hint="start it first, then route to it"
            )


@dataclass(frozen=True, slots=True)
class Weight:
    """So many percent of a rule's requests go to this version."""

    version: str
    percent: int


@dataclass(frozen=True, slots=True)
class HeaderIs:
    """Only requests with this header; as a regular expression it must fit the whole value."""

    name: str
    value: str
    regex: bool = False

    def __post_init__(self) -> None:
        _check_token("header", self.name)


@dataclass(frozen=True, slots=True)
class CookieIs:
    """Only requests with this cookie; as a regular expression it must fit the whole value."""

    name: str
    value: str
    regex: bool = False

    def __post_init__(self) -> None:
        _check_token("cookie", self.name)


@dataclass(frozen=True, slots=True)
class ByCookie:
    """A browser stays with its version: Envoy hands out a cookie and goes by it."""

    name: str = "fairlead"
    max_age_seconds: int = 86400

    def __post_init__(self) -> None:
        _check_token("cookie", self.name)


@dataclass(frozen=True, slots=True)
class ByHeader:
    """All requests with the same value of this header go to the same version."""

    name: str

    def __post_init__(self) -> None:
        _check_token("header", self.name)


@dataclass(frozen=True, slots=True)
class Mirror:
    """This version gets a copy of so many percent of the requests; nobody hears its answers."""

    version: str
    percent: int = 100


@dataclass(frozen=True, slots=True)
class Rule:
    """Requests that match, and how they are shared.

    With an affinity the order of weights matters: a version listed first keeps all of its
    users while its percent grows. So list the newcomer first.
    """

    weights: tuple[Weight, ...]
    prefix: str = "/"
    match: tuple[HeaderIs | CookieIs, ...] = ()
    mirror: Mirror | None = None
    affinity: ByCookie | ByHeader | None = None
    timeout_seconds: float = 15.0

    def __post_init__(self) -> None:
        percents = [weight.percent for weight in self.weights]
        if any(not 0 <= percent <= _WHOLE for percent in percents) or sum(percents) != _WHOLE:
            raise errors.Rejected(
                f"weights of a rule do not add up to 100 %: {percents}",
                hint="use whole percents from 0 to 100 that add up to 100",
            )
        if self.mirror is not None and not 0 <= self.mirror.percent <= _WHOLE:
            raise errors.Rejected(
                f"mirror percentage outside 0-100: {self.mirror.percent}", hint="use whole percents"
            )

    def versions(self) -> Iterator[str]:
        yield from (weight.version for weight in self.weights)
        if self.mirror is not None:
            yield self.mirror.version


@dataclass(frozen=True, slots=True)
class Site:
    """Rules for the requests to some host names; the first that fits decides."""

    name: str
    rules: tuple[Rule, ...]
    domains: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class Table:
    """All that one Envoy routes."""

    versions: tuple[Version, ...]
    sites: tuple[Site, ...]

    def __post_init__(self) -> None:
        names = [stat_name(version.name) for version in self.versions]
        if len(set(names)) != len(names):
            raise errors.Rejected(
                f"version names that Envoy's metrics cannot tell apart: {', '.join(sorted(names))}",
                hint="let names differ in more than dots and underscores",
            )
        known = {version.name for version in self.versions}
        for site in self.sites:
            for rule in site.rules:
                for name in rule.versions():
                    if name not in known:
                        raise errors.Rejected(
                            f"rule of {site.name} names a version that is not there: {name}",
                            hint=f"there are: {', '.join(sorted(known)) or 'none'}",
                        )


def stat_name(version: str) -> str:
    """A version as Envoy's numbers name it: a dot would end the name there."""
    return version.replace(".", "_")


def _check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise errors.Rejected(
            f"malformed name of a {what}: {name[:80]!r}",
            hint="use up to 63 lower-case letters, digits, dots and dashes",
        )


def _check_token(what: str, name: str) -> None:
    if not _TOKEN.fullmatch(name):
        raise errors.Rejected(
            f"malformed name of a {what}: {name[:80]!r}", hint="use letters, digits and dashes"
        )
