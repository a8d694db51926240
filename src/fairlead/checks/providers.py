"""Who can answer checks in this installation: the providers that are found, by name."""

import contextlib
import pkgutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from fairlead import loading
from fairlead.checks import gates, notifiers, sources
from fairlead.checks.ports import Gate, MetricSource, Notifier
from fairlead.checks.provider import Problem, Provider, World
from fairlead.checks.registry import Registry
from fairlead.checks.spec import PROMETHEUS, WEBHOOK, Check, CheckKind
from fairlead.checks.subject import Names
from fairlead.settings import MeasureSettings


@dataclass(frozen=True, slots=True)
class Providers:
    """All of them, by name."""

    sources: Mapping[str, Provider[MetricSource]]
    gates: Mapping[str, Provider[Gate]]
    notifiers: Mapping[str, Provider[Notifier]]

    def problems(self, check: Check, release: str, names: Names) -> tuple[Problem, ...]:
        """Pairs of a field of the check and what is wrong with it; none if it can be asked.

        `names` are those of either side, as the platform would give them.
        """
        is_gate = check.kind is CheckKind.GATE
        known: Mapping[str, Provider[Any]] = self.gates if is_gate else self.sources
        name = check.source or (WEBHOOK if is_gate else PROMETHEUS)
        if name not in known:
            return (("source", f"there is none of this name here, but {', '.join(known)}"),)
        if check.kind is CheckKind.JUDGE and not known[name].compares:
            return (("source", f"{name} has no series of both sides for the judge"),)
        return tuple(known[name].problems(check, release, names))

    @contextlib.asynccontextmanager
    async def open(self, world: World) -> AsyncIterator[Registry]:
        made = Registry()
        async with contextlib.AsyncExitStack() as stack:
            for name, source in self.sources.items():
                made.sources[name] = await stack.enter_async_context(source.open(world))
            for name, gate in self.gates.items():
                made.gates[name] = await stack.enter_async_context(gate.open(world))
            for name, notifier in self.notifiers.items():
                made.notifiers[name] = await stack.enter_async_context(notifier.open(world))
            yield made


def found(chosen: MeasureSettings) -> Providers:
    """The providers that ship, as the settings want them."""
    return Providers(_of(sources, chosen), _of(gates, chosen), _of(notifiers, chosen))


def _of(folder: ModuleType, chosen: MeasureSettings) -> Mapping[str, Provider[Any]]:
    files = sorted(file.name for file in pkgutil.iter_modules(folder.__path__))
    place = f"{folder.__name__}.{{}}:provider"
    return {name: loading.make(place.format(name), Provider, chosen) for name in files}
