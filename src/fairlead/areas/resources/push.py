"""The door for news of changes: Event Grid's web-hook, in its own words and as CloudEvents.

Its events have no signature: who sends them shows a token of Entra ID, or a secret in the query. An
event says that something changed, and no more is believed: the resource is read.
"""

import functools
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import structlog
from fastapi import APIRouter, Request, Response

from fairlead import errors
from fairlead.access import intake, tokens
from fairlead.access.bearer import Bearers, Issuer
from fairlead.areas.resources.domain import urls
from fairlead.areas.resources.domain.reconcile.draft import stream
from fairlead.areas.resources.domain.reconcile.messages import Refresh
from fairlead.areas.resources.settings import ResourcesSettings
from fairlead.clients import credentials
from fairlead.engine import visibility
from fairlead.web import api
from fairlead.web import context as contexts
from fairlead.web.services import Service

router = APIRouter(prefix="/hooks/resources", tags=["hooks"], responses=api.FAILURES)
_MOST_EVENTS = 5_000
_MOST_ABOVE = 8
_VALIDATION = "microsoft.eventgrid.subscriptionvalidationevent"
_SENDER = intake.Caller("event-grid", tokens.Role.OPERATOR)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Senders:
    """Who may say that something changed."""

    secret: Path | None
    bearers: Bearers | None

    def check(self, request: Request) -> None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if self.bearers and scheme.lower() == "bearer" and self.bearers.who(token.strip()):
            return
        said = request.query_params.get("code", "")
        if self.secret and said and self._is_secret(said):
            return
        raise errors.Unauthorised(
            "an event of nobody we know", hint="send the secret as code=…, or a token of Entra ID"
        )

    def _is_secret(self, said: str) -> bool:
        assert self.secret is not None
        known = credentials.secrets(self.secret)
        return any(hmac.compare_digest(each.encode(), said.encode()) for each in known)


SENDERS: Service[Senders] = Service("senders of events")


def senders(chosen: ResourcesSettings) -> Senders | None:
    """None where nobody is listened to."""
    keys, secret = chosen.resources_push_jwks_file, chosen.resources_push_secret_file
    if not keys and not secret:
        return None
    if keys and not (chosen.resources_push_issuer and chosen.resources_push_audience):
        raise errors.Rejected(
            "a token for anything would open this door",
            hint="set FAIRLEAD_RESOURCES_PUSH_ISSUER and FAIRLEAD_RESOURCES_PUSH_AUDIENCE",
        )
    trusted = (chosen.resources_push_issuer, chosen.resources_push_audience)
    bearers = Bearers(Issuer(Path(keys).expanduser(), *trusted)) if keys else None
    return Senders(Path(secret).expanduser() if secret else None, bearers)


@router.options("/event-grid", summary="The handshake of CloudEvents", include_in_schema=False)
async def allow_events(request: Request) -> Response:
    _check(request)
    origin = request.headers.get("webhook-request-origin", "")[:200]
    return Response(headers={"WebHook-Allowed-Origin": origin, "WebHook-Allowed-Rate": "*"})


@router.post("/event-grid", summary="Event Grid says what changed", response_model=None)
async def receive_events(request: Request) -> dict[str, Any]:
    """Answers the handshake, and has each resource read that is kept here and was named."""
    _check(request)
    events = _events(await request.body())
    for each in events:
        kind, data = str(_word(each, "eventType", "type")).lower(), each.get("data")
        if kind == _VALIDATION and isinstance(data, dict):
            return {"validationResponse": str(data.get("validationCode", ""))[:200]}
    refreshed = [name for each in events for name in await _refreshed(request, each)]
    return {"events": len(events), "refreshed": len(set(refreshed))}


def _check(request: Request) -> None:
    known = contexts.of(request).services.find(SENDERS)
    if known is None:
        raise errors.NotFound(
            "nobody is listened to here", hint="set FAIRLEAD_RESOURCES_PUSH_SECRET_FILE"
        )
    try:
        known.check(request)
    except errors.Rejected as error:
        # For the log alone: whoever asks is nobody we know.
        _log.warning("push_secret_unreadable", error=error.message)
        raise errors.Unauthorised("an event of nobody we know", hint="see the log") from error


def _events(body: bytes) -> Sequence[dict[str, Any]]:
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise errors.Rejected("no events: malformed JSON", hint="send Event Grid's") from error
    events = said if isinstance(said, list) else [said]
    if len(events) > _MOST_EVENTS or not all(isinstance(each, dict) for each in events):
        raise errors.Rejected("no list of events", hint=f"send at most {_MOST_EVENTS:,} of them")
    return events


async def _refreshed(request: Request, event: dict[str, Any]) -> list[str]:
    """The nearest that is kept here, of the one that is named and what it stands in."""
    data = event.get("data")
    named = data.get("resourceUri") if isinstance(data, dict) else None
    id_ = str(named or event.get("subject") or "")
    context = contexts.of(request)
    for _ in range(_MOST_ABOVE):
        if not id_.startswith("/") or len(id_) < 2:  # noqa: PLR2004 - nothing but the slash
            break
        name = stream(id_)
        if await context.engine.read(functools.partial(visibility.find, name=name)):
            once = intake.derived_id("event-grid", str(event.get("id", "")), id_)
            asked = intake.Request(name, Refresh.__name__, {}, once)
            await context.intake.submit(_SENDER, asked)
            return [name]
        id_ = urls.within(id_)
    return []


def _word(event: dict[str, Any], *names: str) -> object:
    return next((event[name] for name in names if name in event), "")
