"""What every process on a store must know of content: its releases, and the step of a plan."""

from collections.abc import Mapping

from fairlead import loading
from fairlead.area import parts
from fairlead.areas.content.domain.release.machine import RELEASE
from fairlead.engine.messages import Send, StreamName

STEP = "content"
_START = "fairlead.areas.content.release.rules:start"


def core() -> parts.Core:
    return parts.Core(machines=(RELEASE,), steps=(parts.StepKind(STEP, start, RELEASE.name),))


def start(parent: StreamName, _key: str, words: Mapping[str, object]) -> Send:
    """Late, as reading a release takes what only few processes need."""
    return loading.make(_START, Send, parent, words)
