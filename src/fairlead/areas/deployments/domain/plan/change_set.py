"""What a CloudFormation change set asks of the versions that run (the rule behind CFPlan)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.areas.deployments.domain.classes import Impact, worst

TASK = "AWS::ECS::TaskDefinition"
SERVICE = "AWS::ECS::Service"

STATEFUL_TYPES = frozenset(
    {
        "AWS::DynamoDB::Table",
        "AWS::EFS::FileSystem",
        "AWS::RDS::DBCluster",
        "AWS::RDS::DBInstance",
        "AWS::S3::Bucket",
        "AWS::SecretsManager::Secret",
        "AWS::SNS::Topic",
        "AWS::SQS::Queue",
    }
)
"""What holds something that a replacement would lose."""


@dataclass(frozen=True, slots=True)
class Change:
    """One resource of a change set."""

    resource: str
    type: str
    action: str
    replacement: str = "False"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one database, or the infrastructure, asks of the versions that run."""

    impact: Impact
    reasons: tuple[str, ...] = ()


def changes(described: Iterable[Mapping[str, Any]]) -> tuple[Change, ...]:
    """From `Changes` of DescribeChangeSet; entries of other types, such as hooks, change none."""
    found = (each["ResourceChange"] for each in described if "ResourceChange" in each)
    return tuple(
        Change(
            str(each.get("LogicalResourceId", "")),
            str(each.get("ResourceType", "")),
            str(each.get("Action", "")),
            str(each.get("Replacement", "False")),
        )
        for each in found
    )


def classify(found: Sequence[Change]) -> Finding:
    """The worst of all changes, each with its reason."""
    judged = [(change, _impact(change)) for change in found]
    impact = worst(each for _, each in judged)
    return Finding(impact, tuple(_reason(change, each) for change, each in judged))


def _impact(change: Change) -> Impact:
    replaced = change.replacement != "False"
    # `Dynamic` says that CloudFormation itself does not know yet: it may well be a removal.
    if change.action in {"Remove", "Dynamic"} or (replaced and change.type in STATEFUL_TYPES):
        return Impact.DOWNTIME
    if change.action == "Modify" and _is_version(change, replaced=replaced):
        return Impact.NOP
    return Impact.BEFORE


def _is_version(change: Change, *, replaced: bool) -> bool:
    """A task definition is replaced by each version; a service that is replaced is another one."""
    return change.type == TASK or (change.type == SERVICE and not replaced)


def _reason(change: Change, impact: Impact) -> str:
    replaced = "" if change.replacement == "False" else f", replacement {change.replacement}"
    return f"{change.resource} ({change.type}): {change.action}{replaced}: {impact.value}"
