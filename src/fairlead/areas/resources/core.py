"""What every process on a store must know of resources: the machines of one and of budgets."""

from collections.abc import Mapping

from fairlead import loading
from fairlead.area import parts
from fairlead.area.parts import StepKind
from fairlead.areas.resources.domain.budget import BUDGET
from fairlead.areas.resources.domain.reconcile.machine import RESOURCE
from fairlead.engine.messages import Send, StreamName

STEP = "resource"
_START = "fairlead.areas.resources.plan:start"


def core() -> parts.Core:
    return parts.Core(machines=(RESOURCE, BUDGET), steps=(StepKind(STEP, start, RESOURCE.name),))


def start(parent: StreamName, _key: str, words: Mapping[str, object]) -> Send:
    """Late, as reading a file takes what only few processes need."""
    return loading.make(_START, Send, parent, words)
