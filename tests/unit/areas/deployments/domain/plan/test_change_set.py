"""What a change set asks of the versions that run."""

from typing import Any

import pytest

from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.plan.change_set import changes, classify


def change(type_: str, action: str = "Modify", replacement: str = "False") -> dict[str, Any]:
    described = {"LogicalResourceId": "It", "ResourceType": type_, "Action": action}
    return {"Type": "Resource", "ResourceChange": {**described, "Replacement": replacement}}


@pytest.mark.requirement("deployer P-gap")
@pytest.mark.parametrize(
    ("described", "impact"),
    [
        ([], Impact.NOP),
        ([change("AWS::ECS::TaskDefinition", replacement="True")], Impact.NOP),
        ([change("AWS::ECS::Service")], Impact.NOP),
        ([change("AWS::ECS::Service", replacement="True")], Impact.BEFORE),
        ([change("AWS::ECS::Service", "Remove")], Impact.DOWNTIME),
        ([change("AWS::SQS::Queue", "Add")], Impact.BEFORE),
        ([change("AWS::IAM::Role", replacement="True")], Impact.BEFORE),
        ([change("AWS::S3::Bucket", replacement="Conditional")], Impact.DOWNTIME),
        ([change("AWS::IAM::Role", "Remove")], Impact.DOWNTIME),
        ([change("AWS::IAM::Role", "Dynamic")], Impact.DOWNTIME),
        ([change("AWS::SQS::Queue", "Add"), change("AWS::ECS::Service")], Impact.BEFORE),
    ],
)
def test_the_worst_change_decides(described: list[dict[str, Any]], impact: Impact) -> None:
    assert classify(changes(described)).impact is impact


def test_each_resource_has_its_reason() -> None:
    found = classify(changes([change("AWS::S3::Bucket", replacement="True"), {"Type": "Hook"}]))

    assert found.reasons == ("It (AWS::S3::Bucket): Modify, replacement True: DOWNTIME",)
