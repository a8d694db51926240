"""What triggers run in `fairlead up`: who reads repositories, and the secrets of webhooks."""

import contextlib
from collections.abc import AsyncIterator

from fairlead import errors
from fairlead import settings as settings_
from fairlead.area import parts
from fairlead.areas.deployments import host
from fairlead.areas.deployments.requests import AwsTarget
from fairlead.areas.deployments.settings import DeploymentSettings
from fairlead.areas.deployments.specs.workload import Machine
from fairlead.areas.deployments.triggers import handlers, hooks
from fairlead.areas.deployments.triggers.repositories import GitHost, Repositories
from fairlead.clients import credentials
from fairlead.clients.commit_statuses import commit_statuses
from fairlead.clients.github import Account, GitHub
from fairlead.engine import service
from fairlead.web.services import Services


def platform(chosen: settings_.Settings, machine: Machine | None = None) -> parts.Platform:
    """The machine is where plans of what runs in Kubernetes are walked."""
    given = chosen.of(DeploymentSettings)
    path = credentials.path
    github = GitHub(
        Account(
            given.deployments_github_url,
            path(given.deployments_github_token_file),
            given.deployments_github_app_id,
            path(given.deployments_github_app_key_file),
        )
    )
    hosts = {
        "gitlab": GitHost(given.deployments_gitlab_url, path(given.deployments_gitlab_token_file)),
        "gitea": GitHost(given.deployments_gitea_url, path(given.deployments_gitea_token_file)),
    }
    statuses = {
        name: commit_statuses(name, each.url, each.token_file) for name, each in hosts.items()
    }
    repositories = Repositories(github, hosts, statuses)
    running: list[service.Engine] = []

    def engine() -> service.Engine:
        if not running:
            raise errors.Unavailable("the engine is not up yet", hint="it is tried again")
        return running[-1]

    @contextlib.asynccontextmanager
    async def background(made: service.Engine) -> AsyncIterator[None]:
        running.append(made)
        try:
            async with repositories.open():
                yield
        finally:
            running.remove(made)

    secrets = {
        "github": given.deployments_github_secret_file,
        "gitlab": given.deployments_gitlab_secret_file,
        "gitea": given.deployments_gitea_secret_file,
    }
    files = {name: found for name, file in secrets.items() if (found := path(file)) is not None}
    bucket = given.aws_bucket
    aws = AwsTarget(host.queue(given), bucket) if bucket else None
    ports = handlers.TriggerPorts(repositories, engine, aws, machine)
    services = Services({hooks.SECRET_FILES: files})
    return parts.Platform({"": handlers.handlers(ports)}, background, services)
