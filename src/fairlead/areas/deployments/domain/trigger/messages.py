"""What comes to triggers, what happens to them, and what they ask of the world."""

import enum
from dataclasses import dataclass, field

from fairlead.areas.deployments.domain.spec import DeploymentSpec, Flag
from fairlead.engine.messages import ChildEnded, StreamName, stream_name


class Progress(enum.Enum):
    """How far a target has come."""

    FETCHING = "FETCHING"
    REQUESTED = "REQUESTED"
    DONE = "DONE"
    FAILED = "FAILED"
    REFUSED = "REFUSED"


class Check(enum.Enum):
    """What the repository's host shows beside the commit."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Source:
    """A commit of a repository; who asks for a branch or tag learns later which one it is."""

    provider: str
    repository: str
    ref: str = ""
    """`refs/heads/…` or `refs/tags/…`; empty where only the commit is known."""

    commit: str = ""
    reports: bool = False
    """Whether its host wants to hear how deployments end."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is deployed where, and where its file lies in the repository."""

    environment: str
    application: str
    path: str

    @property
    def key(self) -> str:
        return f"{self.environment}/{self.application}"


@dataclass(frozen=True, slots=True)
class Start:
    """Command: deploy these."""

    trigger: str
    source: Source
    targets: tuple[Target, ...]
    cause: str
    by: str
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportCommit:
    """Command, the answer to ResolveCommit; without a commit, why there is none."""

    commit: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReportConfiguration:
    """Command, the answer to FetchConfiguration: what is to be deployed."""

    target: str
    spec: DeploymentSpec
    template: str = ""
    environment_version: int = 0
    queue: str = ""
    """Of those who perform it."""

    beside: dict[str, str] = field(default_factory=dict)
    """What is stored with the template, by key: migrations."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Command, the answer to FetchConfiguration: nothing can be deployed."""

    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReportPublished:
    """Command, the answer to PublishCheck: it is shown, or will never be."""

    target: str
    check: Check
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Started:
    """Event: somebody or something asked."""

    trigger: str
    source: Source
    targets: tuple[Target, ...]
    cause: str
    by: str
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class CommitResolved:
    """Event: the branch or tag is this commit."""

    commit: str


@dataclass(frozen=True, slots=True)
class DeploymentRequested:
    """Event: the file was read, and its deployment requested."""

    target: str
    deployment: str
    environment_version: int = 0


@dataclass(frozen=True, slots=True)
class TargetRefused:
    """Event: nothing is deployed there."""

    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class DeploymentEnded:
    """Event: a deployment, or a retry of it, came to its end."""

    target: str
    deployment: str
    succeeded: bool


@dataclass(frozen=True, slots=True)
class CheckPublished:
    """Event: the repository's host shows it, or has a problem with it."""

    target: str
    check: Check
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ResolveCommit:
    """Effect: say which commit the branch or tag is."""

    source: Source


@dataclass(frozen=True, slots=True)
class FetchConfiguration:
    """Effect: read a target's file at that commit, and build what is to be deployed."""

    source: Source
    target: Target
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishCheck:
    """Effect: show this beside the commit, in place of what was shown under the same id."""

    source: Source
    target: str
    external_id: str
    check: Check
    summary: str


Command = Start | ReportCommit | ReportConfiguration | Refuse | ReportPublished | ChildEnded
Event = (
    Started
    | CommitResolved
    | DeploymentRequested
    | TargetRefused
    | DeploymentEnded
    | CheckPublished
)
Effect = ResolveCommit | FetchConfiguration | PublishCheck


def trigger_stream(name: str) -> StreamName:
    return stream_name("trigger", name)
