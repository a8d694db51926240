"""A resource at every point of its life, reached by what really leads there."""

import datetime as dt
from dataclasses import replace
from typing import Any

from fairlead.areas.resources.domain.reconcile import messages
from fairlead.areas.resources.domain.reconcile.events import Event
from fairlead.areas.resources.domain.reconcile.machine import RESOURCE
from fairlead.areas.resources.domain.reconcile.messages import (
    Declared,
    ErrorClass,
    Failure,
    Observation,
    Operation,
    Plan,
    Progress,
    Reason,
    Style,
)
from fairlead.areas.resources.domain.reconcile.state import Resource
from fairlead.engine.messages import Cancel, Decision, SetTimer
from fairlead.engine.testing import START
from fairlead.kubernetes.messages import Subject

SECOND = dt.timedelta(seconds=1)
HOUR = dt.timedelta(hours=1)
ID = "/subscriptions/s/resourceGroups/g/providers/Acme.Toys/sets/a"
DECLARED = Declared("Acme.Toys/sets", "2026-01-01", ID, {"tags": {"tag1": "value"}})
OTHER = replace(DECLARED, properties={"tags": {"tag1": "new"}})
APPLY = messages.Apply(DECLARED, "rita")
SEALED = {"tags": {"tag1": "value"}}
SAME = Observation(exists=True, plan=None, sealed=SEALED)
CREATE = Plan("PUT", (Reason("", "it does not exist"),), "create")
PATCH = Plan("PATCH", (Reason("tags.tag1", "drifted: it is 'old'"),), "patch")
ABSENT = Observation(exists=False, plan=CREATE, sealed=SEALED)
DIFFERENT = Observation(exists=True, plan=PATCH, sealed=SEALED, settled={"tags.tag1": "old"})
BUSY = replace(SAME, busy="Updating")
BROKEN = replace(SAME, broken="the API could not bring it there: Failed")
OPERATION = Operation(Style.AZURE, "https://api.example/operations/1")
ORIGIN = messages.Origin(Subject("cloudresources.fairlead.dev", "shop", "a", "u-1"), 4)
IN_CLUSTER = replace(DECLARED, origin=ORIGIN)
MEMORY = messages.Memory(
    replace(DECLARED, properties={}), messages.LastApplied(SEALED), ours=True, order=7, generation=2
)
THROTTLED = Failure(ErrorClass.THROTTLED, "too many requests", 90 * SECOND)
REFUSED = Failure(ErrorClass.REFUSED, "BadRequest: no such size")


class Story:
    """A resource that is told one thing after the other, on a clock that it winds."""

    def __init__(self) -> None:
        self.state, self.now = RESOURCE.initial, START
        self.events: list[Event] = []
        self.effects: list[Any] = []
        self.last = Decision()
        self.timer: SetTimer | None = None

    def tell(self, *commands: Any) -> "Story":
        for each in commands:
            self.last = RESOURCE.decide(self.state, each, self.now)
            # The engine keeps nothing of a decision without an event.
            assert self.last.events or not self.last
            for event in self.last.events:
                self.state = RESOURCE.evolve(self.state, event)  # type: ignore[arg-type]  # of this machine
                self.events.append(event)  # type: ignore[arg-type]  # of this machine
            self.effects += self.last.effects
            for timer in self.last.timers:
                self.timer = timer if isinstance(timer, SetTimer) else None
        return self

    def seen(self, observation: Observation) -> "Story":
        return self.tell(messages.Seen(self.state.order, observation))

    def accepted(self, operation: Operation | None = None) -> "Story":
        return self.tell(messages.Accepted(self.state.order, operation))

    def polled(self, progress: Progress, failure: Failure | None = None) -> "Story":
        return self.tell(messages.Polled(self.state.order, progress, failure))

    def failed(self, failure: Failure) -> "Story":
        return self.tell(messages.Failed(self.state.order, failure))

    def woken(self) -> "Story":
        """The moment comes that it waits for."""
        assert self.timer is not None
        timer, self.timer = self.timer, None
        self.now = max(self.now, timer.due)
        return self.tell(timer.command)

    @property
    def names(self) -> list[str]:
        return [type(each).__name__ for each in self.events]

    @property
    def asked(self) -> list[str]:
        return [type(each).__name__ for each in self.effects]


def reading(first: messages.Apply = APPLY) -> Story:
    return Story().tell(first)


def writing() -> Story:
    return reading().seen(ABSENT)


def operating() -> Story:
    return writing().accepted(OPERATION)


def verifying() -> Story:
    return writing().accepted()


def ready() -> Story:
    return verifying().seen(SAME)


def deleting() -> Story:
    return ready().tell(messages.Remove("rita")).seen(SAME)


def states() -> dict[str, Story]:
    return {
        "idle": Story(),
        "reading": reading(),
        "writing": writing(),
        "writing, changed": writing().tell(messages.Apply(OTHER)),
        "writing, removed": writing().tell(messages.Remove()),
        "operating": operating(),
        "operating, changed": operating().tell(messages.Apply(OTHER)),
        "polling": operating().woken(),
        "polling, removed": operating().woken().tell(messages.Remove()),
        "verifying": verifying(),
        "verifying, waits": verifying().seen(DIFFERENT),
        "ready": ready(),
        "waiting": writing().failed(THROTTLED),
        "failed": writing().failed(REFUSED),
        "removing": ready().tell(messages.Remove()),
        "removing, waits": ready().tell(messages.Remove()).seen(BUSY),
        "deleting": deleting(),
        "deleting, operates": deleting().accepted(OPERATION),
        "deleting, polls": deleting().accepted(OPERATION).woken(),
        "deleted": deleting().accepted(),
        "deleted, waits": deleting().accepted().seen(SAME),
        "gone": deleting().accepted().seen(ABSENT),
    }


def commands(state: Resource) -> dict[str, Any]:
    """One of each that a resource can be told, with the order that it waits for."""
    order = state.order
    return {
        "apply": APPLY,
        "apply other": messages.Apply(replace(OTHER, policies={"tags": "ignore"})),
        "adopt": messages.Adopt(MEMORY),
        "remove": messages.Remove("paul"),
        "remove object": messages.Remove(origin=ORIGIN),
        "refresh": messages.Refresh(),
        "begin": messages.Begin(order),
        "cancel": Cancel("no more"),
        "same": messages.Seen(order, SAME),
        "different": messages.Seen(order, DIFFERENT),
        "absent": messages.Seen(order, ABSENT),
        "busy": messages.Seen(order, BUSY),
        "broken": messages.Seen(order, BROKEN),
        "seen late": messages.Seen(order - 1, DIFFERENT),
        "accepted": messages.Accepted(order),
        "operation": messages.Accepted(order, OPERATION, SECOND),
        "accepted late": messages.Accepted(order - 1),
        "outdated": messages.Outdated(order),
        "running": messages.Polled(order, Progress.RUNNING),
        "succeeded": messages.Polled(order, Progress.SUCCEEDED),
        "ended badly": messages.Polled(order, Progress.FAILED, REFUSED),
        "unknown": messages.Polled(order, Progress.UNKNOWN),
        "throttled": messages.Failed(order, THROTTLED),
        "refused": messages.Failed(order, REFUSED),
        "wake": messages.Wake(order),
        "wake late": messages.Wake(order - 1),
    }
