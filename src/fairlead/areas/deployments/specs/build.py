"""From an application and an environment to what a deployment is to bring.

Application ──► BuiltApplication ──┐
                    Environment ───┴──► the infrastructure template and the DeploymentSpec
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from fairlead import errors
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.spec import (
    Database,
    DeploymentSpec,
    Flag,
    Freeze,
    Policy,
    Server,
    Task,
    TemplatePlace,
    Workload,
)
from fairlead.areas.deployments.specs import containers, messaging, reading, template
from fairlead.areas.deployments.specs.application import Application, DatabaseEntry
from fairlead.areas.deployments.specs.environment import (
    AlbIngress,
    AwsCluster,
    Cluster,
    EcsCluster,
    Environment,
    EventBridge,
    RdsHost,
)
from fairlead.areas.deployments.specs.naming import Site
from fairlead.values import one_of

NOWHERE = TemplatePlace("", "", "")
"""Of a specification that is only planned with."""

ANY_CLUSTER = AwsCluster(
    vpc_id="VPC",
    aws_account="ACCOUNT",
    aws_region="REGION",
    ecs_cluster=EcsCluster(
        cluster_name="CLUSTER", task_execution_role="ROLE", default_registry="REGISTRY"
    ),
    alb_ingress=AlbIngress(listener_arn="LISTENER", security_group_id="SECURITY_GROUP"),
    event_bridge=EventBridge(event_bus_arn="EVENT_BUS"),
)
"""Stands in for a cluster that nobody named, in a template that is only looked at."""

_LONGEST = 54
"""Of a database's name: users are named after it with nine characters more, of 63."""


@dataclass(frozen=True, slots=True)
class BuiltApplication:
    """One version of an application, the same for all environments."""

    app: Application
    version: str
    sql: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of databases that bring SQL files: the text of each file by its name."""


@dataclass(frozen=True, slots=True)
class Built:
    """What a deployment is requested with."""

    spec: DeploymentSpec
    template: str
    beside: dict[str, str]
    """What else is stored, by key: migrations."""


def build_application(
    app: Application, version: str, sql: Mapping[str, Mapping[str, str]] | None = None
) -> BuiltApplication:
    """Invalid where the application names files that were not brought along."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", version):
        raise errors.Rejected(
            f"not a version: {version[:80]}", hint="use up to 128 letters, digits, and . _ -"
        )
    brought = sql or {}
    for each in app.databases:
        if each.postgres.migrations and not brought.get(each.name):
            raise errors.Rejected(
                f"the SQL files of a database were not brought along: {each.name}",
                hint="deploy from the folder that has them",
            )
    return BuiltApplication(app, version, brought)


def build_spec(
    built: BuiltApplication,
    environment: Environment,
    cluster: Cluster,
    bucket: str,
    flags: Iterable[Flag] = (),
) -> Built:
    """The infrastructure template and the specification; nothing else depends on more."""
    reading.check_environment(environment, cluster)
    reading.check_servers(built.app, cluster)
    site = _site(built.app, environment, cluster)
    body = template.text(site)
    beside: dict[str, str] = {}
    databases = []
    for entry in built.app.databases:
        text = bundle(built, entry)
        key = f"{_folder(site)}/migrations/{digest(text)}.json" if text else ""
        beside |= {key: text} if text else {}
        task, container = _task(site, entry, built.version)
        beside |= {task.definition: container} if task else {}
        databases.append(_whole(site, entry, key, task))
    place = TemplatePlace(bucket, f"{_folder(site)}/{digest(body)}.json", site.aws.aws_region)
    spec = replace(
        planned(built.app, environment, cluster, flags),
        version=built.version,
        template=place,
        parameters=template.parameters(site, built.version),
        databases=tuple(databases),
        sns_topics=messaging.topics(site),
    )
    return Built(spec, body, beside)


def template_text(app: Application, environment: Environment, cluster: Cluster | None) -> str:
    """The template alone, for a person to read."""
    return template.text(_site(app, environment, cluster))


def _site(app: Application, environment: Environment, cluster: Cluster | None) -> Site:
    reading.check_references(app, environment)
    return Site(app, environment, cluster.aws if cluster else ANY_CLUSTER)


def _folder(site: Site) -> str:
    return f"{site.environment.full_name}/{site.app.name}"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def bundle(built: BuiltApplication, entry: DatabaseEntry) -> str:
    found = built.sql.get(entry.name, {}) if entry.postgres.migrations else {}
    return json.dumps(found, sort_keys=True) if found else ""


def _whole(site: Site, entry: DatabaseEntry, sql: str, task: Task | None) -> Database:
    """A database with all that whoever performs must know."""
    hosts = {each.server_group_name: each for each in site.aws.rds_hosts}
    host = hosts[entry.postgres.server_group]
    return replace(
        _database(site.app, site.environment, entry),
        server=Server(host.server_group_name, host.endpoint, host.port, _admin_secret(host)),
        secret=site.secret(entry.name),
        sql=sql,
        task=task,
    )


def _admin_secret(host: RdsHost) -> str:
    auth = host.auth.get("secrets_manager")
    return str(auth.get("secret_name", "")) if isinstance(auth, dict) else ""


def _task(site: Site, entry: DatabaseEntry, version: str) -> tuple[Task | None, str]:
    """What migrates instead of SQL files, and its container as it is stored."""
    container = entry.postgres.migrate_container
    if container is None:
        return None, ""
    image = site.image(container, version)
    text = json.dumps(containers.definition(site, container, image), sort_keys=True)
    ecs = site.aws.ecs_cluster
    family = f"{site.stack}-{entry.name}-migrate"
    key = f"{_folder(site)}/tasks/{digest(text)}.json"
    return Task(ecs.cluster_name, family, key, ecs.task_execution_role), text


def flag(name: str) -> Flag:
    """A flag as people write it."""
    try:
        return Flag(name.replace("-", "_"))
    except ValueError as error:
        known = [each.value for each in Flag]
        raise errors.Rejected(f"no such flag: {name[:40]}", hint=one_of(name, known)) from error


def planned(
    app: Application, environment: Environment, cluster: Cluster | None, flags: Iterable[Flag] = ()
) -> DeploymentSpec:
    """What plans depend on, without a template."""
    chosen = dict.fromkeys(flags)
    if app.deployment_config.quick_mode:
        chosen[Flag.QUICK] = None
    destroying = [each.value for each in chosen if each.destroys]
    if destroying and not environment.deployments.destroy_databases:
        raise errors.Rejected(
            f"{environment.full_name} lets nobody destroy databases: {destroying[0]}",
            hint="its operator may set deployments.destroy_databases",
        )
    aws = cluster.aws if cluster else None
    rollout = f"{environment.full_name}/{app.name}"
    return DeploymentSpec(
        app.name,
        environment.full_name,
        "",
        NOWHERE,
        workload=Workload(rollout) if app.workload or app.kubernetes else None,
        databases=tuple(_database(app, environment, each) for each in app.databases),
        ecs_cluster=aws.ecs_cluster.cluster_name if aws else "",
        assume_role=aws.o5_deployer.assume_role_arn if aws else "",
        flags=tuple(chosen),
        policy=_policy(environment),
    )


def _database(app: Application, environment: Environment, entry: DatabaseEntry) -> Database:
    given = entry.postgres
    suffix = given.db_name or given.db_name_suffix or entry.name
    whole = f"{environment.full_name}_{app.name}_{suffix}".lower()
    name = re.sub(r"[^a-z0-9_]", "_", whole)
    if len(name) > _LONGEST:
        raise errors.Rejected(
            f"a database's name has more than {_LONGEST} characters: {name}",
            hint="give it a shorter db_name_suffix",
        )
    return Database(
        entry.name,
        name,
        given.server_group,
        tuple(given.db_extensions),
        name in environment.deployments.adopt_databases,
        bool(given.migrate_container or given.migrations or given.migrate_command),
    )


def _policy(environment: Environment) -> Policy:
    options = environment.deployments
    return Policy(
        options.queue == "supersede",
        options.approve,
        tuple(Freeze(each.start, each.end, each.reason) for each in options.freezes),
        Impact(options.at_least),
    )
