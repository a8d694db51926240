"""Stacks of CloudFormation, on moto's server and on answers as AWS gives them."""

import json
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from botocore.stub import ANY, Stubber

from fairlead import errors
from fairlead.clients.aws.cloudformation import TOKEN_TAG, Change, CloudFormation, Operation
from fairlead.clients.aws.session import Account, Aws, short
from tests.aws import REGION, Cloud

pytestmark = pytest.mark.xdist_group("moto")
PARAMETERS = {"Size": {"Type": "String"}, "Name": {"Type": "String"}}
TEMPLATE: dict[str, Any] = {
    "Parameters": PARAMETERS,
    "Resources": {
        "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": {"Ref": "Name"}}}
    },
}
BODY = json.dumps(TEMPLATE)
GIVEN = {"Size": "1", "Name": "orders"}


@pytest.fixture
def stacks(cloud: Cloud) -> CloudFormation:
    return CloudFormation(Aws(cloud.url).client("cloudformation", Account(REGION)))


def test_a_stack_that_is_not_there_is_none(stacks: CloudFormation) -> None:
    assert stacks.describe("prod-shop") is None


def test_a_stack_is_created_updated_and_deleted(stacks: CloudFormation) -> None:
    stacks.create("prod-shop", Change("d1", body=BODY, parameters=GIVEN))
    created = stacks.describe("prod-shop")
    begun = stacks.update("prod-shop", Change("d2", parameters={"Size": "2", "Name": None}))
    updated = stacks.describe("prod-shop")
    stacks.delete("prod-shop", "d3")

    assert created is not None
    assert (created.status, created.parameters) == ("CREATE_COMPLETE", GIVEN)
    assert begun
    assert updated is not None
    assert updated.parameters == {"Size": "2", "Name": "orders"}
    assert stacks.describe("prod-shop") is None


def test_creating_again_under_the_same_token_is_the_same_request(stacks: CloudFormation) -> None:
    change = Change("d1", body=BODY, parameters=GIVEN)
    stacks.create("prod-shop", change)

    stacks.create("prod-shop", change)
    with pytest.raises(errors.Rejected, match="somebody else made the stack meanwhile: prod-shop"):
        stacks.create("prod-shop", Change("d2", body=BODY, parameters=GIVEN))


def test_a_change_set_says_what_would_change_and_goes(stacks: CloudFormation) -> None:
    stacks.create("prod-shop", Change("d1", body=BODY, parameters=GIVEN))
    queue = {"Type": "AWS::SQS::Queue"}
    wider = json.dumps({**TEMPLATE, "Resources": {**TEMPLATE["Resources"], "Queue": queue}})

    stacks.plan("prod-shop", Change("d2", body=wider, parameters=dict.fromkeys(GIVEN)))
    changes = stacks.planned("prod-shop", "d2")
    stacks.discard("prod-shop", "d2")

    assert changes is not None
    told = [
        (each["ResourceChange"]["Action"], each["ResourceChange"]["LogicalResourceId"])
        for each in changes
    ]
    assert told == [("Add", "Queue")]
    found = stacks.describe("prod-shop")
    assert found is not None
    assert found.status == "CREATE_COMPLETE"


class Recorded:
    """CloudFormation that answers what was recorded, in order."""

    def __init__(self) -> None:
        session = botocore.session.get_session()
        once = Config(retries={"total_max_attempts": 1})
        given = {"aws_access_key_id": "x", "aws_secret_access_key": "y", "config": once}
        client = session.create_client("cloudformation", region_name=REGION, **given)
        self.stub = Stubber(client)
        self.stacks = CloudFormation(client)

    def answers(self, method: str, answer: dict[str, Any]) -> None:
        self.stub.add_response(method, answer)

    def refuses(self, method: str, code: str, message: str, status: int = 400) -> None:
        self.stub.add_client_error(method, code, message, http_status_code=status)


@pytest.fixture
def recorded() -> Any:
    made = Recorded()
    with made.stub:
        yield made
    made.stub.assert_no_pending_responses()


def event(token: str, status: str, resource: str = "prod-shop", reason: str = "") -> Any:
    whole = resource == "prod-shop"
    return {
        "StackId": "arn:stack",
        "EventId": f"{token}-{status}-{resource}",
        "StackName": "prod-shop",
        "LogicalResourceId": resource,
        "PhysicalResourceId": "arn:stack" if whole else "",
        "ResourceType": "AWS::CloudFormation::Stack" if whole else "AWS::ECS::Service",
        "Timestamp": "2030-01-01T00:00:00Z",
        "ResourceStatus": status,
        "ResourceStatusReason": reason,
        "ClientRequestToken": token,
    }


def test_an_operation_is_found_by_its_token_behind_somebody_elses(recorded: Recorded) -> None:
    ours = short("d1")
    told = [
        event("console", "UPDATE_COMPLETE"),
        event("console", "UPDATE_IN_PROGRESS"),
        event(ours, "UPDATE_ROLLBACK_COMPLETE"),
        event(ours, "UPDATE_FAILED", "Other", "cancelled"),
        event(ours, "UPDATE_FAILED", "WebService", "no room"),
        event(ours, "UPDATE_IN_PROGRESS"),
        event("before", "CREATE_COMPLETE"),
    ]
    recorded.answers("describe_stack_events", {"StackEvents": told})

    found = recorded.stacks.operation("prod-shop", "d1")

    assert found == Operation("UPDATE_ROLLBACK_COMPLETE", "WebService: no room")


def test_an_update_that_was_begun_before_is_not_sent_again(recorded: Recorded) -> None:
    begun = {"StackEvents": [event(short("d1"), "UPDATE_IN_PROGRESS")]}
    recorded.answers("describe_stack_events", begun)

    assert recorded.stacks.update("prod-shop", Change("d1"))


def test_nothing_to_change_is_no_failure(recorded: Recorded) -> None:
    recorded.answers("describe_stack_events", {"StackEvents": []})
    said = "No updates are to be performed."
    recorded.refuses("update_stack", "ValidationError", said)

    assert not recorded.stacks.update("prod-shop", Change("d1"))


def test_a_stack_that_others_update_is_tried_again_later(recorded: Recorded) -> None:
    recorded.answers("describe_stack_events", {"StackEvents": []})
    said = "Stack:arn is in UPDATE_IN_PROGRESS state and can not be updated."
    recorded.refuses("update_stack", "ValidationError", said)

    with pytest.raises(errors.Unavailable, match="UPDATE_IN_PROGRESS"):
        recorded.stacks.update("prod-shop", Change("d1"))


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("Throttling", 400, errors.Unavailable),
        ("RequestLimitExceeded", 503, errors.Unavailable),
        ("InternalFailure", 500, errors.Unavailable),
        ("ExpiredToken", 403, errors.Unavailable),
        ("AccessDenied", 403, errors.Rejected),
        ("ValidationError", 400, errors.Rejected),
    ],
)
def test_errors_are_sorted_by_what_a_later_try_can_mend(
    recorded: Recorded, code: str, status: int, expected: type[errors.FairleadError]
) -> None:
    recorded.refuses("describe_stacks", code, "so it is", status)

    with pytest.raises(errors.FairleadError) as told:
        recorded.stacks.describe("prod-shop")

    assert type(told.value) is expected


def test_a_change_set_in_pages_without_changes_or_failed(recorded: Recorded) -> None:
    def page(logical: str, **more: str) -> dict[str, Any]:
        change = {"Action": "Modify", "LogicalResourceId": logical, "Replacement": "True"}
        return {"Status": "CREATE_COMPLETE", "Changes": [{"ResourceChange": change}], **more}

    recorded.answers("describe_change_set", {"Status": "CREATE_IN_PROGRESS"})
    recorded.answers("describe_change_set", page("A", NextToken="more"))
    recorded.answers("describe_change_set", page("B"))
    empty = "The submitted information didn't contain changes. Submit different information"
    recorded.answers("describe_change_set", {"Status": "FAILED", "StatusReason": empty})
    recorded.answers("describe_change_set", {"Status": "FAILED", "StatusReason": "bad template"})
    planned = recorded.stacks.planned

    assert planned("prod-shop", "d1") is None
    found = planned("prod-shop", "d1")
    assert found is not None
    assert [each["ResourceChange"]["LogicalResourceId"] for each in found] == ["A", "B"]
    assert planned("prod-shop", "d1") == []
    with pytest.raises(errors.Rejected, match="bad template"):
        planned("prod-shop", "d1")


def test_an_update_that_ended_meanwhile_needs_no_cancelling(recorded: Recorded) -> None:
    asked = {"StackName": "prod-shop", "ClientRequestToken": ANY}
    recorded.stub.add_response("cancel_update_stack", {}, asked)
    said = "CancelUpdateStack cannot be called from current stack status"
    recorded.refuses("cancel_update_stack", "ValidationError", said)

    recorded.stacks.cancel("prod-shop", "d1")
    recorded.stacks.cancel("prod-shop", "d1")


def test_a_created_stack_carries_its_token(recorded: Recorded) -> None:
    expected = {
        "StackName": "prod-shop",
        "ClientRequestToken": short("d1"),
        "Tags": [{"Key": TOKEN_TAG, "Value": short("d1")}],
        "TemplateURL": "https://templates/x.json",
        "Capabilities": ["CAPABILITY_NAMED_IAM"],
        "Parameters": [],
    }
    recorded.stub.add_response("create_stack", {"StackId": "arn"}, expected)

    recorded.stacks.create("prod-shop", Change("d1", url="https://templates/x.json"))
