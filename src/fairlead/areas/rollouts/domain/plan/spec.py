"""What a user requests of a rollout: the strategy, the checks, the limits around them."""

import datetime as dt
import re
from dataclasses import dataclass, replace

from fairlead import errors
from fairlead.areas.rollouts.domain.plan.strategy import Strategy
from fairlead.areas.rollouts.domain.plan.windows import Window
from fairlead.checks.spec import Check
from fairlead.values import check_span

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}")


@dataclass(frozen=True, slots=True)
class Group:
    """Rollouts that are promoted together or not at all."""

    name: str
    members: tuple[str, ...]
    me: str = ""
    """What the members call this rollout; empty where they know it by its own name."""

    def __post_init__(self) -> None:
        _check_name("group", self.name)
        if len(set(self.members)) != len(self.members) or not self.members:
            raise errors.Rejected(
                f"group members missing or duplicate: {self.name}",
                hint="name each rollout of the group once",
            )


@dataclass(frozen=True, slots=True)
class Limiter:
    """How many rollouts of one namespace may be under way at once."""

    name: str
    cap: int

    def __post_init__(self) -> None:
        _check_name("limiter", self.name)
        if self.cap < 1:
            raise errors.Rejected(f"cap below 1: {self.cap}", hint="let at least one run")


@dataclass(frozen=True, slots=True)
class Spec:
    """Everything requested, besides the version itself."""

    strategy: Strategy = Strategy()
    checks: tuple[Check, ...] = ()
    deadline: dt.timedelta = dt.timedelta(minutes=10)
    """How long a step may take to get ready before the rollout rolls back."""

    patience: dt.timedelta = dt.timedelta(hours=1)
    """How long a step may wait for data, gates or its group before it pauses for a person."""

    windows: tuple[Window, ...] = ()
    group: Group | None = None
    limiter: Limiter | None = None
    keep: int = 10
    """How many old revisions one can roll back to."""

    def __post_init__(self) -> None:
        names = [check.name for check in self.checks]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise errors.Rejected(
                f"duplicate check names: {', '.join(twice)}", hint="name each differently"
            )
        if min(self.deadline, self.patience) <= dt.timedelta():
            raise errors.Rejected("deadline or patience not above 0", hint="use 10m or 1h")
        check_span(self.deadline, "deadline")
        check_span(self.patience, "patience")
        if self.keep < 1:
            raise errors.Rejected(f"kept revisions below 1: {self.keep}", hint="keep at least one")


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a workload: what its template and its configs mean, and how people call it."""

    revision: str
    """The name under which the platform can make it again."""

    template: str
    configs: str = ""
    label: str = ""

    @property
    def meaning(self) -> tuple[str, str]:
        return self.template, self.configs

    def __str__(self) -> str:
        return self.label or self.revision


def within(spec: Spec, scope: str, name: str) -> Spec:
    """Groups and limiters of a project or namespace are its own; a group's members go by `name`."""
    group, limiter = spec.group, spec.limiter
    if group is not None:
        group = Group(f"{scope}/{group.name}", group.members, me=name)
    if limiter is not None:
        limiter = Limiter(f"{scope}/{limiter.name}", limiter.cap)
    return replace(spec, group=group, limiter=limiter)


def _check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise errors.Rejected(
            f"invalid {what} name: {name[:80]!r}", hint="use letters, digits or . _ : / @ -"
        )
