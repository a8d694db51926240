"""An application without a cluster: its file, and the specification of its deployment.

Application ──► BuiltApplication ──┐
                    Environment ───┴──► the workload's file and the DeploymentSpec

It is a workload of this machine, or pods in Kubernetes (`specs/kubernetes.py`). Of both, this
machine walks the plan and migrates the databases.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from fairlead import errors, validation
from fairlead.areas.deployments.domain.spec import Database, Flag, Server, TemplatePlace, Workload
from fairlead.areas.deployments.specs import build, kubernetes, reading
from fairlead.areas.deployments.specs.application import Application, DatabaseEntry
from fairlead.areas.deployments.specs.environment import Environment
from fairlead.areas.rollouts import workloads

SERVER = Server("local")
_OURS = ("name", "project", "version")
_CLUSTERED = ("runtimes", "blobstores", "secrets")


@dataclass(frozen=True, slots=True)
class Machine:
    """What a specification must know of the machine."""

    queue: str
    credentials: Path
    """The folder in which applications find those of their databases."""

    postgres: bool
    """Whether it has a server for databases."""


def check(app: Application, environment: Environment) -> None:
    """Invalid where the workload does not hold, each mistake with its field."""
    if app.kubernetes is not None:
        kubernetes.check(app, environment)
    elif not app.workload:
        raise validation.refusal(
            "cluster", "missing, and the application is no workload", "name the cluster's file"
        )
    others = [name for name in _CLUSTERED if getattr(app, name)]
    if others:
        said = f"takes a cluster, and here is none: {', '.join(others)}"
        raise validation.refusal(f"application.{others[0]}", said, "keep one of the two")
    for n, each in enumerate(app.databases):
        if each.postgres.migrate_container is not None:
            at = f"application.databases[{n}].postgres.migrate_container"
            said = "this machine runs no containers"
            raise validation.refusal(at, said, "bring migrations as a folder of SQL files")
    reading.check_references(app, environment)
    if app.workload:
        _read(app, environment, {**app.workload})


def build_spec(
    built: build.BuiltApplication,
    environment: Environment,
    machine: Machine,
    flags: Iterable[Flag] = (),
) -> build.Built:
    """The workload's file and the specification; the same input gives the same bytes."""
    app = built.app
    check(app, environment)
    if app.databases and not machine.postgres:
        raise errors.Rejected(
            "this machine has no PostgreSQL server for databases of deployments",
            hint="name one: FAIRLEAD_DEPLOYMENTS_POSTGRES_URL",
        )
    folder = f"{environment.full_name}/{app.name}"
    beside: dict[str, str] = {}
    databases = []
    planned = build.planned(app, environment, None, flags)
    for entry, database in zip(app.databases, planned.databases, strict=True):
        brought = {"sql": build.bundle(built, entry), "command": _command(app, entry)}
        keys = {
            what: f"{folder}/migrations/{build.digest(text)}.json"
            for what, text in brought.items()
            if text
        }
        beside |= {key: brought[what] for what, key in keys.items()}
        secret = f"{folder}/{entry.name.lower()}.json"
        sql, command = keys.get("sql", ""), keys.get("command", "")
        databases.append(replace(database, server=SERVER, secret=secret, sql=sql, command=command))
    text = (
        kubernetes.content(built, environment)
        if app.kubernetes
        else _file(built, environment, machine, databases)
    )
    place = TemplatePlace("", f"{folder}/{build.digest(text)}.json", "")
    runs = kubernetes.workload(app, environment, text) if app.kubernetes else Workload(folder)
    spec = replace(
        planned,
        version=built.version,
        template=place,
        databases=tuple(databases),
        workload=replace(runs, file=place.key),
    )
    return build.Built(spec, text, beside)


def _command(app: Application, entry: DatabaseEntry) -> str:
    """What migrates, as it is stored: it runs as the workload's program does."""
    given = entry.postgres.migrate_command
    if given is None:
        return ""
    program = app.workload["program"]
    where = {"cwd": program.get("cwd"), "env": program.get("env", {})}
    return json.dumps({**msgspec.to_builtins(given), **where}, sort_keys=True)


def _file(
    built: build.BuiltApplication,
    environment: Environment,
    machine: Machine,
    databases: Iterable[Database],
) -> str:
    """With a variable for each database: where the program finds its credentials."""
    words: dict[str, Any] = {**built.app.workload}
    program = {**words["program"]}
    found = {variable(each.key): str(machine.credentials / each.secret) for each in databases}
    program["env"] = {**found, **program.get("env", {})}
    words |= {"program": program, "version": built.version}
    _read(built.app, environment, words)
    whole = {**words, "name": built.app.name, "project": environment.full_name}
    return json.dumps(whole, sort_keys=True)


def variable(database: str) -> str:
    """Of the program: it names the file with the credentials."""
    return f"{database.upper().replace('-', '_')}_DATABASE_FILE"


def _read(
    app: Application, environment: Environment, words: dict[str, Any]
) -> workloads.DeployRequest:
    ours = [name for name in _OURS if name in app.workload]
    if ours:
        said = "decided by the deployment"
        raise validation.refusal(f"application.workload.{ours[0]}", said, "leave it out")
    try:
        return workloads.read({**words, "name": app.name, "project": environment.full_name})
    except errors.Invalid as error:
        at = "application.workload"
        told = [replace(each, path=f"{at}.{each.path}".rstrip(".")) for each in error.problems]
        raise errors.Invalid(told) from error
