"""What one deployment is to bring where: built from files (`specs`), kept with the deployment."""

import datetime as dt
import enum
from dataclasses import dataclass, field

from fairlead.areas.deployments.domain.classes import Impact
from fairlead.engine.messages import StreamName, stream_name


class Flag(enum.Enum):
    """What a request may ask for beside the usual plan."""

    QUICK = "quick"
    SEQUENTIAL = "sequential"
    """The plans without evaluation: P1 with quick, else P2."""

    ROTATE_CREDENTIALS = "rotate_credentials"
    CANCEL_UPDATES = "cancel_updates"
    DB_ONLY = "db_only"
    INFRA_ONLY = "infra_only"
    IMPORT_RESOURCES = "import_resources"
    DESTROY_DATABASE = "destroy_database"
    RECREATE_DATABASE = "recreate_database"

    @property
    def destroys(self) -> bool:
        """Whether data is lost by it, for good."""
        return self in {Flag.DESTROY_DATABASE, Flag.RECREATE_DATABASE}


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL server; names only, so that nothing stored holds a secret."""

    group: str
    """The name that applications know it by."""

    endpoint: str = ""
    port: int = 5432
    secret: str = ""
    """Where the administrator's `username` and `password` are kept."""


@dataclass(frozen=True, slots=True)
class Task:
    """A container that migrates a database, and where it runs."""

    cluster: str
    family: str
    definition: str
    """Where its only container is stored, as ECS has it: variables may be nobody's business."""

    execution_role: str = ""


@dataclass(frozen=True, slots=True)
class Database:
    """A PostgreSQL database that the application owns."""

    key: str
    """Its name within the application."""

    name: str
    server_group: str
    extensions: tuple[str, ...] = ()
    adopt: bool = False
    """Whether one that was made by hand becomes the stack's."""

    migrates: bool = True
    """Whether the application brings migrations for it."""

    server: Server | None = None
    """None in a specification that is only planned with."""

    secret: str = ""
    """Where the application finds its credentials."""

    sql: str = ""
    """Where its SQL files are stored, beside the template; empty: it has none."""

    task: Task | None = None
    command: str = ""
    """Where the program that migrates it is stored; empty: none does."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is done to a database, and with what; names only, so that no secret is stored."""

    server: Server
    database: str
    stack: str
    """Whose it is; nobody else's database is touched."""

    extensions: tuple[str, ...] = ()
    adopt: bool = False
    """Whether one that was made by hand becomes the stack's."""

    migrations: str = ""
    """Where the SQL files are, for whoever performs; empty: there are none."""

    bucket: str = ""
    region: str = ""
    assume_role: str = ""
    secret: str = ""
    """Where the application finds its credentials; empty: they are nobody's business here."""

    rotate: bool = False
    """Whether the application gets new credentials, and the old ones end."""

    task: Task | None = None
    """What migrates instead of SQL files."""

    command: str = ""
    """Where the program is stored that does, on this machine; it may say what is pending."""


@dataclass(frozen=True, slots=True)
class TemplatePlace:
    """Where the infrastructure template is stored."""

    bucket: str
    key: str
    region: str


@dataclass(frozen=True, slots=True)
class Workload:
    """A program in place of infrastructure: its versions are rollouts."""

    rollout: str
    file: str = ""
    """Where its platform finds what this version is; empty in what is only planned with."""

    queue: str = ""
    """Of a platform elsewhere; empty: it runs where the plan does."""

    content: str = ""
    """What this version is, for a platform elsewhere, which cannot read the file."""


@dataclass(frozen=True, slots=True)
class Freeze:
    """A time in which nothing starts to run."""

    start: dt.datetime
    end: dt.datetime
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """How an environment treats its deployments."""

    supersede: bool = False
    """A new deployment takes the place of those that wait."""

    approve: bool = False
    """A person approves before anything runs."""

    freezes: tuple[Freeze, ...] = ()
    at_least: Impact = Impact.NOP
    """No change counts as less than this."""


@dataclass(frozen=True, slots=True)
class Override:
    """A person says that a change is of another class than was found, and why."""

    impact: Impact
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class DeploymentSpec:
    """One version of one application for one environment."""

    app: str
    environment: str
    version: str
    template: TemplatePlace
    parameters: dict[str, str] = field(default_factory=dict)
    databases: tuple[Database, ...] = ()
    ecs_cluster: str = ""
    assume_role: str = ""
    sns_topics: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    policy: Policy = Policy()
    override: Override | None = None
    workload: Workload | None = None
    expects: Impact | None = None
    """The class of the plan that was approved; another one stops the run and asks."""

    @property
    def stack(self) -> str:
        """Its CloudFormation stack; an application's name has no hyphen, so it parts again."""
        return f"{self.environment}-{self.app}"

    @property
    def key(self) -> str:
        """Of its stack here: it begins with the environment, so a scope can be one."""
        return f"{self.environment}/{self.app}"

    def has(self, flag: Flag) -> bool:
        return flag in self.flags


def stack_stream(key: str) -> StreamName:
    return stream_name("stack", key)


def deployment_stream(deployment: str) -> StreamName:
    return stream_name("deployment", deployment)
