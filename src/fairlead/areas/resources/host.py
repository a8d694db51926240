"""Resources performed by this process: which API, as whom, and with what it compares secrets."""

import contextlib
import os
import re
import secrets
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from fairlead import errors
from fairlead import settings as settings_
from fairlead.area import parts
from fairlead.areas.resources import handlers, responses
from fairlead.areas.resources.catalogue import Models
from fairlead.areas.resources.domain.applied import Seal
from fairlead.areas.resources.domain.model import Json
from fairlead.areas.resources.domain.reconcile.messages import ErrorClass
from fairlead.areas.resources.settings import ResourcesSettings
from fairlead.clients import credentials
from fairlead.clients.arm.client import Answer, Arm
from fairlead.clients.arm.identity import Application, ClientSecret, Credential, FileToken
from fairlead.engine import outbox, service
from fairlead.engine.messages import queue_name

CATALOGUE = Path("resources") / "catalogue"
_KEY = Path("resources") / "key"
_KEY_BYTES = 32
_SECRET = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_URL = "FAIRLEAD_RESOURCES_API_URL"
_TOKEN, _TENANT = "FAIRLEAD_RESOURCES_TOKEN_FILE", "FAIRLEAD_RESOURCES_TENANT"
_CLOUDS = {
    "public": ("https://management.azure.com", "https://login.microsoftonline.com"),
    "usgovernment": (
        "https://management.usgovcloudapi.net",
        "https://login.microsoftonline.us",
    ),
    "china": ("https://management.chinacloudapi.cn", "https://login.chinacloudapi.cn"),
}


@dataclass(frozen=True, slots=True)
class Host:
    """What this process needs to reconcile."""

    arm: Arm
    ports: handlers.ResourcePorts
    queue: str

    @property
    def queues(self) -> outbox.QueueHandlers:
        return {self.queue: handlers.handlers(self.ports)}


def host(chosen: settings_.Settings) -> Host:
    wanted = chosen.of(ResourcesSettings)
    folder = chosen.store.state_dir.expanduser()
    arm = _arm(wanted)
    models = Models(folder / CATALOGUE)
    secret = Secrets(wanted.resources_secrets)
    ports = handlers.ResourcePorts(arm, models.model, seal(chosen), secret)
    return Host(arm, ports, queue_name("resources", _place(arm.url)))


def platform(chosen: settings_.Settings) -> parts.Platform | None:
    """None where nobody is named to ask the API as: then others perform what is asked."""
    wanted = chosen.of(ResourcesSettings)
    if not wanted.resources_token_file and not wanted.resources_tenant:
        return None
    made = host(chosen)

    @contextlib.asynccontextmanager
    async def background(_: service.Engine) -> AsyncIterator[None]:
        async with made.arm.open():
            yield

    return parts.Platform(made.queues, background)


def seal(chosen: settings_.Settings) -> Seal:
    """Of the key that was given, or of one that is made once."""
    named = chosen.of(ResourcesSettings).resources_key_file
    if named:
        return Seal(credentials.secret(Path(named).expanduser()).encode())
    return Seal(_key(chosen.store.state_dir.expanduser() / _KEY))


def shown(answer: Answer, id_: str) -> Json | None:
    """The resource; None where there is none."""
    if responses.is_absent(answer):
        return None
    if answer.status != HTTPStatus.OK:
        failure = responses.failure(answer)
        waits = failure.kind in (ErrorClass.TRANSIENT, ErrorClass.THROTTLED, ErrorClass.BUSY)
        kind = errors.Unavailable if waits else errors.Rejected
        raise kind(
            f"the API does not show {id_}: {failure.message}",
            hint="is it the id of a resource, and does the API know this version and us?",
        )
    if not isinstance(answer.body, dict):
        raise errors.Unavailable(f"the API shows no resource: {id_}", hint=f"check {_URL}")
    return answer.body


@dataclass(frozen=True, slots=True)
class Secrets:
    """Those that specs name, in the files of one folder."""

    folder: str

    def __call__(self, name: str) -> str:
        if not self.folder:
            raise errors.NotFound(
                "no folder of secrets is set", hint="set FAIRLEAD_RESOURCES_SECRETS"
            )
        if not _SECRET.fullmatch(name):
            raise errors.Rejected(
                f"not the name of a secret: {name[:80]!r}", hint="name a file of the folder"
            )
        file = Path(self.folder).expanduser() / name
        if not file.is_file():
            raise errors.NotFound(f"no such secret: {name}", hint=f"write it into {file}")
        return credentials.secret(file)


def _arm(wanted: ResourcesSettings) -> Arm:
    if wanted.resources_cloud not in _CLOUDS:
        raise errors.Rejected(
            f"no such cloud: {wanted.resources_cloud[:40]}", hint=f"use {', '.join(_CLOUDS)}"
        )
    api, login = _CLOUDS[wanted.resources_cloud]
    api = (wanted.resources_api_url or api).rstrip("/")
    return Arm(api, _credential(wanted, api, wanted.resources_login_url or login), _URL)


def _credential(wanted: ResourcesSettings, api: str, login: str) -> Credential:
    if wanted.resources_token_file:
        return FileToken(Path(wanted.resources_token_file).expanduser())
    named = (wanted.resources_client_id, wanted.resources_client_secret_file)
    if not wanted.resources_tenant or not all(named):
        raise errors.Rejected(
            "nobody to ask the API as",
            hint=f"name a file with a token in {_TOKEN}, or a tenant, a client and the file of its"
            f" secret in {_TENANT}, FAIRLEAD_RESOURCES_CLIENT_ID and"
            " FAIRLEAD_RESOURCES_CLIENT_SECRET_FILE",
        )
    client, file = named
    secret = Path(file).expanduser()
    signed = Application(login, wanted.resources_tenant, client, secret, f"{api}/.default")
    return ClientSecret(signed)


def _place(url: str) -> str:
    """Workers on one store that ask the same API perform each other's work."""
    return re.sub(r"[^A-Za-z0-9._:-]", "-", url.partition("://")[2])[:100] or "api"


def _key(file: Path) -> bytes:
    """Whole or not there, also where two processes start at once; never anybody else's to read."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent) as made:
        made.write(secrets.token_bytes(_KEY_BYTES))
        made.flush()
        os.fsync(made.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(made.name, file)
    return file.read_bytes()
