"""The document's kind, field for field: what users write, and what they are shown."""

from typing import Annotated, Any, Literal

import msgspec

Text = Annotated[str, msgspec.Meta(max_length=2048)]


class ApplicationSource(msgspec.Struct):
    """Where the manifests are."""

    repo_url: Text = msgspec.field(name="repoURL")
    path: Text
    target_revision: Text = msgspec.field(name="targetRevision", default="")


class ApplicationDestination(msgspec.Struct):
    """Where they go; empty: to the namespace of the object."""

    environment: Text = ""
    namespace: Annotated[str, msgspec.Meta(max_length=63)] = ""


class SyncPolicy(msgspec.Struct):
    """How they are applied."""

    sync_options: list[str] = msgspec.field(name="syncOptions", default_factory=list)


class GitOpsDeploymentSpec(msgspec.Struct, rename="camel"):
    """What a namespace shall have, as a folder of a git repository says it."""

    source: ApplicationSource
    type: Literal["automated", "manual"]
    destination: ApplicationDestination = msgspec.field(default_factory=ApplicationDestination)
    sync_policy: SyncPolicy | None = None


class SyncStatus(msgspec.Struct):
    """Whether the cluster shows what git has."""

    status: Literal["Unknown", "Synced", "OutOfSync"]
    revision: str = ""


class HealthStatus(msgspec.Struct):
    """Whether it works."""

    status: Literal["Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"]
    message: str = ""


class ResourceStatus(msgspec.Struct):
    """One object."""

    group: str = ""
    version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    status: str = ""
    health: HealthStatus | None = None


class ReconciledSource(msgspec.Struct):
    """The source that the status tells of."""

    path: str
    repo_url: str = msgspec.field(name="repoURL")
    branch: str


class ReconciledDestination(msgspec.Struct):
    """The destination that the status tells of."""

    name: str
    namespace: str


class ReconciledState(msgspec.Struct):
    """The intent that the status tells of."""

    source: ReconciledSource
    destination: ReconciledDestination


class OperationState(msgspec.Struct, rename="camel"):
    """The last operation."""

    phase: Literal["Running", "Terminating", "Failed", "Error", "Succeeded"]
    started_at: str
    operation: Any = None
    message: str = ""
    sync_result: Any = None
    finished_at: str = ""
    retry_count: int = 0


class GitOpsDeploymentCondition(msgspec.Struct, rename="camel"):
    """One thing that is so or is not, and why."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str = ""
    message: str = ""
    last_probe_time: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


class GitOpsDeploymentStatus(msgspec.Struct, rename="camel"):
    """Where it stands."""

    conditions: list[GitOpsDeploymentCondition] = msgspec.field(default_factory=list)
    sync: SyncStatus | None = None
    health: HealthStatus | None = None
    resources: list[ResourceStatus] = msgspec.field(default_factory=list)
    reconciled_state: ReconciledState | None = None
    operation_state: OperationState | None = None
    round: int = 0
    requests: dict[str, str] = msgspec.field(default_factory=dict)
    """What was asked by annotation and is done."""
