"""From ports to handlers: how each effect of a rollout is performed, whatever the adapters are."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from fairlead import errors
from fairlead.domain.analysis import conditions, document, judge, verdict
from fairlead.domain.analysis.conditions import Phase
from fairlead.domain.rollouts import messages, ports
from fairlead.domain.rollouts.sight import Sight
from fairlead.domain.rollouts.spec import Check, Source, When
from fairlead.engine import outbox

MOST_TOLD = 500
"""Letters of a reason; an answer may be a page."""

LEAST_SAMPLES = 5
"""Moments that the judge waits for: of fewer, chance says more than the version does."""

PHASES = {
    verdict.Verdict.PASS: Phase.SUCCESSFUL,
    verdict.Verdict.MARGINAL: Phase.INCONCLUSIVE,
    verdict.Verdict.FAIL: Phase.FAILED,
    verdict.Verdict.INCONCLUSIVE: Phase.INCONCLUSIVE,
    verdict.Verdict.WAIT: None,
}


@dataclass(frozen=True, slots=True)
class World:
    """All ports of a rollout, and the clock by which sights are dated."""

    platform: ports.Platform
    router: ports.Router
    metrics: ports.Metrics
    gates: ports.Gates
    owner: ports.Owner
    now: Callable[[], datetime]


def handlers(world: World) -> outbox.Handlers:
    """How each effect is performed, for the engine."""
    # Writes are asked again by the machine when it looks; so they need not be tried for hours.
    write = timedelta(seconds=30)
    return {
        messages.EnsureVersion: outbox.Handler(_Writes(world).ensure, write, attempts=8),
        messages.SetRoute: outbox.Handler(_Writes(world).route, write, attempts=8),
        messages.RemoveCanary: outbox.Handler(_Writes(world).remove, write, attempts=8),
        messages.LetGo: outbox.Handler(_Writes(world).let_go, write, attempts=20),
        messages.Look: outbox.Handler(_Looks(world).look, attempts=3),
        messages.Measure: outbox.Handler(_Looks(world).measure, attempts=1),
        messages.Notify: outbox.Handler(_Tells(world).notify, attempts=5),
        messages.PublishStatus: outbox.Handler(_Tells(world).publish, attempts=20),
        messages.ResetOverride: outbox.Handler(_Tells(world).reset_override, attempts=20),
    }


async def sight(world: World, name: str) -> Sight:
    """Everything there is to see; dated before looking, so that it is never newer than it says."""
    at = world.now()
    pods = await world.platform.pods(name)
    shown = await world.router.shown(name)
    return Sight(at, pods.primary, pods.canary, shown, pods.baseline)


@dataclass(frozen=True, slots=True)
class _Writes:
    world: World

    async def ensure(self, effect: messages.EnsureVersion, _: outbox.Context) -> None:
        await self.world.platform.ensure(effect)

    async def route(self, effect: messages.SetRoute, _: outbox.Context) -> None:
        await self.world.router.route(effect)

    async def remove(self, effect: messages.RemoveCanary, _: outbox.Context) -> None:
        await self.world.platform.remove_canary(effect)

    async def let_go(self, effect: messages.LetGo, _: outbox.Context) -> None:
        await self.world.router.give_back(effect)
        await self.world.platform.let_go(effect)


@dataclass(frozen=True, slots=True)
class _Looks:
    world: World

    async def look(self, effect: messages.Look, _: outbox.Context) -> messages.Observed:
        return messages.Observed(await sight(self.world, effect.name))

    async def measure(self, effect: messages.Measure, _: outbox.Context) -> messages.Judged:
        # At once: one slow answer after the other would be later than the round is awaited.
        findings = await outbox.together(self._find(check, effect) for check in effect.checks)
        return messages.Judged(effect.ticket, tuple(findings))

    async def _find(self, check: Check, about: messages.Measure) -> messages.Finding:
        try:
            match check.source:
                case Source.GATE:
                    return await self._gate(check, about)
                case Source.JUDGE:
                    return await self._judge(check, about)
                case Source.WEB:
                    answer = await self.world.gates.read(check, about)
                case Source.QUERY:
                    answer = await self.world.metrics.ask(check, about)
        except errors.FairleadError as error:
            # What cannot be asked is an answer too: it is counted, and its limit ends it.
            answer = conditions.Unanswered(f"{error.message}; {error.hint}")
        if isinstance(answer, conditions.Silent) and self._is_early(check, about):
            return messages.Finding(check.name, None, f"no data yet: {answer.reason}"[:MOST_TOLD])
        return self._measured(check, answer)

    def _is_early(self, check: Check, about: messages.Measure) -> bool:
        """Whether the window of the check is not over: silence is no news until then."""
        return check.when is not When.START and self.world.now() < about.since + check.span

    @staticmethod
    def _measured(check: Check, answer: conditions.Answer) -> messages.Finding:
        found = conditions.measure(answer, check.criteria(), check.no_data)
        if found is None:
            why = answer.reason if isinstance(answer, conditions.Silent) else ""
            told = f"no data yet: {why}" if why else "no data yet"
            return messages.Finding(check.name, None, told[:MOST_TOLD])
        return messages.Finding(check.name, found.phase, found.reason[:MOST_TOLD])

    async def _gate(self, check: Check, about: messages.Measure) -> messages.Finding:
        is_open, said = await self.world.gates.is_open(check, about)
        told = f"{'open' if is_open else 'closed'}: {said}"[:MOST_TOLD]
        return messages.Finding(check.name, Phase.SUCCESSFUL if is_open else None, told)

    async def _judge(self, check: Check, about: messages.Measure) -> messages.Finding:
        samples = await self.world.metrics.compare(check, about)
        moments = _longest(samples)
        if moments < LEAST_SAMPLES:
            told = f"no data yet: {moments} of {LEAST_SAMPLES} samples"
            return messages.Finding(check.name, None, told)
        if _one_sided(samples) and not _has_policy(check):
            return self._measured(check, conditions.Silent("a side has no number"))
        case = document.read(
            {
                "config": check.judge,
                "control": samples.control,
                "experiment": samples.experiment,
            }
        )
        judged = judge.judge(case)
        return messages.Finding(check.name, PHASES[judged.verdict], judged.reason[:MOST_TOLD])


def _longest(samples: ports.Samples) -> int:
    sides = (*samples.control.values(), *samples.experiment.values())
    return max((len(side) for side in sides), default=0)


def _one_sided(samples: ports.Samples) -> bool:
    """Whether a side has no number at all: there is nothing to compare."""
    return any(
        all(value is None for series in side.values() for value in series)
        for side in (samples.control, samples.experiment)
    )


def _has_policy(check: Check) -> bool:
    """Whether a metric says itself what no data means."""
    case = document.read({"config": check.judge, "control": {}, "experiment": {}})
    return any(rule.no_data is not None for rule in case.rules)


@dataclass(frozen=True, slots=True)
class _Tells:
    world: World

    async def notify(self, effect: messages.Notify, _: outbox.Context) -> None:
        await self.world.gates.notify(effect)

    async def publish(self, effect: messages.PublishStatus, _: outbox.Context) -> None:
        await self.world.owner.publish(effect)

    async def reset_override(self, effect: messages.ResetOverride, _: outbox.Context) -> None:
        await self.world.owner.reset_override(effect.name)
