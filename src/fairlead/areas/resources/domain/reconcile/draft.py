"""What a resource decides, gathered event by event, so that each part sees what came before."""

import datetime as dt
import hashlib
import re
from dataclasses import dataclass, field

from fairlead.areas.resources.domain import references
from fairlead.areas.resources.domain.reconcile import events as happened
from fairlead.areas.resources.domain.reconcile import messages, pace, publishing
from fairlead.areas.resources.domain.reconcile.events import Event
from fairlead.areas.resources.domain.reconcile.messages import (
    Declared,
    ErrorClass,
    Failure,
    Observation,
    Plan,
)
from fairlead.areas.resources.domain.reconcile.state import Resource, below, evolve
from fairlead.engine.children import report
from fairlead.engine.messages import (
    CancelTimer,
    Decision,
    Send,
    SetTimer,
    StreamName,
    Withdraw,
    stream_name,
)

MACHINE = "resource"
DEADLINE = dt.timedelta(hours=4)
"""An operation that has not ended by then is no longer asked for."""

LOOKED_FOR = dt.timedelta(minutes=1)
"""So long after a creation of unknown end no other one is sent."""

VERIFICATIONS = 5
"""What reads show after so many tries is believed: an API may answer with what was."""

_TIMER = "wake"
_PLAIN = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_NAME = 60
_PARTS_OF_AN_OBJECT = 3


def stream(id_: str) -> StreamName:
    """Readable, and one for each id; clouds do not tell ids apart by their case."""
    folded = id_.strip("/").lower()
    name = _PLAIN.sub("-", folded.rpartition("/")[2])[:_LONGEST_NAME]
    return stream_name(MACHINE, f"{hashlib.sha256(folded.encode()).hexdigest()[:24]}-{name}")


def is_stream(name: str, id_: str, origin: messages.Origin | None = None) -> bool:
    """Whether it stands for this resource: for its id, or for an object of a cluster."""
    if origin is not None:
        return name.endswith(f"/{origin.subject.uid}")
    return name == stream(id_) or name.count("/") == _PARTS_OF_AN_OBJECT


@dataclass(slots=True)
class Draft:
    """One decision in the making."""

    state: Resource
    now: dt.datetime
    events: list[Event] = field(default_factory=list)
    effects: list[messages.Effect] = field(default_factory=list)
    timer: SetTimer | CancelTimer | None = None
    withdraws: list[Withdraw] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    before: Resource = field(init=False)

    def __post_init__(self) -> None:
        self.before = self.state

    @property
    def declared(self) -> Declared:
        assert self.state.declared is not None
        return self.state.declared

    @property
    def next(self) -> int:
        return self.state.order + 1

    def record(self, event: Event) -> None:
        self.events.append(event)
        self.state = evolve(self.state, event)

    def read(self) -> None:
        """Of what was asked for before, no answer is awaited any more."""
        self._drop()
        self.record(happened.ReadStarted(self.next))
        state, compares = self.state, not self.state.removing
        self.effects.append(messages.Read(state.order, self.declared, state.last, compares))

    def write(self, plan: Plan, observation: Observation) -> None:
        # By which the plan was made; that of now has this very attempt in it.
        last = self.state.last
        self.record(happened.WriteStarted(self.next, plan, observation.sealed, self.now))
        order = self.state.order
        self.effects.append(messages.Write(order, self.declared, last, plan.digest))

    def follow(self, parent: str) -> None:
        """For one plan at a time; an earlier one hears that it is no longer waited for."""
        if parent != self.state.parent:
            self.report(succeeded=False, reason="another plan asked for it")
            self.record(happened.Followed(parent))

    def report(self, *, succeeded: bool, reason: str = "") -> None:
        """To whoever waits, once."""
        if self.state.parent:
            child = stream(self.declared.id)
            self.sends += report(self.state.parent, child, succeeded=succeeded, reason=reason)
            self.record(happened.Followed(""))

    def name(self, given: str) -> None:
        if given and given != self.state.last.given:
            self.record(happened.Named(given))

    def delete(self) -> None:
        self.record(happened.DeletionStarted(self.next, self.now))
        told = self.declared
        given = self.state.last.given
        asked = messages.Delete(self.state.order, told.type, told.version, told.id, given)
        self.effects.append(asked)

    def poll(self) -> None:
        self.record(happened.PollStarted(self.next))
        assert self.state.operation is not None
        named = tuple(sorted(set(references.names(self.declared.properties))))
        asked = messages.Poll(self.state.order, self.declared.id, self.state.operation, named)
        self.effects.append(asked)

    def operate(self, operation: messages.Operation, asked: dt.timedelta | None) -> None:
        until = self._wake(pace.waited(pace.POLL, 0, self._salt, asked))
        deadline = self.now + DEADLINE
        self.record(happened.OperationStarted(self.next, operation, until, deadline))

    def await_operation(
        self, asked: dt.timedelta | None = None, failure: Failure | None = None
    ) -> None:
        tries = self.state.tries
        if failure is None:
            span = pace.waited(pace.POLL, tries, self._salt, asked)
        else:
            span = pace.after(failure, tries, self._salt)
        self.record(happened.OperationAwaited(self.next, self._wake(span), failure))

    def await_verification(
        self, why: str, failure: Failure | None = None, *, is_busy: bool = False
    ) -> None:
        tries = self.state.tries
        if failure is None:
            span = pace.waited(pace.VERIFY, tries, self._salt)
        else:
            span = pace.after(failure, tries, self._salt)
        until, differs = self._wake(span), failure is None and not is_busy
        self.record(happened.VerificationAwaited(self.next, until, why, differs))

    def back_off(self, failure: Failure) -> None:
        until = self._wake(pace.after(failure, self.state.tries, self._salt))
        self.record(happened.BackedOff(self.next, failure, until))
        if failure.kind is ErrorClass.REFUSED:
            self.report(succeeded=False, reason=failure.message)

    def settle(self, observation: Observation) -> None:
        """Of what was written, the API shows something else: that is what it made of it."""
        plan = self.state.sent.plan if self.state.sent else None
        assert plan is not None
        paths = tuple(each.path for each in plan.reasons)
        made = {path: one for path, one in observation.settled.items() if below(path, paths)}
        self.record(happened.Settled({**self.state.last.settled, **made}, paths))

    def converge(self, observation: Observation) -> None:
        known = observation.sealed == self.state.last.applied
        every = self.declared.refresh
        until = None if every is None else self._wake(pace.jittered(every, self._salt))
        sealed = None if known else observation.sealed
        self.record(happened.Converged(self.next, sealed, until, observation.shown))
        self.report(succeeded=True)

    def leave(self, *, released: bool) -> None:
        self._drop()
        self.report(succeeded=False, reason="it was removed")
        self.record(happened.Gone(released))

    def decision(self) -> Decision:
        return Decision(
            tuple(self.events),
            (*self.effects, *publishing.told(self.before, self.state)),
            tuple(self.sends),
            (self.timer,) if self.timer else (),
            tuple(self.withdraws),
        )

    @property
    def _salt(self) -> str:
        """So that many resources that failed together do not come back together."""
        return f"{self.declared.id} {self.next}"

    def _wake(self, span: dt.timedelta) -> dt.datetime:
        due = self.now + span
        self.timer = SetTimer(_TIMER, due, messages.Wake(self.next))
        return due

    def _drop(self) -> None:
        if self.state.until is not None:
            self.timer = CancelTimer(_TIMER)
        elif self.state.is_asking:
            self.withdraws.append(Withdraw(messages.Read))


def busy(why: str) -> Failure:
    return Failure(ErrorClass.BUSY, why)


def refused(why: str) -> Failure:
    return Failure(ErrorClass.REFUSED, why)
