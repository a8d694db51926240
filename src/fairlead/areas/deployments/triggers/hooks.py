"""The door for webhooks: checked, held against the push targets, recorded; nothing is awaited.

    bytes ──► signature ──► push ──► push targets of the repository ──► the stream of its branch

What the push starts is decided there, and performed by whoever performs effects.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pydantic
import structlog
from fastapi import APIRouter, Request, Response

from fairlead import errors
from fairlead.access import intake, tokens
from fairlead.areas.deployments.domain import ref as refs
from fairlead.areas.deployments.domain.trigger.messages import Source, Target
from fairlead.areas.deployments.registry import definitions
from fairlead.areas.deployments.specs.target import PushTarget
from fairlead.areas.deployments.triggers.providers import PROVIDERS, Ignored, Provider, Push, Rerun
from fairlead.clients import credentials
from fairlead.engine import messages
from fairlead.web import api
from fairlead.web import context as contexts
from fairlead.web.services import Service

router = APIRouter(prefix="/hooks", tags=["hooks"], responses=api.FAILURES)
SECRET_FILES: Service[Mapping[str, Path]] = Service("hook secrets")
"""By provider; who is not among them is not listened to."""

_LONGEST_KEY = 180
_log = structlog.get_logger(__name__)
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,80}")


class Taken(pydantic.BaseModel):
    """What became of a delivery."""

    taken: bool
    trigger: str = pydantic.Field(
        default="", description="What it started: fairlead get trigger NAME."
    )
    reason: str = pydantic.Field(default="", description="Why it started nothing.")
    duplicate: bool = pydantic.Field(default=False, description="Whether it had come before.")


@router.post("/{provider}", summary="A webhook of github, gitlab or gitea", status_code=202)
async def receive(request: Request, response: Response, provider: str) -> Taken:
    host, secrets = _known(request, provider)
    body = await request.body()
    host.check(request.headers, body, secrets)
    heard = host.read(request.headers, body)
    if isinstance(heard, Ignored):
        response.status_code = 200
        return Taken(taken=False, reason=heard.why)
    taken = await _taken(request, provider, heard, _delivery(host, request, body))
    if not taken.taken:
        response.status_code = 200
    return taken


def ref_key(provider: str, repository: str, ref: str) -> str:
    """Of the stream of a branch or tag; what cannot be typed is told apart by a digest."""
    name = ref.removeprefix("refs/").replace("/", ":", 1)
    kind, _, rest = name.partition(":")
    if not _PLAIN.fullmatch(rest):
        digest = hashlib.blake2b(rest.encode(), digest_size=6).hexdigest()
        rest = f"{re.sub('[^A-Za-z0-9._-]', '-', rest)[:60]}@{digest}"
    key = f"{provider}:{repository.lower().replace('/', ':')}:{kind}:{rest}"
    if len(key) > _LONGEST_KEY:
        key = f"{provider}:{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}"
    return key


def _known(request: Request, provider: str) -> tuple[Provider, list[str]]:
    files = contexts.of(request).services.find(SECRET_FILES) or {}
    host, file = PROVIDERS.get(provider), files.get(provider)
    # Without a secret anybody could send anything, so then nobody is listened to.
    if host is None or file is None or not (secrets := _secrets(file)):
        raise errors.NotFound(
            f"no webhook is set up here for: {provider[:40]}",
            hint="set FAIRLEAD_DEPLOYMENTS_GITHUB_SECRET_FILE, or that of GitLab or Gitea",
        )
    return host, secrets


def _secrets(file: Path) -> list[str]:
    try:
        return credentials.secrets(file)
    except errors.Rejected as error:
        # For the log alone: whoever asks is nobody we know.
        _log.warning("hook_secret_unreadable", error=error.message)
        return []


def _delivery(host: Provider, request: Request, body: bytes) -> str:
    """What a repeated delivery has in common with the first.

    A name that the signature does not cover can be made up by whoever repeats what they have
    overheard; so what is signed counts, and the host's name for it only where nothing is.
    """
    return request.headers.get(host.delivery, "") or hashlib.sha256(body).hexdigest()


async def _taken(request: Request, provider: str, heard: Push | Rerun, delivery: str) -> Taken:
    context = contexts.of(request)
    known = await context.engine.read(
        lambda session: definitions.targets(session, provider, heard.repository)
    )
    if not known:
        raise errors.NotFound(
            f"no push target names the repository: {provider} {heard.repository[:150]}",
            hint="store one with fairlead deploy push-target.yaml",
        )
    chosen = [each for each in known if each.takes(heard.ref)]
    if not chosen:
        return Taken(taken=False, reason=f"no push target takes {heard.ref[:80]}")
    command = _command(provider, heard, chosen)
    stream = messages.stream_name("ref", command.ref)
    data, name = msgspec.to_builtins(command), type(command).__name__
    asked = intake.Request(stream, name, data, intake.derived_id("hook", provider, delivery))
    try:
        receipt = await context.intake.submit(
            intake.Caller(command.by, tokens.Role.DEPLOYER), asked
        )
    except errors.Conflict:
        # The same delivery, while the targets were edited in between.
        return Taken(taken=False, duplicate=True, reason="it had come before")
    view = await context.intake.find(stream)
    now = msgspec.convert(view.data, refs.Ref) if view else refs.Ref()
    if receipt.duplicate or not receipt.events:
        why = "it had come before" if receipt.duplicate else "nothing is new"
        return Taken(taken=False, duplicate=receipt.duplicate, reason=why)
    return Taken(taken=not now.note, trigger="" if now.note else now.trigger, reason=now.note)


def _command(
    provider: str, heard: Push | Rerun, chosen: list[PushTarget]
) -> refs.TakePush | refs.TakeRerun:
    repository = chosen[0].repository
    key = ref_key(provider, repository, heard.ref)
    reports = PROVIDERS[provider].reports
    source = Source(provider, repository, heard.ref, heard.commit, reports)
    targets = tuple(Target(each.environment, each.application, each.path) for each in chosen)
    by, name = f"{provider}:{heard.by}", heard.ref.removeprefix("refs/").partition("/")[2]
    if isinstance(heard, Rerun):
        cause = f"re-run of {name} of {repository}"
        return refs.TakeRerun(key, source, targets, cause, by)
    cause = f"push to {name} of {repository}"
    return refs.TakePush(key, heard.before, source, targets, cause, by, heard.at)
