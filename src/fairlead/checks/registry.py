"""Who answers a check and who hears news, by name.

A platform makes one, adds what it brings itself, and has the providers of this installation added
for as long as they are open.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from fairlead import errors
from fairlead.checks.ports import Comparing, Gate, MetricSource, Notifier
from fairlead.checks.spec import PROMETHEUS, WEBHOOK, Check
from fairlead.checks.subject import News

T = TypeVar("T")


@dataclass(slots=True)
class Registry:
    """All who can be asked or told now."""

    usual: str = PROMETHEUS
    """Which source answers a check that names none."""

    sources: dict[str, MetricSource] = field(default_factory=dict)
    gates: dict[str, Gate] = field(default_factory=dict)
    notifiers: dict[str, Notifier] = field(default_factory=dict)

    def source(self, check: Check) -> MetricSource:
        return _named("metric source", check.source or self.usual, self.sources)

    def comparing(self, check: Check) -> Comparing:
        """The source, where it has series of both sides; Rejected where it has none."""
        found = self.source(check)
        if not isinstance(found, Comparing):
            raise errors.Rejected(
                f"metric source has no series to compare: {check.source or self.usual}",
                hint=f"let the judge ask {PROMETHEUS}",
            )
        return found

    def gate(self, check: Check) -> Gate:
        return _named("gate", check.source or WEBHOOK, self.gates)

    async def notify(self, news: News) -> None:
        """Tell everybody; who could not be told is an error only after all the others were."""
        trouble: errors.FairleadError | None = None
        for notifier in tuple(self.notifiers.values()):
            try:
                await notifier.notify(news)
            except errors.FairleadError as error:
                trouble = error
        if trouble is not None:
            raise trouble

    @contextlib.contextmanager
    def joined(self, others: "Registry") -> Iterator[None]:
        """With those of another one, for as long as the block lasts."""
        self.sources.update(others.sources)
        self.gates.update(others.gates)
        self.notifiers.update(others.notifiers)
        try:
            yield
        finally:
            for held, theirs in (
                (self.sources, others.sources),
                (self.gates, others.gates),
                (self.notifiers, others.notifiers),
            ):
                for name in theirs:
                    held.pop(name, None)


def _named(what: str, name: str, known: Mapping[str, T]) -> T:
    if name not in known:
        # Also while the control plane starts or stops: an error is counted, and asked again.
        raise errors.Rejected(
            f"no such {what} here: {name[:80]}", hint=f"known are: {', '.join(known) or 'none'}"
        )
    return known[name]
