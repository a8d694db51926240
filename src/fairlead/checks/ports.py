"""What is asked of those who answer checks and hear news: three small ports.

A provider that is found in `sources`, `gates` or `notifiers` implements one of them, and so does
what an area brings itself, such as Envoy's own numbers or the Events of an object.
"""

from typing import Protocol, runtime_checkable

from fairlead.analysis.conditions import Answer
from fairlead.analysis.samples import Series
from fairlead.checks.spec import Check
from fairlead.checks.subject import News, Subject


class MetricSource(Protocol):
    """Where numbers come from."""

    async def ask(self, check: Check, about: Subject) -> Answer:
        """A value, silence, or why the question could not be asked: three different things."""
        ...


@runtime_checkable
class Comparing(Protocol):
    """A metric source that can also tell how both sides did over time."""

    async def compare(self, check: Check, about: Subject) -> Series:
        """Series of both sides since `about.since`; Unavailable where they cannot be read."""
        ...


class Gate(Protocol):
    """Who lets a release pass, with people behind it."""

    async def is_open(self, check: Check, about: Subject) -> tuple[bool, str]:
        """Whether one may pass, and what was said."""
        ...


class Notifier(Protocol):
    """Who hears news; the same news may come twice."""

    async def notify(self, news: News) -> None: ...
