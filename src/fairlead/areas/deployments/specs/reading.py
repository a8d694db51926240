"""Files into applications, environments and clusters; every mistake is told at once."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from fairlead import errors, validation
from fairlead.areas.deployments.domain.spec import Flag
from fairlead.areas.deployments.specs.application import (
    Application,
    Container,
    EnvVar,
    KubernetesContainer,
)
from fairlead.areas.deployments.specs.environment import Cluster, Environment
from fairlead.areas.deployments.specs.schedule import Schedule
from fairlead.areas.deployments.specs.target import MOST_NAME, MOST_STARS, PushTarget
from fairlead.engine import recurrence
from fairlead.errors import Problem
from fairlead.values import one_of

_ABOUT = "docs/reference/deployments.md has all fields"
_MIGRATES = ("migrations", "migrate_command", "migrate_container")
_SOURCES = ("value", "database", "blobstore", "from_env", "secret", "env_map", "o5")


def application(content: Any) -> Application:
    read = validation.convert(content, Application, about=_ABOUT)
    _settle(_application(read))
    return read


def environment(content: Any) -> Environment:
    read = validation.convert(content, Environment, about=_ABOUT)
    _settle(
        Problem(f"deployments.freezes[{n}].until", "ends before it begins", "write a later time")
        for n, each in enumerate(read.deployments.freezes)
        if each.end <= each.start
    )
    return read


def cluster(content: Any) -> Cluster:
    return validation.convert(content, Cluster, about=_ABOUT)


def push_target(content: Any) -> PushTarget:
    read = validation.convert(content, PushTarget, about=_ABOUT)
    if len(read.name) > MOST_NAME:
        said = f"longer than {MOST_NAME} letters: {read.name[:40]}…"
        raise validation.refusal("application", said, "use shorter names")
    _settle(
        Problem(f"{part}[{n}]", f"more than {MOST_STARS} stars: {each[:40]}", "write it shorter")
        for part in ("branches", "tags")
        for n, each in enumerate(getattr(read, part))
        if each.count("*") > MOST_STARS
    )
    return read


def schedule(content: Any) -> Schedule:
    read = validation.convert(content, Schedule, about=_ABOUT)
    _settle(_schedule(read))
    return read


def check_environment(chosen: Environment, within: Cluster) -> None:
    """Invalid where an environment names another cluster than the one that was given."""
    if chosen.cluster_name and chosen.cluster_name != within.name:
        problem = f"unknown cluster: {chosen.cluster_name}"
        raise validation.refusal(
            "cluster_name", problem, one_of(chosen.cluster_name, [within.name])
        )


def check_references(app: Application, within: Environment) -> None:
    """Invalid where an application takes what the environment does not have or does not share."""
    _settle([*_unknown(app, within), *_not_shared(app, within), *_not_allowed(app, within)])


def _unknown(app: Application, within: Environment) -> Iterator[Problem]:
    variables = [each.name for each in within.vars]
    policies = [each.name for each in within.aws.iam_policies]
    for n, runtime in enumerate(app.runtimes):
        for m, name in enumerate(runtime.named_env_policies):
            if name not in policies:
                at = f"runtimes[{n}].named_env_policies[{m}]"
                problem = f"not a policy of {within.full_name}: {name}"
                yield Problem(at, problem, one_of(name, policies))
        for m, container in enumerate(runtime.containers):
            for k, each in enumerate(container.env_vars):
                if each.from_env is not None and each.from_env.name not in variables:
                    at = f"runtimes[{n}].containers[{m}].env_vars[{k}].from_env.name"
                    said = each.from_env.name
                    problem = f"not a variable of {within.full_name}: {said}"
                    yield Problem(at, problem, one_of(said, variables))


def _not_shared(app: Application, within: Environment) -> Iterator[Problem]:
    """The template gives rights to what is named here, so the environment's operator decides."""
    shared = {each.bucket_name: each for each in within.aws.shared_buckets}
    for n, store in enumerate(app.blobstores):
        if store.ref is None or not (name := store.ref.bucket_name):
            continue
        at = f"blobstores[{n}].ref"
        if name not in shared:
            problem = f"not a shared bucket of {within.full_name}: {name[:80]}"
            ask = "its operator shares one by aws.shared_buckets"
            hint = f"{one_of(name, shared)}; {ask}" if shared else ask
            yield Problem(f"{at}.bucket_name", problem, hint)
        elif store.ref.write_permission and not shared[name].write_permission:
            problem = f"{within.full_name} shares it to be read only: {name}"
            hint = "ask its operator for write_permission in aws.shared_buckets"
            yield Problem(f"{at}.write_permission", problem, hint)


def _not_allowed(app: Application, within: Environment) -> Iterator[Problem]:
    """What reaches beyond the environment is its operator's to give."""
    hint = "ask its operator for aws.{} in the environment"
    for n, runtime in enumerate(app.runtimes):
        for m, each in enumerate(runtime.subscriptions):
            if each.env_name == "*" and not within.aws.all_environments:
                said = f"{within.full_name} does not hear all environments: {each.name[:80]}"
                at = f"runtimes[{n}].subscriptions[{m}].env_name"
                yield Problem(at, said, hint.format("all_environments"))
    for at, container in _containers(app):
        if container.mount_docker_socket and not within.aws.docker_socket:
            said = f"{within.full_name} gives no container the socket of Docker: {container.name}"
            yield Problem(f"{at}.mount_docker_socket", said, hint.format("docker_socket"))


def _containers(app: Application) -> Iterator[tuple[str, Container]]:
    for n, runtime in enumerate(app.runtimes):
        for m, each in enumerate(runtime.containers):
            yield f"runtimes[{n}].containers[{m}]", each
    for n, database in enumerate(app.databases):
        if migrate := database.postgres.migrate_container:
            yield f"databases[{n}].postgres.migrate_container", migrate


def check_servers(app: Application, within: Cluster) -> None:
    """Invalid where it runs in no cluster, or names a server group that this one does not have."""
    for part in ("workload", "kubernetes"):
        if getattr(app, part):
            said = "beside a cluster, which runs containers of its own"
            raise validation.refusal(part, said, "leave out the cluster")
    _settle(_not_in_cluster(app, [host.server_group_name for host in within.aws.rds_hosts]))


def _not_in_cluster(app: Application, known: list[str]) -> Iterator[Problem]:
    for n, each in enumerate(app.databases):
        at, group = f"databases[{n}].postgres", each.postgres.server_group
        if group not in known:
            hint = one_of(group, known) if known else "add it to aws.rds_hosts"
            yield Problem(f"{at}.server_group", f"unknown server group: {group}", hint)
        if each.postgres.migrate_command:
            said = "a cluster runs containers, and no commands"
            yield Problem(f"{at}.migrate_command", said, "bring it as migrate_container")


def _schedule(read: Schedule) -> Iterator[Problem]:
    if len(read.target) > MOST_NAME - len(read.name):
        yield Problem("name", f"longer than {MOST_NAME} letters with its target", "shorten it")
    if sum(map(bool, (read.branch, read.tag, read.commit))) != 1:
        yield Problem("", "needs exactly one of branch, tag and commit", "say what is deployed")
    try:
        recurrence.parse(read.cron, read.time_zone)
    except errors.Rejected as error:
        zone = "time zone" in error.message
        yield Problem("time_zone" if zone else "cron", error.message, error.hint)
    known = [each.value for each in Flag]
    for n, each in enumerate(read.flags):
        if each not in known:
            yield Problem(f"flags[{n}]", f"unknown flag: {each[:40]}", one_of(each, known))
        elif Flag(each).destroys:
            said = f"destroys data each time: {each}"
            yield Problem(f"flags[{n}]", said, "ask for it by hand, once")


def _settle(problems: Iterable[Problem]) -> None:
    found = list(problems)
    if found:
        raise errors.Invalid(found)


def _application(app: Application) -> Iterator[Problem]:
    for part in ("targets", "blobstores", "databases", "runtimes", "secrets"):
        yield from _twice(part, [each.name for each in getattr(app, part)])
    of_postgres = ((each, each.postgres) for each in app.databases)
    on_server = [own.db_name or own.db_name_suffix or each.name for each, own in of_postgres]
    if on_server != [each.name for each in app.databases]:
        yield from _twice("databases", on_server)
    yield from _foreign(app)
    yield from _topics(app)
    for at, container in _containers(app):
        yield from _container(app, container, at)
    yield from _on_kubernetes(app)
    for n, runtime in enumerate(app.runtimes):
        at = f"runtimes[{n}]"
        names = [each.name for each in runtime.containers]
        yield from _twice(f"{at}.containers", names)
        for m, route in enumerate(runtime.routes):
            if route.target_container and route.target_container not in names:
                place, said = f"{at}.routes[{m}].target_container", route.target_container
                yield Problem(place, f"unknown container: {said}", one_of(said, names))
    for n, database in enumerate(app.databases):
        given = [name for name in _MIGRATES if getattr(database.postgres, name)]
        if len(given) > 1:
            at = f"databases[{n}].postgres.{given[0]}"
            yield Problem(at, f"beside {given[1]}", "keep one of the two")


def _on_kubernetes(app: Application) -> Iterator[Problem]:
    containers = app.kubernetes.containers if app.kubernetes else []
    yield from _twice("kubernetes.containers", [each.name for each in containers])
    for n, each in enumerate(containers):
        yield from _image(each, f"kubernetes.containers[{n}]")


def _foreign(app: Application) -> Iterator[Problem]:
    for n, store in enumerate(app.blobstores):
        if store.ref is None:
            continue
        at = f"blobstores[{n}].ref"
        if bool(store.ref.application) == bool(store.ref.bucket_name):
            yield Problem(at, "needs exactly one of application and bucket_name", "say whose it is")
        elif store.ref.application and re.search("[-_]", store.name):
            # images-shop of acme in dev would be called as images of shop in acme-dev is.
            problem = f"a bucket's name does not say whose it is with this store: {store.name}"
            hint = "name it by bucket_name, once the environment's aws.shared_buckets has it"
            yield Problem(f"{at}.application", problem, hint)


def _topics(app: Application) -> Iterator[Problem]:
    """A topic is called ENVIRONMENT-NAME: eu-orders of prod as orders of prod-eu is."""
    named = [(f"targets[{n}].name", each.name) for n, each in enumerate(app.targets)]
    for n, runtime in enumerate(app.runtimes):
        for m, each in enumerate(runtime.subscriptions):
            if not each.name.startswith(("/", "global/", "o5-infra/")):
                named.append((f"runtimes[{n}].subscriptions[{m}].name", each.name))
    for at, name in named:
        if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name):
            said = f"a topic's name does not say whose it is with this name: {name[:80]}"
            yield Problem(at, said, "use letters, digits and _")


def _twice(at: str, names: list[str]) -> Iterator[Problem]:
    """Names that differ in case, hyphens or underscores only would name the same resource."""
    same = [re.sub("[^a-z0-9]", "", name.lower()) for name in names]
    for name, count in Counter(same).items():
        if count > 1:
            last = len(same) - 1 - same[::-1].index(name)
            yield Problem(f"{at}[{last}].name", f"used twice: {names[last]}", "rename one")


def _image(container: Container | KubernetesContainer, at: str) -> Iterator[Problem]:
    if bool(container.image_url) == (container.image is not None):
        yield Problem(at, "needs either image_url or image", "write exactly one of them")


def _container(app: Application, container: Container, at: str) -> Iterator[Problem]:
    yield from _image(container, at)
    for n, variable in enumerate(container.env_vars):
        yield from _variable(app, variable, f"{at}.env_vars[{n}]")


def _variable(app: Application, variable: EnvVar, at: str) -> Iterator[Problem]:
    given = [name for name in _SOURCES if getattr(variable, name) is not None]
    if len(given) != 1:
        said = ", ".join(given) or "none"
        yield Problem(at, f"needs exactly one source, has: {said}", f"one of {', '.join(_SOURCES)}")
    if variable.env_map is not None:
        yield Problem(f"{at}.env_map", "not supported", "write each variable by itself")
    yield from _references(app, variable, at)


def _references(app: Application, variable: EnvVar, at: str) -> Iterator[Problem]:
    blobstore, secret = variable.blobstore, variable.secret
    bucket = None if blobstore is None else blobstore.name
    hidden = None if secret is None else secret.secret_name
    references = (
        ("database", variable.database, [each.name for each in app.databases]),
        ("blobstore.name", bucket, [each.name for each in app.blobstores]),
        ("secret.secret_name", hidden, [each.name for each in app.secrets]),
    )
    for field, said, known in references:
        if said is not None and said not in known:
            hint = one_of(said, known) if known else "declare it in the application"
            yield Problem(f"{at}.{field}", f"not declared: {said}", hint)
