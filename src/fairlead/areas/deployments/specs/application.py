"""An application as its repository describes it."""

from typing import Annotated, Any, Literal

import msgspec

Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
Chance = Annotated[int, msgspec.Meta(ge=0, le=100)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9]+$")]
# Resources are named after it, and CloudFormation takes letters and digits only.
PartName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of a file: what it does not know is a mistake of whoever wrote it."""


class Named(_Part, frozen=True):
    """Something of which only the name matters."""

    name: PartName


class BlobstoreRef(_Part, frozen=True):
    """A bucket that somebody else owns, named by exactly one of the two."""

    read_permission: bool = False
    write_permission: bool = False
    application: Annotated[str, msgspec.Meta(pattern=r"^([a-z][a-z0-9]+)?$")] = ""
    """Of the same environment; the bucket's name is made as its owner makes it."""

    bucket_name: str = ""
    """One of the environment's `aws.shared_buckets`."""


class SftpUser(_Part, frozen=True):
    """Who may put files into a bucket."""

    username: str
    public_ssh_key: str


class SftpSettings(_Part, frozen=True):
    """Files that come by SFTP."""

    users: list[SftpUser] = []


class Grant(_Part, frozen=True):
    """Who else may read and write a bucket."""

    principal: str


class Blobstore(_Part, frozen=True):
    """A bucket of the application."""

    name: PartName
    grants: list[Grant] = []
    ref: BlobstoreRef | None = None
    emit_events: bool = False
    sftp_settings: SftpSettings | None = None


class ImageRef(_Part, frozen=True):
    """An image by its name; the version of the deployment is its tag unless one is said."""

    name: str
    tag: str = ""
    registry: str = ""


class EnvVarBlobstore(_Part, frozen=True):
    """The address of a bucket."""

    name: str
    sub_path: str = ""
    s3_direct: bool = True


class EnvVarSecret(_Part, frozen=True):
    """One value of a secret."""

    secret_name: str
    json_key: str


class EnvVarFrom(_Part, frozen=True):
    """A variable of the environment."""

    name: str


class EnvVar(_Part, frozen=True):
    """A variable of a container, with exactly one source."""

    name: str
    value: str | None = None
    database: str | None = None
    blobstore: EnvVarBlobstore | None = None
    from_env: EnvVarFrom | None = None
    secret: EnvVarSecret | None = None
    env_map: dict[str, Any] | None = None
    o5: Literal["ADAPTER_ENDPOINT"] | None = None


class Container(_Part, frozen=True):
    """One program of a runtime."""

    name: PartName
    image_url: str = ""
    image: ImageRef | None = None
    command: list[str] = []
    demand: Literal["LIGHT", "MEDIUM", "HEAVY"] = "LIGHT"
    env_vars: list[EnvVar] = []
    mount_docker_socket: bool = False


class MigrateCommand(_Part, frozen=True):
    """A program that migrates a database by itself, on the machine of a workload."""

    run: Annotated[list[str], msgspec.Meta(min_length=1)]
    plan: list[str] = []
    """Prints the SQL of what is pending and changes nothing, so that it can be evaluated."""


class Postgres(_Part, frozen=True):
    """What a PostgreSQL database needs."""

    server_group: str = ""
    """One of the cluster's; a workload's databases are all on the one server of its machine."""

    db_name_suffix: str = ""
    db_name: str = ""
    db_extensions: list[str] = []
    migrate_container: Container | None = None
    migrations: str = ""
    """A folder of SQL files, seen from the application's file; instead of a container."""

    migrate_command: MigrateCommand | None = None
    """Instead of both, for a workload: its tool migrates, whichever that is."""

    run_outbox: bool = False
    outbox_delayable: bool = False


class DatabaseEntry(_Part, frozen=True):
    """A database of the application."""

    name: PartName
    postgres: Postgres


class Route(_Part, frozen=True):
    """Which requests reach a runtime."""

    prefix: str
    subdomains: Annotated[list[str], msgspec.Meta(max_length=3)] = []
    protocol: Literal["HTTP", "GRPC"] = "HTTP"
    target_container: str = ""
    bypass_ingress: bool = False
    port: Port = 8080
    route_group: Literal["FIRST", "NORMAL", "FALLBACK"] = "NORMAL"


class Subscription(_Part, frozen=True):
    """Which messages reach a runtime."""

    name: str
    env_name: str = ""
    raw_message: bool = False


class WorkerConfig(_Part, frozen=True):
    """How messages are repeated and given up."""

    replay_chance: Chance = 0
    deadletter_chance: Chance = 0
    no_deadletters: bool = False


class Runtime(_Part, frozen=True):
    """Containers that run together."""

    name: PartName
    containers: Annotated[list[Container], msgspec.Meta(min_length=1)]
    direct_ingress: bool = False
    routes: list[Route] = []
    subscriptions: list[Subscription] = []
    worker_config: WorkerConfig | None = None
    named_env_policies: list[str] = []


class KubernetesContainer(_Part, frozen=True):
    """A container of the pods that are there: what a version changes of it."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
    image_url: str = ""
    image: ImageRef | None = None
    env: dict[str, str] = {}
    """Plain values, which events show; secrets stay in Secrets of the cluster."""


class OnKubernetes(_Part, frozen=True):
    """Pods of a canary that is in the cluster, called as the application."""

    containers: Annotated[list[KubernetesContainer], msgspec.Meta(min_length=1)]


class DeploymentConfig(_Part, frozen=True):
    """How the application is to be deployed."""

    quick_mode: bool = False


class Application(_Part, frozen=True):
    """One application, as its repository describes it."""

    name: Name
    kind: Literal["application"] = "application"
    targets: list[Named] = []
    blobstores: list[Blobstore] = []
    databases: list[DatabaseEntry] = []
    runtimes: list[Runtime] = []
    secrets: list[Named] = []
    deployment_config: DeploymentConfig = DeploymentConfig()
    kubernetes: OnKubernetes | None = None
    """In place of runtimes, for an environment in Kubernetes."""

    workload: dict[str, Any] = {}
    """A program in place of runtimes, for a deployment without a cluster: it takes the fields of a
    workload's file, without name, project and version."""
