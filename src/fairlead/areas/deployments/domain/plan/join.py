"""EvalJoin: of all that was found the worst decides, unless a person said otherwise."""

from collections.abc import Iterable

from fairlead.areas.deployments.domain.classes import Impact, worst
from fairlead.areas.deployments.domain.plan.change_set import Finding
from fairlead.areas.deployments.domain.spec import DeploymentSpec


def join(spec: DeploymentSpec, findings: Iterable[Finding]) -> Finding:
    """The class of a deployment with a reason for each thing that had a say."""
    every = tuple(findings)
    impact = worst(each.impact for each in every)
    reasons = [reason for each in every for reason in each.reasons]
    if spec.policy.at_least > impact:
        impact = spec.policy.at_least
        reasons.append(f"the environment asks for at least {impact.value}")
    override = spec.override
    if override is not None and override.impact is not impact:
        reasons.append(f"{override.by} set {override.impact.value} instead: {override.why}")
        impact = override.impact
    return Finding(impact, tuple(reasons))


def surprises(spec: DeploymentSpec, impact: Impact) -> bool:
    """Whether the plan that was approved was of another class."""
    return spec.expects is not None and spec.expects is not impact
