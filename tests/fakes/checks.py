"""One object that answers every check and hears all news, as a registry."""

from typing import Protocol

from fairlead.checks.ports import Comparing, Gate, MetricSource, Notifier
from fairlead.checks.registry import Registry
from fairlead.checks.spec import PROMETHEUS, WEB, WEBHOOK


class Everybody(MetricSource, Comparing, Gate, Notifier, Protocol):
    """All ports of checks in one."""


def registry(port: Everybody) -> Registry:
    return Registry(PROMETHEUS, {PROMETHEUS: port, WEB: port}, {WEBHOOK: port}, {"all": port})
