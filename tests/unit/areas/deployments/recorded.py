"""A platform that writes down what it is asked for, and answers as the cloud once did."""

from dataclasses import dataclass, field

from fairlead.areas.deployments.domain import messages, migration
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.infrastructure import CLOUDFORMATION, StackStatus
from fairlead.areas.deployments.domain.messages import StepStatus
from fairlead.engine import outbox


@dataclass
class RecordedPlatform:
    """What was asked of the outside, and under which tokens."""

    exists: bool = False
    statuses: list[str] = field(default_factory=list)
    """Of the stack at the start, one for each question; the last one stays."""

    impact: Impact = Impact.NOP
    fails: str = ""
    """The step that fails."""

    slow: bool = True
    """Whether a step is under way at first, and done when it is asked about again."""

    asked: list[str] = field(default_factory=list)
    """In the order of the first time."""

    tokens: set[str] = field(default_factory=set)
    """Under which something was asked: the cloud does it once for each."""

    beside: dict[str, str] = field(default_factory=dict)
    """What was stored with templates."""

    def handlers(self) -> outbox.Handlers:
        return {
            messages.StoreTemplate: outbox.Handler(self.store),
            messages.StabilizeStack: outbox.Handler(self.stabilize),
            messages.PerformStep: outbox.Handler(self.perform),
            messages.ObserveStep: outbox.Handler(self.observe),
            migration.UpsertDatabase: outbox.Handler(self.migrate),
            migration.CleanUpPermissions: outbox.Handler(self.migrate),
            migration.RunMigrations: outbox.Handler(self.migrate),
            migration.ObserveTask: outbox.Handler(self.observe_task),
        }

    async def migrate(
        self, effect: migration.Effect, about: outbox.EffectContext
    ) -> migration.StepDone | migration.StepUnderway | migration.StepFailed:
        match effect:
            case migration.UpsertDatabase():
                step = migration.UPSERT
            case migration.CleanUpPermissions(after_run=after):
                step = migration.CLEAN_AFTER if after else migration.CLEAN_BEFORE
            case _:
                step = migration.RUN
        # As a cloud would: the same request twice is the same task.
        self._under(f"database {step}", f"database {step} {about.idempotency_key}")
        if self.fails == f"database {step}":
            return migration.StepFailed(step, "the task exited with code 1")
        if step == migration.RUN and self.slow:
            return migration.StepUnderway(step, "arn:task")
        return migration.StepDone(step)

    async def observe_task(
        self, _: migration.ObserveTask, __: outbox.EffectContext
    ) -> migration.StepDone:
        return migration.StepDone(migration.RUN)

    async def store(
        self, effect: messages.StoreTemplate, _: outbox.EffectContext
    ) -> messages.ReportTemplate:
        self._under(f"store {effect.place.key}", effect.place.key)
        self.beside |= effect.beside
        return messages.ReportTemplate("no such bucket" if self.fails == "store" else "")

    async def stabilize(
        self, _: messages.StabilizeStack, __: outbox.EffectContext
    ) -> messages.ReportStackStatus:
        status = StackStatus.COMPLETE if self.exists else StackStatus.MISSING
        if self.statuses:
            more = len(self.statuses) > 1
            status = CLOUDFORMATION[self.statuses.pop(0) if more else self.statuses[0]]
        self._note(f"stack is {status.value}")
        return messages.ReportStackStatus(status)

    async def perform(
        self, effect: messages.PerformStep, _: outbox.EffectContext
    ) -> messages.ReportStep:
        self._under(effect.step, effect.token)
        if self.slow:
            return messages.ReportStep(effect.step, effect.attempt, StepStatus.ACTIVE)
        return self._end(effect)

    async def observe(
        self, effect: messages.ObserveStep, _: outbox.EffectContext
    ) -> messages.ReportStep:
        return self._end(effect.begun)

    def _end(self, begun: messages.PerformStep) -> messages.ReportStep:
        if begun.step == self.fails:
            failed = StepStatus.FAILED
            return messages.ReportStep(begun.step, begun.attempt, failed, "no room")
        evaluated = self.impact if begun.kind in {"PGEvaluate", "CFPlan"} else None
        done = StepStatus.DONE
        return messages.ReportStep(begun.step, begun.attempt, done, impact=evaluated)

    def _note(self, text: str) -> None:
        if text not in self.asked:
            self.asked.append(text)

    def _under(self, text: str, token: str) -> None:
        self._note(text)
        self.tokens.add(token)
