"""What every process on a store must know of rollouts: their machines, and the step of a plan."""

from fairlead.area import parts
from fairlead.areas.rollouts.domain import plan_step
from fairlead.areas.rollouts.domain.group import GROUP
from fairlead.areas.rollouts.domain.limiter import LIMITER
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.areas.rollouts.domain.plan_step import PLAN_STEP
from fairlead.areas.rollouts.projection import ROLLOUTS

STEPS = (parts.StepKind(plan_step.KIND, plan_step.start, plan_step.NAME),)


def core() -> parts.Core:
    return parts.Core((ROLLOUT, LIMITER, GROUP, PLAN_STEP), (ROLLOUTS,), STEPS)
