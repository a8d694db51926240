"""How people write a release: where a content is served, and how the share of a version grows.

plain data ──► ReleaseWords (its shape is right) ──► Intent (it makes sense) ──► Propose
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from fairlead import validation
from fairlead.areas.content import description
from fairlead.areas.content.domain.population import Share, parse_share
from fairlead.areas.content.domain.release.draft import stream
from fairlead.areas.content.domain.release.messages import Propose
from fairlead.areas.content.domain.release.place import (
    Flag,
    GitFile,
    KubernetesService,
    LocalService,
    Place,
)
from fairlead.areas.content.domain.release.plan import Plan, Step, exponential, linear
from fairlead.checks import rules as check_rules
from fairlead.checks.rules import CheckWords, Duration, duration
from fairlead.engine.messages import Send, StreamName
from fairlead.validation import refusal

_ABOUT = "see docs/reference/content.md"
_ENVIRONMENT = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,28}[a-z0-9])?")
_PART = re.compile(r"[A-Za-z0-9._-]{1,100}")
_HIGHEST_PORT = 65535
_WHOLE = 100
_MOST_REPLICAS = 64


class _Words(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An unknown field is refused, not ignored."""


class StepWords(_Words, frozen=True):
    """One share, as a percentage, and how long it holds at least."""

    share: float
    bake: Duration
    approve: bool = False


class LinearWords(_Words, frozen=True):
    """The same share more each time."""

    by: float
    every: Duration
    to: float = 100


class ExponentialWords(_Words, frozen=True):
    """So many times the share each time."""

    first: float
    every: Duration
    factor: int = 2
    to: float = 100


class LocalWords(_Words, frozen=True):
    """Processes of this machine behind one port."""

    port: int
    replicas: int = 2


class GitWords(_Words, frozen=True):
    """A file of the repository that Argo CD or Flux applies."""

    file: str
    branch: str = "main"


class KubernetesWords(_Words, frozen=True):
    """A Deployment, and the ConfigMap of its share."""

    namespace: str
    deployment: str
    container: str = "content"
    config_map: str = ""
    git: GitWords | None = None


class FlagWords(_Words, frozen=True):
    """A flag of Unleash."""

    name: str = ""
    project: str = "default"
    environment: str = "production"


class ReleaseWords(_Words, frozen=True):
    """One file; `content` is the description of the content itself."""

    content: dict[str, Any]
    environment: str = ""
    after: str = ""
    """The environment whose stable version this must be already."""

    local: LocalWords | None = None
    kubernetes: KubernetesWords | None = None
    flag: FlagWords | None = None
    poll_interval: Duration = "2h"
    deadline: Duration = "10m"
    steps: tuple[StepWords, ...] = ()
    linear: LinearWords | None = None
    exponential: ExponentialWords | None = None
    checks: tuple[CheckWords, ...] = ()


class Proposed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A version, and the file by which it is released."""

    release: dict[str, Any]
    version: str
    why: str
    stable: str = ""
    emergency: bool = False
    id: str = ""
    """The caller's name for this request."""

    def command(self, by: str, parent: str = "") -> Propose:
        """Invalid or Rejected where the file or a version makes no sense."""
        intent = read(self.release)
        if self.stable:
            description.check_version(self.stable)
        return Propose(
            name=intent.name,
            version=description.check_version(self.version),
            plan=intent.plan,
            place=intent.place,
            by=by,
            why=self.why,
            stable=self.stable,
            emergency=self.emergency,
            parent=parent,
        )


@dataclass(frozen=True, slots=True)
class Intent:
    """What a file says, without a version."""

    name: str
    plan: Plan
    place: Place
    after: str = ""
    """The release that must have made the version stable before; empty where none must."""


def start(parent: StreamName, words: Mapping[str, object]) -> Send:
    """The step of a plan: proposes in the plan's name; a person still approves."""
    command = proposed(dict(words)).command(parent, parent)
    return Send(stream(command.name), command)


def proposed(content: object) -> Proposed:
    return validation.convert(content, Proposed, about=_ABOUT)


def read(content: object) -> Intent:
    """From plain data; Invalid with all that does not hold."""
    words = validation.convert(content, ReleaseWords, about=_ABOUT)
    gathered = validation.Gathered()
    with gathered.part():
        described = description.read(words.content, Path("/"))
    with gathered.part():
        _check_place(words)
    with gathered.part():
        plan = _plan(words)
    gathered.settle()
    with gathered.part():
        _check_whole(words, plan)
    gathered.settle()
    name = f"{words.environment}/{described.name}" if words.environment else described.name
    after = f"{words.after}/{described.name}" if words.after else ""
    return Intent(name, plan, _place(words, described), after)


def _place(words: ReleaseWords, described: description.Description) -> Place:
    local, cluster, flag = words.local, words.kubernetes, words.flag
    return Place(
        msgspec.to_builtins(described),
        local=LocalService(local.port, local.replicas) if local else None,
        kubernetes=_kubernetes(cluster) if cluster else None,
        flag=Flag(flag.name or described.name, flag.project, flag.environment) if flag else None,
    )


def _kubernetes(words: KubernetesWords) -> KubernetesService:
    git = GitFile(words.git.file, words.git.branch) if words.git else None
    return KubernetesService(
        words.namespace, words.deployment, words.container, words.config_map, git
    )


def _check_place(words: ReleaseWords) -> None:
    for field, name in (("environment", words.environment), ("after", words.after)):
        if name and not _ENVIRONMENT.fullmatch(name):
            hint = "use up to 30 lower-case letters, digits and dashes"
            raise refusal(field, f"invalid name: {name[:80]!r}", hint)
    if words.after and words.after == words.environment:
        raise refusal("after", f"after itself: {words.after}", "name the environment before it")
    if (words.local is None) == (words.kubernetes is None):
        raise refusal("local", "not one place", "give either local or kubernetes")
    if words.local and not 0 < words.local.port <= _HIGHEST_PORT:
        raise refusal("local.port", f"no such port: {words.local.port}", "use 1 to 65535")
    if words.local and not 0 < words.local.replicas <= _MOST_REPLICAS:
        hint = f"use 1 to {_MOST_REPLICAS}"
        raise refusal("local.replicas", f"too few or too many: {words.local.replicas}", hint)
    if words.kubernetes and not words.flag and not words.kubernetes.config_map:
        hint = "name the ConfigMap of share.json, or a flag of Unleash"
        raise refusal("kubernetes.configMap", "nobody says the share", hint)
    git = words.kubernetes.git if words.kubernetes else None
    if git and not (_plain(git.file) and _plain(git.branch)):
        hint = "use a path within the repository, and the name of a branch"
        raise refusal("kubernetes.git", f"no such place: {git.branch[:40]} {git.file[:80]}", hint)


def _plain(path: str) -> bool:
    parts = path.split("/")
    return all(_PART.fullmatch(each) and not each.startswith(".") for each in parts)


def _plan(words: ReleaseWords) -> Plan:
    given = {"steps": words.steps, "linear": words.linear, "exponential": words.exponential}
    if sum(bool(each) for each in given.values()) != 1:
        raise refusal("steps", "not one way to grow", f"give one of {', '.join(given)}")
    checks = check_rules.checks(words.checks, "checks")
    polls = duration(words.poll_interval, "pollInterval")
    deadline = duration(words.deadline, "deadline")
    with check_rules.named("steps"):
        return Plan(_steps(words), polls, checks, deadline)


def _steps(words: ReleaseWords) -> tuple[Step, ...]:
    if grown := words.linear:
        return linear(_share(grown.by), duration(grown.every, "linear.every"), _share(grown.to))
    if fast := words.exponential:
        every = duration(fast.every, "exponential.every")
        return exponential(_share(fast.first), fast.factor, every, _share(fast.to))
    return tuple(
        Step(_share(each.share), duration(each.bake, f"steps[{n}].bake"), each.approve)
        for n, each in enumerate(words.steps)
    )


def _share(percent: float) -> Share:
    return parse_share(f"{percent:.12g}")


def _check_whole(words: ReleaseWords, plan: Plan) -> None:
    if words.flag and any(step.share % _WHOLE for step in plan.steps):
        hint = "use whole percents, or our own share"
        raise refusal("steps", "finer than Unleash's rule has it", hint)
