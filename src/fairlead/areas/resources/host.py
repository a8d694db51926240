"""Resources performed by this process: which API, as whom, and with what it compares secrets."""

import contextlib
import os
import re
import secrets
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from fairlead import errors
from fairlead import settings as settings_
from fairlead.area import parts
from fairlead.areas.resources import handlers, hooking, push
from fairlead.areas.resources.budgeted import Budgeted
from fairlead.areas.resources.catalogue import Catalogue, Models
from fairlead.areas.resources.domain.applied import Seal
from fairlead.areas.resources.domain.budget import Kind
from fairlead.areas.resources.domain.model import Json, Model
from fairlead.areas.resources.domain.reconcile.messages import Begin, ErrorClass, Failure
from fairlead.areas.resources.finding import Shown
from fairlead.areas.resources.settings import ResourcesSettings
from fairlead.clients import credentials
from fairlead.clients.arm.client import Arm
from fairlead.clients.arm.identity import (
    Application,
    ClientSecret,
    Credential,
    FileToken,
    ManagedIdentity,
)
from fairlead.clients.arm.rest import Rest
from fairlead.engine import outbox, service
from fairlead.engine.messages import CommandId, StreamName, queue_name
from fairlead.web.services import Services

CATALOGUE = Path("resources") / "catalogue"
_KEY = Path("resources") / "key"
_KEY_BYTES = 32
_SECRET = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_URL = "FAIRLEAD_RESOURCES_API_URL"
_NO_CLOUD = "none"
_TOKEN, _TENANT = "FAIRLEAD_RESOURCES_TOKEN_FILE", "FAIRLEAD_RESOURCES_TENANT"
_CLOUDS = {
    "public": ("https://management.azure.com", "https://login.microsoftonline.com"),
    "usgovernment": (
        "https://management.usgovcloudapi.net",
        "https://login.microsoftonline.us",
    ),
    "china": ("https://management.chinacloudapi.cn", "https://login.chinacloudapi.cn"),
}


@dataclass(slots=True)
class Begun:
    """Whether a creation was begun before, as the store knows it; used inside `with_engine`."""

    engine: service.Engine | None = None

    async def __call__(self, stream: StreamName, order: int) -> bool:
        if self.engine is None:
            raise errors.Unavailable("no engine is running", hint="it is tried again")
        once = CommandId(f"begin {order} {stream}")
        return not (await self.engine.submit(stream, Begin(order), once)).duplicate


@dataclass(frozen=True, slots=True)
class Host:
    """What this process needs to reconcile."""

    arm: Arm
    ports: handlers.ResourcePorts
    queue: str
    begun: Begun
    budget: Budgeted

    @contextlib.asynccontextmanager
    async def open(self, engine: service.Engine) -> AsyncIterator[None]:
        """While an engine runs, which performs by this."""
        self.begun.engine = self.budget.engine = engine
        async with self.arm.open():
            yield

    @property
    def queues(self) -> outbox.QueueHandlers:
        return {self.queue: handlers.handlers(self.ports)}


def host(chosen: settings_.Settings) -> Host:
    wanted = chosen.of(ResourcesSettings)
    arm = _arm(wanted)
    known = models(chosen)
    secret = Secrets(wanted.resources_secrets)
    hourly: dict[Kind, int] = {
        "reads": wanted.resources_reads_per_hour,
        "writes": wanted.resources_writes_per_hour,
    }
    begun, budget = Begun(), Budgeted(arm, arm.url, hourly)
    ports = handlers.ResourcePorts(budget, known.model, seal(chosen), secret, begun)
    return Host(arm, ports, queue_name("resources", _place(arm.url)), begun, budget)


def model(chosen: settings_.Settings, type_: str) -> Model:
    """By `TYPE` or `TYPE@VERSION`, with the hooks of this installation."""
    found = Catalogue(catalogue(chosen)).find(type_)
    return Model.of(found, hooking.load(chosen.of(ResourcesSettings).resources_hooks_file))


def models(chosen: settings_.Settings) -> Models:
    """Of the types that were ingested, with the hooks of this installation."""
    hooks = hooking.load(chosen.of(ResourcesSettings).resources_hooks_file)
    return Models(catalogue(chosen), hooks)


def catalogue(chosen: settings_.Settings) -> Path:
    named = chosen.of(ResourcesSettings).resources_catalogue
    return Path(named or chosen.store.state_dir / CATALOGUE).expanduser()


def platform(chosen: settings_.Settings) -> parts.Platform | None:
    """None where nobody is named to ask the API as: then others perform what is asked."""
    wanted = chosen.of(ResourcesSettings)
    known = push.senders(wanted)
    services = Services({push.SENDERS: known} if known else {})
    ways = (wanted.resources_token_file, wanted.resources_tenant, wanted.resources_managed_identity)
    if not any(ways):
        return parts.Platform(services=services) if known else None
    made = host(chosen)

    return parts.Platform(made.queues, made.open, services)


def seal(chosen: settings_.Settings) -> Seal:
    """Of the key that was given, or of one that is made once."""
    named = chosen.of(ResourcesSettings).resources_key_file
    if named:
        return Seal(credentials.secret(Path(named).expanduser()).encode())
    return Seal(_key(chosen.store.state_dir.expanduser() / _KEY))


def shown(found: Shown | Failure, id_: str) -> Json | None:
    """The resource; None where there is none."""
    if isinstance(found, Shown):
        return found.observed
    waits = found.kind in (ErrorClass.TRANSIENT, ErrorClass.THROTTLED, ErrorClass.BUSY)
    kind = errors.Unavailable if waits else errors.Rejected
    raise kind(
        f"the API does not show {id_}: {found.message}",
        hint="is it the id of a resource, and does the API know this version and us?",
    )


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
    if wanted.resources_cloud == _NO_CLOUD:
        return _rest(wanted)
    if wanted.resources_cloud not in _CLOUDS:
        known = ", ".join((*_CLOUDS, _NO_CLOUD))
        raise errors.Rejected(f"no such cloud: {wanted.resources_cloud[:40]}", hint=f"use {known}")
    api, login = _CLOUDS[wanted.resources_cloud]
    api = (wanted.resources_api_url or api).rstrip("/")
    return Arm(api, _credential(wanted, api, wanted.resources_login_url or login), _URL)


def _rest(wanted: ResourcesSettings) -> Arm:
    if not wanted.resources_api_url or not wanted.resources_token_file:
        raise errors.Rejected(
            "an API of no cloud, and not said which, or as whom to ask it",
            hint=f"set {_URL} and {_TOKEN}",
        )
    token = FileToken(Path(wanted.resources_token_file).expanduser())
    url = wanted.resources_api_url.rstrip("/")
    return Rest(url, token, _URL, token_header=wanted.resources_token_header)


def _credential(wanted: ResourcesSettings, api: str, login: str) -> Credential:
    if wanted.resources_token_file:
        return FileToken(Path(wanted.resources_token_file).expanduser())
    if wanted.resources_managed_identity:
        return ManagedIdentity(wanted.resources_managed_identity, api, wanted.resources_client_id)
    federated = wanted.resources_federated_token_file
    named = (wanted.resources_client_id, federated or wanted.resources_client_secret_file)
    if not wanted.resources_tenant or not all(named):
        raise errors.Rejected(
            "nobody to ask the API as",
            hint=f"name a file with a token in {_TOKEN}, or a tenant, a client and the file of its"
            f" secret in {_TENANT}, FAIRLEAD_RESOURCES_CLIENT_ID and"
            " FAIRLEAD_RESOURCES_CLIENT_SECRET_FILE",
        )
    client, file = named
    secret = Path(file).expanduser()
    about = (login, wanted.resources_tenant, client, secret, f"{api}/.default", bool(federated))
    return ClientSecret(Application(*about))


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
