"""A deployment from git: gather, record the operation, render, apply, and look again.

Declare ──► Gathering ──► (operation recorded) ──► Rendering ──► Applying ──► Waiting ──► Rendering
   └ no valid work: Refused      a failure anywhere ──► told as ErrorOccurred ──► Waiting
Delete ───► (the pass under way ends) ──► Removing ──► Gone
"""

import datetime as dt
import hashlib
import uuid
from dataclasses import dataclass, field

from fairlead import errors
from fairlead.areas.gitops.domain import messages, valid_work
from fairlead.areas.gitops.domain.deployment import events as happened
from fairlead.areas.gitops.domain.deployment import view
from fairlead.areas.gitops.domain.deployment.state import Deployment, Phase, evolve
from fairlead.areas.gitops.domain.messages import Command, Effect, Intent, Operation
from fairlead.engine import machine
from fairlead.engine.messages import CancelTimer, Decision, SetTimer, Withdraw
from fairlead.kubernetes.messages import PublishStatus, RecordEvent, ReleaseObject, Subject

MACHINE = "gitops-deployment"
DEADLINE = dt.timedelta(minutes=5)
"""An answer that has not come by then is told as missing."""

_TIMER = "wake"
_RETRY = (dt.timedelta(seconds=5), dt.timedelta(minutes=3))
_MOVING = (dt.timedelta(seconds=2), dt.timedelta(minutes=1))
_POLL = (dt.timedelta(minutes=3), dt.timedelta(minutes=3))
_DOUBLINGS = 20
_OPERATIONS = uuid.UUID("0d4c1d0e-0f0e-5b0a-9d5c-6a1f0c6a7e11")
_NOT_SYNCED_BY_HAND = "Syncing a GitOpsDeployment with Automated sync policy is not allowed"


def decide(state: Deployment, command: Command, now: dt.datetime) -> Decision:
    draft = _Draft(state, now)
    if state.phase is Phase.GONE:
        return Decision()
    match command:
        case messages.Declare():
            _declare(draft, command)
        case messages.Delete(subject):
            _delete(draft, subject)
        case messages.Adopt(round_, inventory):
            if round_ > state.round:
                draft.record(happened.StatusAdopted(round_, inventory))
        case messages.Sync(by):
            _sync(draft, by)
        case _:
            # Any other is late: it answers what nobody waits for any more.
            if command.order == state.order:
                _reported(draft, command)
    return draft.decision()


def _reported(draft: "_Draft", command: messages.Answer | messages.Wake | messages.Expire) -> None:
    match command:
        case messages.Wake():
            _woken(draft)
        case messages.Expire():
            if draft.state.is_asking:
                minutes = int(DEADLINE.total_seconds() // 60)
                late = f"the agent has not answered for {minutes} minutes"
                draft.record(happened.AnswerOverdue(late))
        case _:
            if draft.state.is_asking:
                _answered(draft, command)


def _declare(draft: "_Draft", told: messages.Declare) -> None:
    state = draft.state
    if state.removing or (told.intent, told.generation) == (state.intent, state.generation):
        return
    draft.record(happened.IntentChanged(told.subject, told.generation, told.intent))
    # One that is being applied is not overtaken: its end begins the next.
    if draft.state.phase is not Phase.APPLYING:
        _start(draft, told.intent)


def _start(draft: "_Draft", intent: Intent) -> None:
    if refused := refusal(intent):
        draft.refuse(refused)
    else:
        draft.gather()


def refusal(intent: Intent) -> str:
    """Why it is no valid work; empty for what is."""
    found = [*valid_work.problems(intent), *valid_work.unserved(intent)]
    return "; ".join(reason if at in reason else f"{at}: {reason}" for at, reason in found)


def _delete(draft: "_Draft", subject: Subject | None) -> None:
    if draft.state.removing:
        return
    draft.record(happened.RemovalRequested(subject))
    if draft.state.phase is not Phase.APPLYING:
        draft.remove()


def _sync(draft: "_Draft", by: str) -> None:
    state = draft.state
    if state.removing or state.intent is None or state.phase in (Phase.IDLE, Phase.REFUSED):
        raise errors.Rejected("nothing to sync", hint="its conditions say why")
    if state.intent.type != messages.MANUAL:
        raise errors.Rejected(_NOT_SYNCED_BY_HAND, hint="push a commit, or set spec.type: manual")
    draft.record(happened.SyncRequested(by))
    if state.phase is Phase.WAITING:
        draft.begin()


def _woken(draft: "_Draft") -> None:
    if draft.state.phase not in (Phase.WAITING, Phase.STUCK):
        return
    if draft.state.removing:
        draft.remove()
    else:
        draft.begin(fresh=False)


def _answered(draft: "_Draft", command: messages.Answer) -> None:
    match draft.state.phase, command:
        case _, messages.Failed(_, error):
            gathers = draft.state.phase is Phase.GATHERING
            draft.fail(error)
            if not gathers:
                _next(draft)
        case Phase.GATHERING, messages.Gathered():
            _gathered(draft, command)
        case Phase.RENDERING, messages.Rendered():
            draft.apply(command)
        case Phase.APPLYING, messages.Applied(_, objects):
            draft.complete(objects)
            _next(draft)
        case Phase.REMOVING, messages.Removed():
            draft.leave()
        case _:
            # The answer to another effect than the one that is asked for: nobody's.
            pass


def _gathered(draft: "_Draft", found: messages.Gathered) -> None:
    if not found.terminating:
        draft.operate(found.workspace_id, found.instance_id)
        if draft.state.removing:
            draft.delete()
        else:
            draft.begin()
    elif draft.state.removing:
        # All that it holds goes with it.
        draft.leave()
    else:
        draft.fail("the namespace is being deleted")


def _next(draft: "_Draft") -> None:
    """What was asked for while a pass was under way."""
    state = draft.state
    if state.phase is not Phase.WAITING:
        return
    if state.removing:
        draft.remove()
    elif state.intent is not None and state.generation != state.operated:
        _start(draft, state.intent)
    elif state.sync_asked and not state.error:
        draft.begin()


@dataclass(slots=True)
class _Draft:
    """One decision in the making."""

    state: Deployment
    now: dt.datetime
    events: list[happened.Event] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    timer: SetTimer | CancelTimer | None = None
    withdraws: list[Withdraw] = field(default_factory=list)
    before: Deployment = field(init=False)

    def __post_init__(self) -> None:
        self.before = self.state

    def record(self, event: happened.Event) -> None:
        self.events.append(event)
        self.state = evolve(self.state, event)

    def refuse(self, why: str) -> None:
        self._drop()
        self.record(happened.IntentRefused(why))

    def gather(self) -> None:
        self._drop()
        self.record(happened.GatheringStarted(self._next))
        assert self.state.subject is not None
        self._ask(messages.Gather(self.state.order, self.state.subject))

    def operate(self, workspace_id: str, instance_id: str) -> None:
        assert self.state.subject is not None
        uid = self.state.subject.uid
        number = f"{uid} {self.state.operations + 1}"
        made = Operation(
            operation_id=str(uuid.uuid5(_OPERATIONS, number)),
            instance_id=instance_id,
            owner=workspace_id,
            resource=uid,
            resource_type=messages.APPLICATION,
        )
        self.record(happened.OperationRecorded(workspace_id, uid, made))

    def begin(self, *, fresh: bool = True) -> None:
        state = self.state
        if state.operation is None or state.operated != state.generation:
            self.gather()
            return
        self.record(happened.PassStarted(self._next, self.now, fresh))
        assert state.subject is not None
        assert state.intent is not None
        self._ask(messages.Render(self.state.order, state.operation, state.subject, state.intent))

    def apply(self, found: messages.Rendered) -> None:
        state = self.state
        assert state.subject is not None
        assert state.intent is not None
        assert state.operation is not None
        dry = state.intent.type == messages.MANUAL and not state.sync_asked
        held = {each.place for each in found.objects}
        obsolete = tuple(each for each in state.inventory if each.place not in held)
        if obsolete and not found.objects:
            # One wrong push, and all would be gone: an empty revision is nobody's intent.
            self.fail(
                f"{found.revision[:12]} has no objects, and {len(obsolete)} are deployed:"
                " delete the GitOpsDeployment to delete them"
            )
            return
        told = happened.RevisionRendered(self._next, found.revision, found.objects, dry)
        self.record(told)
        self._ask(
            messages.Apply(
                order=self.state.order,
                operation=state.operation,
                subject=state.subject,
                intent=state.intent,
                revision=found.revision,
                obsolete=obsolete,
                dry=dry,
            )
        )

    def complete(self, objects: tuple[messages.Observed, ...]) -> None:
        moving = any(each.health is messages.Health.PROGRESSING for each in objects)
        until = self._wake(_MOVING if moving else _POLL)
        self.record(happened.PassCompleted(objects, self.now, until))

    def fail(self, error: str) -> None:
        self.record(happened.PassFailed(error, self.now, self._wake(_RETRY)))

    def remove(self) -> None:
        """What was never applied needs no agent to go."""
        self._drop()
        state = self.state
        if not state.inventory or state.subject is None:
            self.leave()
        elif state.operation is None:
            self.gather()
        else:
            if state.phase is not Phase.STUCK:
                self.operate(state.workspace_id, state.operation.instance_id)
            self.delete()

    def delete(self) -> None:
        self.record(happened.RemovalStarted(self._next))
        state = self.state
        assert state.operation is not None
        assert state.subject is not None
        self._ask(messages.Remove(state.order, state.operation, state.subject, state.inventory))

    def leave(self) -> None:
        self._drop()
        subject = self.state.subject
        self.record(happened.Gone())
        if subject is not None:
            self.effects.append(ReleaseObject(subject, messages.FINALIZER))

    def decision(self) -> Decision:
        if self.events:
            self._tell()
        return Decision(
            tuple(self.events),
            tuple(self.effects),
            (),
            (self.timer,) if self.timer else (),
            tuple(self.withdraws),
        )

    def _tell(self) -> None:
        """The object's status where it changed, and an Event where something went wrong."""
        state = self.state
        if state.subject is None or state.intent is None or state.phase is Phase.GONE:
            return
        news = view.of(state)
        if news != view.of(self.before):
            self.effects.append(
                PublishStatus(
                    state.subject, state.round, state.generation, news.status, news.conditions
                )
            )
        if state.error and state.error != self.before.error:
            self.effects.append(RecordEvent(state.subject, view.ERROR, state.error, warning=True))

    @property
    def _next(self) -> int:
        return self.state.order + 1

    def _ask(self, effect: Effect) -> None:
        self.effects.append(effect)
        self.timer = SetTimer(_TIMER, self.now + DEADLINE, messages.Expire(self.state.order))

    def _wake(self, pace: tuple[dt.timedelta, dt.timedelta]) -> dt.datetime:
        uid = self.state.subject.uid if self.state.subject else ""
        due = self.now + waited(pace, self.state.tries, f"{uid} {self._next}")
        self.timer = SetTimer(_TIMER, due, messages.Wake(self._next))
        return due

    def _drop(self) -> None:
        """Of what was asked for before, no answer is awaited any more."""
        if self.state.is_asking:
            for effect in (messages.Gather, messages.Render):
                self.withdraws.append(Withdraw(effect))
        self.timer = CancelTimer(_TIMER)


def waited(pace: tuple[dt.timedelta, dt.timedelta], tries: int, salt: str) -> dt.timedelta:
    """Doubling, give or take a quarter by the salt, so that nobody comes back in step."""
    first, longest = pace
    number = int.from_bytes(hashlib.sha256(salt.encode()).digest()[:4])
    span: dt.timedelta = min(first * 2 ** min(tries, _DOUBLINGS), longest)
    return span * (0.75 + 0.5 * number / 0xFFFFFFFF)


DEPLOYMENT: machine.Machine[Deployment, Command, happened.Event] = machine.Machine(
    name=MACHINE,
    initial=Deployment(),
    decide=decide,
    evolve=evolve,
    vocabulary=machine.Vocabulary(Deployment, Command, happened.Event, Effect),
    ended=lambda state: state.phase is Phase.GONE,
    attributes=machine.Attributes(
        {
            "phase": tuple(each.value for each in Phase),
            "workspace": str,
            "deployment": str,
            "operation": str,
        },
        lambda state: {
            "phase": state.phase.value,
            "workspace": state.workspace_id,
            "deployment": state.gitops_depl_id,
            "operation": state.operation.operation_id if state.operation else "",
        },
    ),
)
