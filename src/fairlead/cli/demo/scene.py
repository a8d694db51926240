"""What the story's processes agree on: the store, the machines, the pace."""

import asyncio
import random
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from fairlead import bootstrap
from fairlead import settings as settings_
from fairlead._sample import depot, trip
from fairlead._sample.messages import Arrive, DriveLeg
from fairlead.cli.demo import road
from fairlead.engine import messages, outbox

LEGS = 10
AT_ONCE = 64
LEG_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Plan:
    """What is ordered, and where it is kept."""

    folder: Path
    depot: str
    trips: int

    @property
    def stream(self) -> messages.StreamName:
        return messages.stream_name("depot", self.depot)

    @property
    def patience(self) -> timedelta:
        """Past this the story has gone wrong; ten times what the road alone would take."""
        return timedelta(seconds=60 + 10 * self.trips * LEGS * LEG_SECONDS / AT_ONCE)

    @property
    def transitions(self) -> int:
        """A trip departs, drives its legs and is told of at home; one order starts it all."""
        return self.trips * (LEGS + 2) + 1

    def owns(self, stream: str) -> bool:
        return stream == self.stream or stream.startswith(f"trip/{self.depot}-")


def settings(folder: Path) -> settings_.Settings:
    """The demo's own settings: whatever store the user has is left alone."""
    return settings_.Settings(
        store=settings_.StoreSettings(state_dir=folder),
        engine=settings_.EngineSettings(lease_seconds=5.0, poll_seconds=0.5),
    )


def cast(handlers: outbox.Handlers | None = None) -> bootstrap.Cast:
    return bootstrap.Cast(machines=(depot.DEPOT, trip.TRIP), handlers=handlers or {})


def drivers(outside: road.Road) -> outbox.Handlers:
    """Legs are driven by asking the road; it knows by the key what it drove before."""

    async def drive(leg: DriveLeg, context: outbox.Context) -> Arrive:
        if outside.ask(context.idempotency_key, context.stream, leg.leg):
            await asyncio.sleep(LEG_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311 - traffic, no secret
        return Arrive(leg.leg)

    return {DriveLeg: outbox.Handler(drive)}
