"""Lamps on this machine: who lets them shine, what runs beside, and what their page asks for."""

import contextlib
from collections.abc import AsyncIterator

from fairlead import settings as settings_
from fairlead.area import parts
from fairlead.engine import outbox, service
from fairlead.web.services import Service, Services
from tests.toy_area import machine
from tests.toy_area.settings import LampSettings


class Meter:
    """Counts watts while it runs."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.watts = 0
        self.running = False


METER: Service[Meter] = Service("meter")


def platform(chosen: settings_.Settings) -> parts.Platform:
    meter = Meter(chosen.of(LampSettings).lamp_watts)

    async def shine(effect: machine.Shine, _: outbox.EffectContext) -> machine.Burned:
        watts = min(effect.watts, meter.limit)
        meter.watts += watts
        return machine.Burned(watts)

    @contextlib.asynccontextmanager
    async def background(_: service.Engine) -> AsyncIterator[None]:
        meter.running = True
        try:
            yield
        finally:
            meter.running = False

    # Lamps belong to no machine in particular, so they have no queue.
    queues: outbox.QueueHandlers = {"": {machine.Shine: outbox.Handler(shine)}}
    return parts.Platform(queues, background, Services({METER: meter}))
