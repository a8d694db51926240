"""Containers as ECS has them: of services, and of tasks that migrate a database."""

from typing import Any

from fairlead.areas.deployments.specs.application import Container, EnvVar, Runtime
from fairlead.areas.deployments.specs.naming import Site

ADAPTER = "http://sidecar:8081"
SIDECAR_PORT = 8080
_CPU, _MEMORY = {"LIGHT": 128, "MEDIUM": 256, "HEAVY": 512}, {"LIGHT": 256}
_SOCKET = "docker-socket"


def definition(site: Site, container: Container, image: Any) -> dict[str, Any]:
    """One container; its image is a text, or a reference within a template."""
    plain = [(each.name, _plain(site, each)) for each in container.env_vars]
    hidden = [(each.name, _secret(site, each)) for each in container.env_vars]
    made: dict[str, Any] = {
        "Name": container.name,
        "Image": image,
        "Essential": True,
        "Cpu": _CPU[container.demand],
        "Memory": _MEMORY["LIGHT"] * (_CPU[container.demand] // _CPU["LIGHT"]),
        "Environment": [
            {"Name": name, "Value": value} for name, value in plain if value is not None
        ],
        "Secrets": [{"Name": name, "ValueFrom": arn} for name, arn in hidden if arn],
    }
    if container.command:
        made["Command"] = list(container.command)
    if container.mount_docker_socket:
        path = "/var/run/docker.sock"
        made["MountPoints"] = [{"ContainerPath": path, "SourceVolume": _SOCKET}]
    return made


def volumes(runtime: Runtime) -> list[dict[str, Any]]:
    if not any(each.mount_docker_socket for each in runtime.containers):
        return []
    return [{"Name": _SOCKET, "Host": {"SourcePath": "/var/run/docker.sock"}}]


def sidecar(site: Site, runtime: Runtime) -> dict[str, Any] | None:
    """The program beside a runtime that hands it requests and messages; None without one."""
    chosen = site.aws.o5_sidecar
    if chosen is None or runtime.direct_ingress:
        return None
    repo = chosen.image_repo or f"{site.aws.ecs_cluster.default_registry}/sidecar"
    worker = runtime.worker_config
    said = {
        "APP_NAME": site.app.name,
        "ENVIRONMENT_NAME": site.environment.full_name,
        "CORS_ORIGINS": ",".join(site.environment.cors_origins),
        "JWKS": ",".join(site.environment.trust_jwks),
        "REPLAY_CHANCE": str(worker.replay_chance) if worker else "",
        "DEADLETTER_CHANCE": str(worker.deadletter_chance) if worker else "",
    }
    outboxes = [each for each in site.app.databases if each.postgres.run_outbox]
    return {
        "Name": "sidecar",
        "Image": f"{repo}:{chosen.image_version}",
        "Essential": True,
        "Cpu": 128,
        "Memory": 128,
        "Environment": [{"Name": name, "Value": value} for name, value in said.items() if value],
        "Secrets": [
            {"Name": f"OUTBOX_{n}", "ValueFrom": site.secret_arn(each.name, "dburl")}
            for n, each in enumerate(outboxes)
        ],
    }


def _plain(site: Site, variable: EnvVar) -> str | None:
    if variable.value is not None:
        return variable.value
    if (store := variable.blobstore) is not None:
        return f"s3://{site.bucket(store.name)}/{store.sub_path}".rstrip("/")
    if variable.o5 is not None:
        return ADAPTER
    if variable.from_env is None:
        return None
    found = next(each for each in site.environment.vars if each.name == variable.from_env.name)
    return found.join.delimiter.join(found.join.values) if found.join else found.value


def _secret(site: Site, variable: EnvVar) -> str | None:
    if variable.database is not None:
        return site.secret_arn(variable.database, "dburl")
    if variable.secret is not None:
        return site.secret_arn(variable.secret.secret_name, variable.secret.json_key)
    return None
