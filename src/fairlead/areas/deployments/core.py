"""What every process on a store must know of deployments."""

from fairlead.area import parts
from fairlead.areas.deployments.domain import migration, schedule
from fairlead.areas.deployments.domain.deployment.machine import deployment
from fairlead.areas.deployments.domain.migration import MIGRATION
from fairlead.areas.deployments.domain.plan.graph import Kind
from fairlead.areas.deployments.domain.ref import REF
from fairlead.areas.deployments.domain.stack.machine import STACK
from fairlead.areas.deployments.domain.trigger.machine import TRIGGER
from fairlead.areas.rollouts import core as rollouts

STEPS: tuple[parts.StepKind, ...] = (
    parts.StepKind(Kind.PG_MIGRATE.value, migration.start, migration.NAME),
)
"""Steps of a plan that are machines of their own, by the kind that plans name them with."""


def core() -> parts.Core:
    kinds = (*STEPS, *rollouts.STEPS)
    starters = {kind.name: kind.start for kind in kinds}
    walked = deployment(starters, {kind.machine for kind in kinds})
    return parts.Core(
        machines=(STACK, walked, MIGRATION, TRIGGER, REF, *schedule.MACHINES.values()),
        steps=STEPS,
    )
