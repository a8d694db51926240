"""From settings to a registry whose providers are open for as long as the block around it."""

import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Callable

from fairlead.checks import providers
from fairlead.checks.provider import World
from fairlead.checks.registry import Registry
from fairlead.checks.subject import Naming
from fairlead.clients import credentials
from fairlead.clients.webhooks import Hooks, Manners
from fairlead.settings import MeasureSettings


@contextlib.asynccontextmanager
async def opened(
    chosen: MeasureSettings, registry: Registry, naming: Naming, now: Callable[[], dt.datetime]
) -> AsyncIterator[None]:
    """The providers of this installation, added to the registry of a platform."""
    manners = Manners(
        chosen.hooks_seconds,
        credentials.path(chosen.hooks_secret_file),
        credentials.path(chosen.hooks_ca_file),
    )
    hooks = Hooks(manners)
    world = World(naming, now, hooks)
    async with hooks.open(), providers.found(chosen).open(world) as made:
        with registry.joined(made):
            yield
