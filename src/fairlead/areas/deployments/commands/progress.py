"""How far a deployment has come, for `deploy --wait`."""

from collections.abc import Iterator

from fairlead.areas.deployments.domain.deployment.state import Deployment, Status, phase
from fairlead.console.nouns import Progress


def progress(state: Deployment) -> Progress:
    frame = tuple(_frame(state))
    see = f"fairlead get deployment {state.name} shows why"
    version = state.spec.version if state.spec else ""
    if state.status is Status.DONE:
        return Progress("done", f"{version} is deployed", see, frame)
    if state.status.over:
        why = state.reason.replace("\n", "; ")
        stack = f"stack/{state.spec.key}" if state.spec else "the stack"
        hint = f"{see}; mend it and deploy again, or retry: fairlead submit {stack} Retry"
        return Progress("failed", f"{state.status.value}: {why}", hint, frame)
    if state.waits_for.startswith("approval"):
        hint = f"go on with: fairlead submit deployment/{state.name} Approve"
        return Progress("paused", state.waits_for, hint, frame)
    doing = state.waits_for or phase(state) or state.status.value
    return Progress("working", doing, see, frame)


def _frame(state: Deployment) -> Iterator[str]:
    now = phase(state)
    yield f"{state.name}  {state.status.value}{f'  {now}' if now else ''}"
    if state.reason and not state.status.over:
        yield f"  {state.reason}"
    for run in state.steps:
        error = f"  {run.error}" if run.error else ""
        yield f"  {run.status.value:8}  {run.step.name}{error}"
    if state.impact is not None:
        yield f"  class {state.impact.value}"
        yield from (f"    {reason}" for reason in state.reasons)
