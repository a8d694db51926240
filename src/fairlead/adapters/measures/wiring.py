"""From settings to both ports, open for as long as the block around them."""

import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Callable

from fairlead.adapters import trust
from fairlead.adapters.measures import servers
from fairlead.adapters.measures.gates import WebGates
from fairlead.adapters.measures.hooks import Hooks, Hosts, Manners
from fairlead.adapters.measures.metrics import PrometheusMetrics
from fairlead.adapters.measures.reading import Reader
from fairlead.domain.rollouts.ports import Naming
from fairlead.settings import MeasureSettings


@contextlib.asynccontextmanager
async def measures(
    chosen: MeasureSettings, naming: Naming, now: Callable[[], dt.datetime]
) -> AsyncIterator[tuple[PrometheusMetrics, WebGates]]:
    """The metrics and the gates of this installation."""
    known = servers.from_settings(chosen)
    manners = Manners(
        chosen.hooks_seconds,
        trust.path(chosen.hooks_secret_file),
        trust.path(chosen.hooks_ca_file),
    )
    hooks = Hooks(manners)
    async with known.open(chosen.prometheus_tick_seconds), hooks.open():
        gates = WebGates(hooks, Hosts.read(chosen.hooks_hosts), naming, chosen.hooks_news_url)
        yield PrometheusMetrics(known, naming, now), gates


def reader(chosen: MeasureSettings) -> Reader:
    """What this installation can ask, for those who read checks."""
    return Reader(servers.from_settings(chosen), Hosts.read(chosen.hooks_hosts))
