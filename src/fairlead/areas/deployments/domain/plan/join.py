"""EvalJoin: of all that was found the worst decides, unless a person said otherwise."""

from collections.abc import Iterable

from fairlead.areas.deployments.domain.classes import Impact, worst
from fairlead.areas.deployments.domain.plan.change_set import Finding
from fairlead.areas.deployments.domain.spec import DeploymentSpec


def join(
    spec: DeploymentSpec, findings: Iterable[Finding], migrations: Impact = Impact.NOP
) -> Finding:
    """The class of a deployment with a reason for each thing that had a say."""
    every = tuple(findings)
    impact = worst(each.impact for each in every)
    reasons = [reason for each in every for reason in each.reasons]
    if spec.policy.at_least > impact:
        impact = spec.policy.at_least
        reasons.append(f"the environment asks for at least {impact.value}")
    override = spec.override
    if override is not None and override.impact is not impact and not _skips(spec, migrations):
        reasons.append(f"{override.by} set {override.impact.value} instead: {override.why}")
        impact = override.impact
    return Finding(impact, tuple(reasons))


def question(spec: DeploymentSpec, impact: Impact, migrations: Impact = Impact.NOP) -> str:
    """What a person is asked before the plan of this class runs; empty: nothing."""
    if _skips(spec, migrations):
        return f"NOP would skip pending migrations, found {impact.value}"
    if spec.expects is not None and spec.expects is not impact:
        return f"{spec.expects.value} was approved, found {impact.value}"
    return ""


def _skips(spec: DeploymentSpec, migrations: Impact) -> bool:
    """The plan of NOP migrates nothing: the version would meet a schema that it does not know."""
    nothing = spec.override is not None and spec.override.impact is Impact.NOP
    return nothing and migrations is not Impact.NOP
