"""What is stored, found again, and what must hold before it is stored or removed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from fairlead import errors, validation
from fairlead.access import intake, tokens
from fairlead.areas.deployments.domain import definition, schedule
from fairlead.areas.deployments.specs import reading
from fairlead.areas.deployments.specs.environment import Cluster, Environment
from fairlead.areas.deployments.specs.schedule import Schedule
from fairlead.areas.deployments.specs.target import PushTarget, Repository
from fairlead.engine import filters, messages, visibility
from fairlead.engine.machine import Machines
from fairlead.engine.store import protocol
from fairlead.values import one_of

T = TypeVar("T")
MOST_TARGETS = 200
"""Of one repository."""

_KNOWN = Machines(schedule.MACHINES.values())


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One kind of what is stored."""

    name: str
    plural: str
    read: Callable[[Any], T]
    """From plain data; Invalid with all that does not hold."""

    key: Callable[[T], str]
    role: tokens.Role
    """Who may edit it."""

    starter: str = ""
    """A file to begin with."""

    def stream(self, key: str) -> messages.StreamName:
        return messages.stream_name(self.name, key)


CLUSTERS: Kind[Cluster] = Kind(
    definition.CLUSTER,
    "clusters",
    reading.cluster,
    lambda it: it.name,
    tokens.Role.ADMIN,
    """\
kind: cluster
name: main
aws:
  vpc_id: vpc-1
  aws_account: "123456789012"
  aws_region: eu-west-1
  ecs_cluster: {cluster_name: main, task_execution_role: role, default_registry: registry.example}
""",
)
# An environment says as whom and how its deployments run: no deployer writes that for itself.
ENVIRONMENTS: Kind[Environment] = Kind(
    definition.ENVIRONMENT,
    "environments",
    reading.environment,
    lambda it: it.full_name,
    tokens.Role.ADMIN,
    "kind: environment\nfull_name: staging\n",
)
PUSH_TARGETS: Kind[PushTarget] = Kind(
    definition.PUSH_TARGET,
    "push-targets",
    reading.push_target,
    lambda it: it.name,
    tokens.Role.DEPLOYER,
    """\
kind: push-target
environment: staging
application: shop      # what the file in the repository calls itself
repository: acme/shop
path: fairlead.yaml
branches: [main, release/*]
""",
)
SCHEDULES: Kind[Schedule] = Kind(
    schedule.NAME,
    "schedules",
    reading.schedule,
    lambda it: f"{it.target}/{it.name}",
    tokens.Role.DEPLOYER,
    """\
kind: schedule
environment: staging
application: shop      # of a push target
name: nightly
cron: 30 2 * * mon-fri
time_zone: Europe/Berlin
branch: main
catch_up: once         # or skip, or all
""",
)
KINDS: Mapping[str, Kind[Any]] = {
    each.name: each for each in (CLUSTERS, ENVIRONMENTS, PUSH_TARGETS, SCHEDULES)
}
_OF_AN_ENVIRONMENT = (PUSH_TARGETS.name, SCHEDULES.name)


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """Something stored, as it stands."""

    name: str
    version: int
    by: str
    content: T


def find(session: protocol.Session, kind: Kind[T], key: str) -> Entry[T] | None:
    view = visibility.find(session, kind.stream(key))
    return None if view is None else entry(kind, view)


def get(session: protocol.Session, kind: Kind[T], key: str) -> Entry[T]:
    """NotFound, with what was probably meant, where there is none of that name."""
    try:
        found = find(session, kind, key)
    except errors.Rejected:
        # Not even the name of a stream.
        found = None
    if found is None:
        known = [each.name for each in listed(session, kind)]
        hint = one_of(key, known) if known else f"store one with fairlead deploy {kind.name}.yaml"
        raise errors.NotFound(f"no such {kind.name}: {key[:80]}", hint=hint)
    return found


def place(session: protocol.Session, environment: str) -> tuple[Environment, int, Cluster]:
    """An environment with its version, and the cluster that it names."""
    found = get(session, ENVIRONMENTS, environment)
    if not found.content.cluster_name:
        raise errors.Rejected(
            f"the environment names no cluster: {environment}", hint="store it with cluster_name"
        )
    return found.content, found.version, get(session, CLUSTERS, found.content.cluster_name).content


def listed(
    session: protocol.Session, kind: Kind[T], where: str = "", scope: str = "", limit: int = 500
) -> list[Entry[T]]:
    """Those that a filter fits, the newest first."""
    fits = filters.where(present(where), _KNOWN, kind.name)
    which = visibility.StreamFilter(kind.name, limit=limit, scope=scope, where=fits)
    found = (entry(kind, view) for view in visibility.streams(session, which))
    return [each for each in found if each is not None]


def targets(session: protocol.Session, provider: str, repository: str) -> list[PushTarget]:
    """All of a repository; which pushes are for them they know themselves."""
    try:
        msgspec.convert(repository, Repository)
    except msgspec.ValidationError:
        return []
    word = definition.repository_word(provider, repository)
    found = listed(session, PUSH_TARGETS, f'repository="{word}"', limit=MOST_TARGETS + 1)
    if len(found) > MOST_TARGETS:
        raise errors.Rejected(
            f"more than {MOST_TARGETS} push targets name the repository: {repository}",
            hint="remove some, or split the repository",
        )
    return sorted((each.content for each in found), key=lambda it: it.name)


def present(where: str) -> str:
    """The filter, for those that were not removed."""
    return f"present=true and {where}" if where.strip() else "present=true"


def entry(kind: Kind[T], view: visibility.StreamView) -> Entry[T] | None:
    """What a stream holds; None where it was removed."""
    state = msgspec.convert(view.data, definition.Definition)
    if not state.present:
        return None
    key = view.name.partition("/")[2]
    return Entry(key, state.version, state.by, kind.read(state.content))


def check_caller(kind: Kind[T], caller: intake.Caller) -> None:
    """Forbidden to whoever may not edit things of this kind."""
    intake.authorise(caller, kind.role)
    if caller.scope and kind.name not in _OF_AN_ENVIRONMENT:
        raise errors.Forbidden(
            f"a token of one environment may not edit {kind.plural}: {caller.scope}",
            hint="use a token without a scope",
        )


def check_references(session: protocol.Session, content: object) -> None:
    """Invalid where it names something that is not stored."""
    match content:
        case Environment(cluster_name=name) if name:
            _check(session, CLUSTERS, "cluster_name", name)
        case PushTarget(environment=name):
            _check(session, ENVIRONMENTS, "environment", name)
        case Schedule():
            _check(session, PUSH_TARGETS, "application", content.target)


def check_removable(session: protocol.Session, kind: Kind[T], key: str) -> None:
    """NotFound where it is not there, Conflict where something else that is stored names it."""
    get(session, kind, key)
    users: list[Entry[Any]] = []
    if kind.name == definition.CLUSTER:
        users = [*listed(session, ENVIRONMENTS, f'cluster="{key}"', limit=5)]
    elif kind.name == definition.ENVIRONMENT:
        users = [*listed(session, PUSH_TARGETS, f'environment="{key}"', limit=5)]
    elif kind.name == definition.PUSH_TARGET:
        users = [*listed(session, SCHEDULES, f'target="{key}"', limit=5)]
    if users:
        names = ", ".join(each.name for each in users)
        raise errors.Conflict(f"{kind.name} {key} is in use: {names}", hint="remove those first")


def _check(session: protocol.Session, kind: Kind[Any], field: str, name: str) -> None:
    try:
        get(session, kind, name)
    except errors.NotFound as error:
        raise validation.refusal(field, error.message, error.hint) from error
