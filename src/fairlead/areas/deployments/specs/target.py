"""A push target: which pushes to a repository bring its application to an environment."""

from typing import Annotated, Literal

import msgspec

from fairlead.areas.deployments.specs.application import Name
from fairlead.areas.deployments.specs.environment import EnvironmentName

MOST_STARS = 5
MOST_NAME = 150
"""Of environment and application together: names of deployments are longer, and have an end too."""

Provider = Literal["github", "gitlab", "gitea"]
Repository = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$", max_length=150
    ),
]
Path = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9_@+-][A-Za-z0-9_.@+-]*(/[A-Za-z0-9_@+-][A-Za-z0-9_.@+-]*)*$",
        max_length=300,
    ),
]
"""No part begins with a dot, so that none leads out of the repository."""

Pattern = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class PushTarget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One application in one environment, and the repository that it comes from."""

    environment: EnvironmentName
    application: Name
    """What the file in the repository must call itself: it cannot take another's place."""

    repository: Repository
    kind: Literal["push-target"] = "push-target"
    provider: Provider = "github"
    path: Path = "fairlead.yaml"
    """Of the application's file in the repository."""

    branches: Annotated[list[Pattern], msgspec.Meta(max_length=20)] = []
    tags: Annotated[list[Pattern], msgspec.Meta(max_length=20)] = []
    """Names in which `*` stands for any letters; without any, only people deploy."""

    @property
    def name(self) -> str:
        return f"{self.environment}/{self.application}"

    def takes(self, ref: str) -> bool:
        """Whether a push to `refs/heads/…` or `refs/tags/…` is for it."""
        for prefix, patterns in (("refs/heads/", self.branches), ("refs/tags/", self.tags)):
            if ref.startswith(prefix):
                return any(fits(each, ref.removeprefix(prefix)) for each in patterns)
        return False


def fits(pattern: str, name: str) -> bool:
    """Whether the name is the pattern, with `*` for any letters; the time taken is linear."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    last = rest.pop()
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    at, end = len(first), len(name) - len(last)
    for part in rest:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
