"""What every route needs, made once by bootstrap and carried by the app."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import Request
from starlette.responses import Response

from fairlead.access import intake, scopes
from fairlead.engine import filters, messages, service
from fairlead.engine.store import protocol
from fairlead.web import server
from fairlead.web.layout import Layout
from fairlead.web.services import Services


@dataclass(frozen=True, slots=True)
class WebContext:
    """What one web app works with."""

    engine: service.Engine
    store: protocol.Store
    bind: server.Bind
    intake: intake.Intake
    views: Sequence[str] = ()
    services: Services = field(default_factory=Services)
    """What areas run in this process."""

    layout: Layout = field(default_factory=Layout)

    session_life: timedelta = timedelta(hours=12)
    https: bool = False
    """Whether a proxy in front speaks HTTPS, so that cookies may insist on it."""

    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process is about to stop: live streams end, readiness is withdrawn."""

    def now(self) -> datetime:
        return datetime.now(UTC)


def of(request: Request) -> WebContext:
    context = request.app.state.context
    assert isinstance(context, WebContext)
    return context


def caller(request: Request) -> intake.Caller:
    """Who asks, as the gate found out before any route was reached."""
    found = request.scope["state"]["caller"]
    assert isinstance(found, intake.Caller)
    return found


def where(request: Request, text: str, machine: str | None = None) -> filters.Where | None:
    """A filter that somebody typed, for the machines of this program."""
    return filters.where(text, of(request).engine.registry.machines, machine)


def page(request: Request, template: str, **values: Any) -> Response:
    """A page for the caller; one who is signed in may sign out."""
    signed_in = request.scope["state"].get("signed_in", False)
    return of(request).layout.page(template, signed_in=signed_in, **values)


def stream(request: Request, machine: str, key: str) -> messages.StreamName:
    """The stream that a path names; NotFound where it is outside of the caller's scope."""
    name = messages.stream_name(machine, key)
    scopes.check(caller(request).scope, name)
    return name
