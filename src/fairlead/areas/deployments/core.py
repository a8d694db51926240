"""What every process on a store must know of deployments."""

from collections.abc import Mapping

from fairlead.area import parts
from fairlead.areas.deployments.domain import migration, schedule
from fairlead.areas.deployments.domain.deployment.machine import deployment
from fairlead.areas.deployments.domain.migration import MIGRATION
from fairlead.areas.deployments.domain.plan.graph import Kind
from fairlead.areas.deployments.domain.ref import REF
from fairlead.areas.deployments.domain.stack.machine import STACK
from fairlead.areas.deployments.domain.trigger.machine import TRIGGER
from fairlead.engine.machine import AnyMachine

STEPS: tuple[parts.StepKind, ...] = (
    parts.StepKind(Kind.PG_MIGRATE.value, migration.start, migration.NAME),
)
"""Steps of a plan that are machines of their own, by the kind that plans name them with."""


def core() -> parts.Core:
    return parts.Core(
        machines=(STACK, MIGRATION, TRIGGER, REF, *schedule.MACHINES.values()),
        steps=STEPS,
        parents=(_walked,),
    )


def _walked(kinds: Mapping[str, parts.StepKind]) -> AnyMachine:
    starters = {name: kind.start for name, kind in kinds.items()}
    return deployment(starters, {kind.machine for kind in kinds.values()})
