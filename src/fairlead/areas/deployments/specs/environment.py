"""Environments and the clusters that they are in, as operators describe them."""

import datetime as dt
from typing import Annotated, Any, Literal

import msgspec

EnvironmentName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9-]+$")]
Moment = Annotated[dt.datetime, msgspec.Meta(tz=True)]


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of a file: what it does not know is a mistake of whoever wrote it."""


class Join(_Part, frozen=True):
    """A value put together from others."""

    delimiter: str
    values: list[str]


class Variable(_Part, frozen=True):
    """A variable that containers may take from the environment."""

    name: str
    value: str | None = None
    join: Join | None = None


class EnvironmentLink(_Part, frozen=True):
    """Another environment whose messages are received."""

    lookup_name: str
    full_name: str
    sns_prefix: str


class IamPolicy(_Part, frozen=True):
    """A policy that runtimes may name."""

    name: str
    policy_arn: str


class SharedBucket(_Part, frozen=True):
    """A bucket from elsewhere that applications may name, to read it or also to write it."""

    bucket_name: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
    write_permission: bool = False


class AwsEnvironment(_Part, frozen=True):
    """What an environment is on AWS."""

    host_header: str = ""
    environment_links: list[EnvironmentLink] = []
    iam_policies: list[IamPolicy] = []
    shared_buckets: list[SharedBucket] = []
    all_environments: bool = False
    """Whether applications may hear the messages of all environments of the bus."""

    docker_socket: bool = False
    """Whether containers may mount the socket of Docker, and with it rule their host."""


class FreezeWindow(_Part, frozen=True, rename={"start": "from", "end": "until"}):
    """A time in which nothing starts to run."""

    start: Moment
    end: Moment
    reason: str = ""


class DeploymentOptions(_Part, frozen=True):
    """How deployments of this environment are treated."""

    queue: Literal["queue", "supersede"] = "queue"
    approve: bool = False
    freezes: list[FreezeWindow] = []
    adopt_databases: list[str] = []
    """Made by hand, by their names on the server: the application that comes to the name takes it
    over. Any other that it did not make is left alone."""

    destroy_databases: bool = False
    """Whether a request may ask to destroy or recreate the databases of its application."""

    at_least: Literal["NOP", "PARALLEL", "BEFORE", "DOWNTIME"] = "NOP"


class KubernetesPlace(_Part, frozen=True):
    """Where in Kubernetes an environment is."""

    queue: Annotated[str, msgspec.Meta(pattern=r"^kubernetes@[A-Za-z0-9._:/-]{1,120}$")]
    """Of the operator there, as `fairlead queues list` shows it."""

    namespace: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
    default_registry: str = ""
    """Of images that name none."""


class Environment(_Part, frozen=True):
    """Where applications are deployed to."""

    full_name: EnvironmentName
    kind: Literal["environment"] = "environment"
    cluster_name: str = ""
    trust_jwks: list[str] = []
    vars: list[Variable] = []
    cors_origins: list[str] = []
    aws: AwsEnvironment = AwsEnvironment()
    kubernetes: KubernetesPlace | None = None
    """Where applications with `kubernetes` run."""

    deployments: DeploymentOptions = DeploymentOptions()


class Deployer(_Part, frozen=True):
    """As whom the cluster is changed."""

    assume_role_arn: str = ""


class AlbIngress(_Part, frozen=True):
    """How requests come in."""

    listener_arn: str
    security_group_id: str


class Sidecar(_Part, frozen=True):
    """The program beside each runtime."""

    image_version: str
    image_repo: str = ""


class EventBridge(_Part, frozen=True):
    """Where messages go."""

    event_bus_arn: str


class EcsCluster(_Part, frozen=True):
    """Where containers run."""

    cluster_name: str
    task_execution_role: str
    default_registry: str
    subnet_ids: list[str] = []
    base_security_group_id: str = ""


class RdsHost(_Part, frozen=True):
    """A database server, by the name that applications know it by."""

    server_group_name: str
    client_security_group_id: str = ""
    identifier: str = ""
    endpoint: str = ""
    port: int = 5432
    auth: dict[str, Any] = {}


class AwsCluster(_Part, frozen=True):
    """What a cluster is on AWS."""

    vpc_id: str
    aws_account: str
    aws_region: str
    ecs_cluster: EcsCluster
    global_namespace: str = ""
    o5_deployer: Deployer = Deployer()
    alb_ingress: AlbIngress | None = None
    o5_sidecar: Sidecar | None = None
    event_bridge: EventBridge | None = None
    rds_hosts: list[RdsHost] = []


class Cluster(_Part, frozen=True):
    """What several environments share."""

    name: str
    aws: AwsCluster
    kind: Literal["cluster"] = "cluster"
