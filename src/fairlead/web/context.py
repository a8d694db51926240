"""What every route needs, made once by bootstrap and carried by the app."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fastapi import Request

from fairlead.domain.rollouts.numbers import Numbers
from fairlead.engine import service
from fairlead.engine.store import protocol
from fairlead.intents import intake, workloads
from fairlead.web import server


@dataclass(frozen=True, slots=True)
class Context:
    """One web app's surroundings."""

    engine: service.Engine
    store: protocol.Store
    bind: server.Bind
    intake: intake.Intake
    views: Sequence[str] = ()
    numbers: Numbers | None = None
    """What both versions of a rollout do with their requests; None where nobody records it."""

    ground: workloads.Ground | None = None
    """Where workloads are brought; None where this process runs none."""

    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process is about to stop: live streams end, readiness is taken back."""

    def now(self) -> datetime:
        return datetime.now(UTC)


def of(request: Request) -> Context:
    context = request.app.state.context
    assert isinstance(context, Context)
    return context


def caller(request: Request) -> intake.Caller:
    """Who asks, as the gate found out before any route was reached."""
    found = request.scope["state"]["caller"]
    assert isinstance(found, intake.Caller)
    return found
