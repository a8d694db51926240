"""How far a version that was deployed has come, for `deploy --wait`."""

from collections.abc import Iterator

from fairlead.areas.rollouts import detail
from fairlead.areas.rollouts.domain import view
from fairlead.areas.rollouts.domain.declared_verbs import VERBS
from fairlead.areas.rollouts.domain.view import Phase
from fairlead.console.nouns import Progress

_AT_REST = (Phase.STABLE.value, Phase.ROLLED_BACK.value)
_WAITING = tuple(phase.value for phase in view.WAITING)
STEPS = {
    "done": "done",
    "shifting": "shifting",
    "here": "current",
    "ahead": "to come",
    "unreached": "not reached",
    "skipped": "skipped",
    "stopped": "rolled back here",
}
_COLUMN = max(map(len, STEPS.values()))
CHECKS = {
    "Successful": "passed",
    "Failed": "failed",
    "Error": "error",
    "Inconclusive": "inconclusive",
    "Running": "measuring",
    "Waiting": "waiting",
    "NoVerdict": "no verdict",
}


def progress(told: detail.Detail, revision: str) -> Progress:
    one, frame = told.rollout, tuple(_frame(told))
    see = f"fairlead get rollout {one.title} shows why"
    if one.phase == Phase.GONE.value or told.desired != revision:
        why = "another version was requested meanwhile"
        return Progress("replaced", why, see, frame)
    if one.phase in _WAITING:
        fit = [verb for verb in told.verbs if not VERBS[verb].deletes]
        verbs = ", ".join(f"fairlead {verb} {one.title}" for verb in fit)
        return Progress("paused", one.sentence, f"go on with one of: {verbs}", frame)
    if one.phase not in _AT_REST:
        return Progress("working", one.sentence, see, frame)
    if told.stable == revision:
        return Progress("done", f"{one.stable} has all traffic", see, frame)
    hint = f"{see}; deploy a better one, or fairlead retry {one.title}"
    return Progress("failed", f"rolled back to {one.stable}: {one.why}", hint, frame)


def result(check: detail.CheckSheet) -> str:
    """In the words of the page: one that is measured on is good so far, or not known yet."""
    if (check.phase, check.last) == ("Running", "Successful"):
        return "good so far"
    return CHECKS.get(check.phase, check.phase)


def _frame(told: detail.Detail) -> Iterator[str]:
    one = told.rollout
    yield f"{one.title}  {one.phase}  {_weights(told)}"
    # At rest the plan is that of the next run; what came of this one is the sentence.
    if one.canary or any(step.state == "stopped" for step in told.plan):
        for step in told.plan:
            waits = "  needs approval" if step.approve else ""
            yield f"  {STEPS[step.state]:{_COLUMN}}  {step.number}  {step.weight:3} %{waits}"
        for check in told.checks:
            yield f"  {result(check):{_COLUMN}}  {check.name}: {check.reason}"
    yield one.sentence
    if told.unserved:
        yield told.unserved


def _weights(told: detail.Detail) -> str:
    one = told.rollout
    if not one.canary:
        return f"{one.primary} {one.primary_weight} %"
    return f"{one.primary} {one.primary_weight} %, {one.canary} {one.canary_weight} %"
