"""What every process on a store must know of GitOps: the machine of one deployment."""

from fairlead.area import parts
from fairlead.areas.gitops.domain.deployment.machine import DEPLOYMENT


def core() -> parts.Core:
    return parts.Core(machines=(DEPLOYMENT,))
