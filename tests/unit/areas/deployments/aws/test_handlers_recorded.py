"""What handlers make of AWS where it refuses, throttles or stands still: recorded answers."""

import dataclasses
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from fairlead import errors
from fairlead.areas.deployments.aws import handlers
from fairlead.areas.deployments.aws.databases import Databases
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.infrastructure import CLOUDFORMATION, StackStatus
from fairlead.areas.deployments.domain.messages import StepStatus
from fairlead.areas.deployments.domain.spec import Flag
from fairlead.clients.aws.session import Account, Aws
from fairlead.engine import outbox
from fairlead.engine.messages import parse_stream
from tests.aws import REGION
from tests.unit.areas.deployments.aws.steps import built, step

ABOUT = outbox.EffectContext(parse_stream("deployment/d1"), "key-1", 1)


class RecordedAws(Aws):
    """Clients that answer what was recorded."""

    def __init__(self) -> None:
        super().__init__()
        once = Config(retries={"total_max_attempts": 1})
        given = {"aws_access_key_id": "x", "aws_secret_access_key": "y", "config": once}
        session = botocore.session.get_session()
        names = ("cloudformation", "s3", "sns")
        self._clients = {name: session.create_client(name, REGION, **given) for name in names}
        self.stubs = {name: Stubber(each) for name, each in self._clients.items()}
        for stub in self.stubs.values():
            stub.activate()

    def client(self, service: str, account: Account) -> Any:
        return self._clients[service]

    def has_stack(self, status: str, **more: str) -> None:
        stack = {
            "StackName": "prod-shop",
            "StackId": "arn",
            "CreationTime": "2030-01-01T00:00:00Z",
            "StackStatus": status,
            **more,
        }
        self.stubs["cloudformation"].add_response("describe_stacks", {"Stacks": [stack]})

    def refuses(self, service: str, method: str, code: str, status: int = 400) -> None:
        self.stubs[service].add_client_error(method, code, "so it is", http_status_code=status)


@pytest.fixture
def aws() -> RecordedAws:
    return RecordedAws()


async def performed(aws: Aws, effect: Any) -> Any:
    known = handlers.handlers(aws, Databases(aws))
    return await known[type(effect)].perform(effect, ABOUT)


@pytest.mark.parametrize("status", CLOUDFORMATION)
async def test_a_stack_in_any_status_at_the_start_is_told(status: str, aws: RecordedAws) -> None:
    aws.has_stack(status, StackStatusReason="somebody did it")

    told = await performed(aws, messages.StabilizeStack(built("prod").spec))

    assert told.status is CLOUDFORMATION[status]
    assert told.detail == f"{status}: somebody did it"


async def test_a_status_that_nobody_knows_fails_the_deployment(aws: RecordedAws) -> None:
    aws.has_stack("SOMETHING_NEW")

    told = await performed(aws, messages.StabilizeStack(built("prod").spec))

    assert told.status is StackStatus.TERMINAL
    assert "SOMETHING_NEW" in told.detail


async def test_an_update_of_others_is_cancelled_where_that_is_asked(aws: RecordedAws) -> None:
    spec = dataclasses.replace(built("prod").spec, flags=(Flag.CANCEL_UPDATES,))
    aws.has_stack("UPDATE_IN_PROGRESS")
    aws.stubs["cloudformation"].add_response("cancel_update_stack", {})

    told = await performed(aws, messages.StabilizeStack(spec))

    assert told.status is StackStatus.PROGRESS
    aws.stubs["cloudformation"].assert_no_pending_responses()


@pytest.mark.parametrize(
    ("code", "status"),
    [("Throttling", 400), ("InternalFailure", 500), ("ExpiredToken", 403)],
)
async def test_what_a_later_try_may_mend_is_tried_again(
    aws: RecordedAws, code: str, status: int
) -> None:
    aws.refuses("cloudformation", "describe_stacks", code, status)
    scale = step(built("prod"), "ScaleDown", "CFScale", counts="zero")

    with pytest.raises(errors.Unavailable, match=code):
        await performed(aws, scale)


async def test_a_refusal_fails_the_step_and_says_why(aws: RecordedAws) -> None:
    aws.refuses("cloudformation", "describe_stacks", "AccessDenied", 403)
    scale = step(built("prod"), "ScaleDown", "CFScale", counts="zero")

    told = await performed(aws, scale)

    assert (told.status, told.error) == (StepStatus.FAILED, "AWS: AccessDenied: so it is")


async def test_a_refusal_at_the_start_fails_the_deployment(aws: RecordedAws) -> None:
    aws.refuses("cloudformation", "describe_stacks", "AccessDenied", 403)
    aws.refuses("s3", "put_object", "AccessDenied", 403)
    made = built("prod")

    stack = await performed(aws, messages.StabilizeStack(made.spec))
    stored = await performed(aws, messages.StoreTemplate(made.spec.template, made.template))

    assert stack.status is StackStatus.TERMINAL
    assert stored.error == "AWS: AccessDenied: so it is"


async def test_an_update_that_was_refused_as_nothing_to_do_is_done(aws: RecordedAws) -> None:
    aws.has_stack("UPDATE_COMPLETE")
    stub = aws.stubs["cloudformation"]
    stub.add_response("describe_stack_events", {"StackEvents": []})
    said = "No updates are to be performed."
    stub.add_client_error("update_stack", "ValidationError", said)
    aws.stubs["sns"].add_response("create_topic", {"TopicArn": "arn"})
    update = step(built("prod"), "CFUpsert", "CFUpdate", images="new", counts="new")

    assert (await performed(aws, update)).status is StepStatus.DONE


async def test_a_kind_that_nobody_performs_fails_its_step(aws: RecordedAws) -> None:
    told = await performed(aws, step(built("prod"), "Sync", "GitSync"))

    assert told.status is StepStatus.FAILED
    assert "GitSync" in told.error
