"""The one place that wires everything: settings in, a running installation out.

Areas are wired from what they bring (`area.Area`); no area is named here. What runs on this
machine is added by `with_platforms`, what an operator needs by `bootstrap.operator`.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import structlog

from fairlead import catalog, loading
from fairlead import settings as settings_
from fairlead.area import Area, parts
from fairlead.console.nouns import Noun
from fairlead.engine import batch, housekeeping, outbox, projections, service
from fairlead.engine import machine as machine_
from fairlead.engine.store import protocol, sqlite
from fairlead.kubernetes import kinds as kinds_
from fairlead.web.services import Services

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Installation:
    """What a process is put together from; `console.installation.Installation` for commands."""

    machines: Sequence[machine_.AnyMachine] = ()
    handlers: outbox.Handlers = field(default_factory=dict)
    queues: outbox.QueueHandlers = field(default_factory=dict)
    """Who performs for streams of these queues; `handlers` does for streams that have none."""

    views: Sequence[projections.Projection] = ()
    kinds: Sequence[kinds_.Kind] = ()
    """Kinds of Kubernetes objects; their machines need not be named again above."""

    registrars: Sequence[object] = ()
    """Who performs the effects behind the kinds: each a controller.registration.Registrar."""

    background: Sequence[parts.Background] = ()
    """What runs in the same process while effects are performed."""

    services: Services = field(default_factory=Services)
    areas: Sequence[Area] = ()

    def settings(self, environment: Mapping[str, str] | None = None) -> settings_.Settings:
        read = os.environ if environment is None else environment
        return settings_.from_environment(read, settings_groups(self.areas))

    def store(self, chosen: settings_.StoreSettings) -> protocol.Store:
        ordered = [each.name for each in self.machines if each.effects_in_order]
        if not chosen.database_url:
            return sqlite.SqliteStore(chosen.database_file, ordered)
        # Late: whoever keeps a file need not wait for the driver of a server.
        place = "fairlead.engine.store.postgres:PostgresStore"
        made = loading.make(place, object, chosen.database_url, ordered)
        assert isinstance(made, protocol.Store)
        return made

    def engine(
        self,
        chosen: settings_.Settings,
        kept: protocol.Store,
        *,
        perform: bool = True,
        gather: timedelta = timedelta(0),
    ) -> service.Engine:
        tuning = service.Tuning(
            gather=gather,
            lease=timedelta(seconds=chosen.engine.lease_seconds),
            poll=timedelta(seconds=chosen.engine.poll_seconds),
            in_flight=chosen.engine.in_flight,
            drain=timedelta(seconds=chosen.engine.drain_seconds),
        )
        made = service.Parts(
            store=kept,
            machines=self.machines,
            handlers=self.handlers,
            queues=self.queues,
            views=self.views,
            tuning=tuning,
            retention=_retention(chosen),
            told=log_transitions if chosen.log.log_level == "debug" else None,
        )
        return service.Engine(made, perform=perform)

    def nouns(self) -> Sequence[Noun]:
        places = {place: None for area in self.areas for place in area.nouns.values()}
        return [loading.load(place, Noun) for place in places]

    @property
    def projection_names(self) -> Sequence[str]:
        return [view.name for view in self.views]

    @contextlib.asynccontextmanager
    async def in_background(self, made: service.Engine) -> AsyncIterator[None]:
        """What areas run beside an engine that is about to start."""
        async with contextlib.AsyncExitStack() as stack:
            for run in self.background:
                await stack.enter_async_context(run(made))
            yield


def installation(areas: Sequence[Area] = catalog.AREAS) -> Installation:
    """What every process on a store must know: the machines and projections of all areas."""
    cores = [parts.core(area) for area in areas]
    return Installation(
        machines=parts.machines(cores),
        views=[view for core in cores for view in core.projections],
        areas=areas,
    )


def with_platforms(chosen: settings_.Settings, given: Installation) -> Installation:
    """The same with this machine as a platform, for each area that can run here."""
    for area in given.areas:
        platform = parts.platform(area, chosen)
        if platform is None:
            continue
        given = replace(
            given,
            queues=outbox.merged(given.queues, platform.queues),
            background=[*given.background, *filter(None, [platform.background])],
            services=given.services | platform.services,
        )
    return given


def _retention(chosen: settings_.Settings) -> housekeeping.Policy | None:
    days = chosen.engine.retention_days
    if not days:
        return None
    folder = chosen.engine.archive_dir or chosen.store.state_dir / "archive"
    return housekeeping.Policy(
        timedelta(days=days),
        timedelta(days=chosen.engine.command_days),
        Path(folder).expanduser(),
    )


def settings_groups(areas: Sequence[Area] = catalog.AREAS) -> Sequence[type]:
    """The groups of settings that areas declare."""
    return [group for area in areas if (group := parts.settings_group(area)) is not None]


def log_transitions(told: Sequence[batch.EventRecord]) -> None:
    """One line per event, with the stream and the command, effect or timer behind it."""
    for each in told:
        _log.debug(
            "transition", stream=each.stream, seq=each.seq, event_type=each.event, cause=each.cause
        )
