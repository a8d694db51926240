"""Where the two versions of a content are deployed, and who says its share."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

NO_VERSION = "none"
"""As CANARY_VERSION has it."""


@dataclass(frozen=True, slots=True)
class LocalService:
    """Processes of `fairlead content serve` behind one port of this machine."""

    port: int
    replicas: int = 1


@dataclass(frozen=True, slots=True)
class GitFile:
    """A file of the installation's git repository that has the two variables."""

    file: str
    branch: str = "main"


@dataclass(frozen=True, slots=True)
class KubernetesService:
    """A Deployment that has the two variables."""

    namespace: str
    deployment: str
    container: str = "content"
    config_map: str = ""
    """Has our own share under `share.json`, where no flag says it."""

    git: GitFile | None = None
    """Has the variables, and somebody else applies them to the Deployment."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of Unleash, whose first strategy of gradual rollout has the share."""

    name: str
    project: str = "default"
    environment: str = "production"


@dataclass(frozen=True, slots=True)
class Place:
    """One of the two services; without a flag, the share is our own."""

    description: dict[str, Any] = field(default_factory=dict)
    """The content's own file, with whole paths."""

    local: LocalService | None = None
    kubernetes: KubernetesService | None = None
    flag: Flag | None = None

    @property
    def commits(self) -> Mapping[str, str]:
        """By version: what its tag was when it was proposed."""
        pins = self.description.get("pins", {})
        return {version: pin["commit"] for version, pin in pins.items() if pin.get("commit")}

    def with_commit(self, version: str, commit: str) -> "Place":
        """The same, with a version that must be this commit."""
        pins = self.description.get("pins", {})
        pin = {**pins.get(version, {}), "commit": commit}
        return replace(self, description={**self.description, "pins": {**pins, version: pin}})

    @property
    def share_delay(self) -> dt.timedelta:
        """By when every instance has heard of a share.

        Files are read each second, SDKs of Unleash ask every 15 s by default, and a kubelet brings
        a ConfigMap within about a minute.
        """
        if self.flag is not None:
            return dt.timedelta(seconds=30)
        return dt.timedelta(seconds=90 if self.kubernetes is not None else 3)


@dataclass(frozen=True, slots=True)
class Versions:
    """What the two variables say."""

    stable: str
    canary: str = NO_VERSION

    def pinned(self, commits: Mapping[str, str]) -> str:
        """As FAIRLEAD_CONTENT_COMMITS has it; empty where no commit of theirs is known."""
        known = sorted({self.stable, self.canary} & commits.keys())
        return " ".join(f"{each}={commits[each]}" for each in known)
