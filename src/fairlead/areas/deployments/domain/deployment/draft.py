"""What a deployment decides, gathered event by event, so that each part sees what came before."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.deployment.events import (
    Done,
    Error,
    Event,
    StackWaitFailure,
    Terminated,
)
from fairlead.areas.deployments.domain.deployment.state import Deployment, Status, evolve
from fairlead.areas.deployments.domain.messages import Outcome
from fairlead.areas.deployments.domain.spec import DeploymentSpec, deployment_stream, stack_stream
from fairlead.engine import children
from fairlead.engine.messages import (
    CancelTimer,
    Decision,
    Send,
    SetTimer,
    StreamName,
    Withdraw,
)

Starter = Callable[[StreamName, str, Mapping[str, object]], Send]
"""How a step of a kind begins that is a machine of its own; `area.parts.StepKind.start`."""

Starters = Mapping[str, Starter]
_ENDS = (Done, Error, StackWaitFailure, Terminated)


@dataclass(slots=True)
class Draft:
    """One decision in the making."""

    state: Deployment
    now: datetime
    starters: Starters
    events: list[Event] = field(default_factory=list)
    effects: list[object] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    timers: dict[str, SetTimer | CancelTimer] = field(default_factory=dict)
    withdraws: list[Withdraw] = field(default_factory=list)

    @property
    def spec(self) -> DeploymentSpec:
        """Of a deployment that was requested; all others are turned away before."""
        assert self.state.spec is not None
        return self.state.spec

    def record(self, event: Event) -> None:
        self.events.append(event)
        self.state = evolve(self.state, event)

    def wake(self, name: str, due: datetime, command: Any) -> None:
        self.timers[name] = SetTimer(name, due, command)

    def forget(self, *names: str) -> None:
        for name in names:
            self.timers[name] = CancelTimer(name)

    def report(self, outcome: Outcome, reason: str = "") -> None:
        """The stack hears of every end, whatever it is: it would wait for ever otherwise."""
        end = messages.ReportEnd(self.state.name, outcome, reason)
        self.sends.append(Send(stack_stream(self.spec.key), end))

    def decision(self) -> Decision:
        return Decision(
            tuple(self.events),
            tuple(self.effects),
            (*self.sends, *self._told()),
            tuple(self.timers.values()),
            tuple(self.withdraws),
        )

    def _told(self) -> tuple[Send, ...]:
        """Who asked for it hears of its end, whichever it is; also of one that was superseded."""
        if not any(isinstance(event, _ENDS) for event in self.events):
            return ()
        state = self.state
        done = state.status is Status.DONE
        child = deployment_stream(state.name)
        return children.report(state.parent, child, succeeded=done, reason=state.reason)
