"""What every process on a store must know of rollouts."""

from fairlead.area import parts
from fairlead.areas.rollouts.domain.group import GROUP
from fairlead.areas.rollouts.domain.limiter import LIMITER
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.areas.rollouts.projection import ROLLOUTS


def core() -> parts.Core:
    return parts.Core(machines=(ROLLOUT, LIMITER, GROUP), projections=(ROLLOUTS,))
