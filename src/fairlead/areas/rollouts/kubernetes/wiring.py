"""The kinds of rollouts with every provider that ships, and who performs for them."""

import datetime as dt
import functools
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from fairlead import settings as settings_
from fairlead.area.operator_part import OperatorPart
from fairlead.areas.rollouts.kubernetes import provider_registry, requester
from fairlead.areas.rollouts.kubernetes.kinds import RolloutKinds
from fairlead.areas.rollouts.kubernetes.registration import RolloutRegistrar
from fairlead.checks import providers
from fairlead.checks import wiring as checks
from fairlead.checks.registry import Registry
from fairlead.checks.subject import Naming


def canaries() -> RolloutKinds:
    return RolloutKinds(tuple(provider_registry.found().values()))


def operator_part() -> OperatorPart:
    kinds = canaries()
    return OperatorPart(kinds.kinds, functools.partial(_registrar, kinds))


def _registrar(kinds: RolloutKinds, chosen: settings_.Settings) -> RolloutRegistrar:
    def measures(
        registry: Registry, naming: Naming, now: Callable[[], dt.datetime]
    ) -> AbstractAsyncContextManager[None]:
        return checks.opened(chosen.measures, registry, naming, now)

    kinds.permitted = requester.permitted(chosen.operator)
    kinds.answers = providers.found(chosen.measures).problems
    return RolloutRegistrar(kinds, measures)
