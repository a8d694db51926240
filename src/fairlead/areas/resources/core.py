"""What every process on a store must know of resources: the machine of one of them."""

from fairlead.area import parts
from fairlead.areas.resources.domain.reconcile.machine import RESOURCE


def core() -> parts.Core:
    return parts.Core(machines=(RESOURCE,))
