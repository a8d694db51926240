"""What every process on a store must know of resources: the machines of one and of budgets."""

from fairlead.area import parts
from fairlead.areas.resources.domain.budget import BUDGET
from fairlead.areas.resources.domain.reconcile.machine import RESOURCE


def core() -> parts.Core:
    return parts.Core(machines=(RESOURCE, BUDGET))
