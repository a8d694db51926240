"""What rollouts bring: canaries of a workload on this machine and on Kubernetes."""

from fairlead.area import Area, Link
from fairlead.areas.rollouts.domain import declared_verbs

_HERE = "fairlead.areas.rollouts"

ROLLOUTS = Area(
    name="rollouts",
    core=f"{_HERE}.core:core",
    nouns={
        "rollout": f"{_HERE}.commands.nouns:ROLLOUT",
        "rollouts": f"{_HERE}.commands.nouns:ROLLOUT",
    },
    verbs=declared_verbs.VERBS,
    navigation=(Link("Rollouts", "/"),),
    platform=f"{_HERE}.host:platform",
    operator=f"{_HERE}.kubernetes.wiring:operator_part",
    web=f"{_HERE}.web:mount",
)
