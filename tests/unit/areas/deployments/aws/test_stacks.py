"""Each step of CloudFormation on moto's server, and each status that a stack can be in."""

import dataclasses
import itertools
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from fairlead import errors
from fairlead.areas.deployments.aws.stacks import Stacks
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.infrastructure import CLOUDFORMATION
from fairlead.areas.deployments.domain.messages import StepStatus
from fairlead.clients.aws.cloudformation import CloudFormation
from fairlead.clients.aws.session import Aws, short
from tests.aws import REGION, Cloud
from tests.unit.areas.deployments.aws.steps import APP, built, prepare, step, store

pytestmark = pytest.mark.xdist_group("moto")
CREATE = {"counts": "zero"}
DONE, ACTIVE, FAILED = StepStatus.DONE, StepStatus.ACTIVE, StepStatus.FAILED


@pytest.fixture
def stacks(cloud: Cloud) -> Stacks:
    prepare(cloud)
    return Stacks(Aws(cloud.url))


def values(stacks: Stacks, made: Any) -> dict[str, str]:
    found = stacks.of(made.spec).describe(made.spec.stack)
    assert found is not None
    return found.parameters


def test_a_stack_is_made_at_zero_scaled_up_down_and_up_again(stacks: Stacks, cloud: Cloud) -> None:
    made = built("prod")
    store(cloud, made)
    create = step(made, "InfraMigrate", "CFCreate", **CREATE)
    up, down = (
        step(made, name, "CFScale", counts=counts)
        for name, counts in (("ScaleUp", "restored"), ("ScaleDown", "zero"))
    )

    # Twice: a second delivery does nothing more.
    assert [stacks.create(create).status for _ in range(2)] == [ACTIVE, ACTIVE]
    assert stacks.observe(create).status is DONE
    assert values(stacks, made)["DesiredCountWeb"] == "0"
    assert stacks.scale(up).status is ACTIVE
    assert values(stacks, made)["DesiredCountWeb"] == "1"
    assert stacks.scale(up).status is DONE
    assert [stacks.scale(down).status for _ in range(2)] == [ACTIVE, ACTIVE]
    assert (values(stacks, made)["DesiredCountWeb"], values(stacks, made)["ScaledFromWeb"]) == (
        *("0", "1"),
    )
    topics = cloud.client("sns").list_topics()["Topics"]
    assert [each["TopicArn"].rpartition(":")[2] for each in topics] == ["prod-orders"]


def test_infrastructure_and_version_are_changed_apart(stacks: Stacks, cloud: Cloud) -> None:
    first = built("prod")
    store(cloud, first)
    stacks.create(step(first, "CFUpsert", "CFCreate", counts="new"))
    second = built(
        "prod", app={**APP, "blobstores": [*APP["blobstores"], {"name": "more"}]}, version="v2"
    )
    store(cloud, second)

    stacks.update(step(second, "InfraMigrate", "CFUpdate", images="kept", counts="kept"))
    infra = values(stacks, second)
    stacks.update(step(second, "VersionMigrate", "CFUpdate", images="new", counts="kept"))
    version = values(stacks, second)

    assert infra["ImageWebApp"] == "registry.example/shop:v1"
    assert version["ImageWebApp"] == "registry.example/shop:v2"
    buckets = [each["Name"] for each in cloud.client("s3").list_buckets()["Buckets"]]
    assert "more-shop-prod" in buckets


def test_a_change_set_is_classed_and_leaves_nothing(stacks: Stacks, cloud: Cloud) -> None:
    first = built("prod")
    store(cloud, first)
    stacks.create(step(first, "CFUpsert", "CFCreate", counts="new"))
    second = built("prod", app={**APP, "blobstores": []}, version="v2")
    store(cloud, second)

    told = stacks.plan(step(second, "CFPlan", "CFPlan"))

    assert (told.status, told.impact) == (DONE, Impact.DOWNTIME)
    assert "ImagesBucket (AWS::S3::Bucket): Remove: DOWNTIME" in told.reasons
    left = cloud.client("cloudformation").list_change_sets(StackName="prod-shop")
    assert left["Summaries"] == []


def test_what_is_there_already_comes_into_a_new_stack(stacks: Stacks, cloud: Cloud) -> None:
    made = built("prod")
    store(cloud, made)
    where = {"LocationConstraint": REGION}
    cloud.client("s3").create_bucket(Bucket="images-shop-prod", CreateBucketConfiguration=where)
    empty = step(made, "CFCreateEmpty", "CFCreate", empty=True)

    stacks.create(empty)
    observed = stacks.observe(empty)
    told = stacks.import_(step(made, "CFImportPlan", "CFImport"))

    assert (observed.status, told.status) == (DONE, ACTIVE)
    (found,) = cloud.client("cloudformation").list_change_sets(StackName="prod-shop")["Summaries"]
    assert found["Status"] == "CREATE_COMPLETE"


def test_an_import_is_executed_once_and_asked_about_until_it_has_ended() -> None:
    def stack(status: str) -> tuple[str, dict[str, Any]]:
        made = {"StackName": "prod-shop", "StackId": "arn", "CreationTime": "2030-01-01T00:00:00Z"}
        return "describe_stacks", {"Stacks": [{**made, "StackStatus": status}]}

    events = ("describe_stack_events", EMPTY)
    planned = ("describe_change_set", {"Status": "CREATE_COMPLETE", "Changes": []})
    answers = [
        *(stack("CREATE_COMPLETE"), planned, ("execute_change_set", {})),
        *(stack("IMPORT_IN_PROGRESS"), stack("IMPORT_IN_PROGRESS"), events),
        *(stack("IMPORT_COMPLETE"), stack("IMPORT_COMPLETE"), events),
    ]
    with recorded(*answers) as at:
        import_ = step(built("prod"), "CFImportPlan", "CFImport")
        told = [at.imported(import_).status for _ in range(3)]

    assert told == [ACTIVE, ACTIVE, DONE]


def test_nothing_to_import_is_done(stacks: Stacks, cloud: Cloud) -> None:
    made = built("prod")
    store(cloud, made)

    assert stacks.import_(step(made, "CFImportPlan", "CFImport")).status is DONE


def test_a_stack_that_is_gone_is_refused_with_what_to_do(stacks: Stacks) -> None:
    with pytest.raises(errors.Rejected, match="the stack is gone: prod-shop"):
        stacks.scale(step(built("prod"), "ScaleUp", "CFScale", counts="restored"))


ENDS = {
    **{name: ACTIVE for name, meaning in CLOUDFORMATION.items() if meaning.moving},
    **dict.fromkeys(("CREATE_COMPLETE", "IMPORT_COMPLETE", "UPDATE_COMPLETE"), DONE),
}


@pytest.mark.parametrize("status", CLOUDFORMATION)
def test_a_step_whose_stack_is_in_any_status_ends_or_goes_on(status: str) -> None:
    """Also those from which nothing leads out: a step that fails, not one that hangs."""
    stack = {
        "StackName": "prod-shop",
        "StackId": "arn",
        "CreationTime": "2030-01-01T00:00:00Z",
        "StackStatus": status,
    }
    with recorded(("describe_stacks", {"Stacks": [stack]}), ("describe_stack_events", EMPTY)) as at:
        told = at.observe(step(built("prod"), "InfraMigrate", "CFUpdate"))

    assert told.status is ENDS.get(status, FAILED)
    assert (status in told.error) is (told.status is FAILED)


@pytest.mark.parametrize("before", ["UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"])
def test_what_aws_told_of_the_time_before_a_request_ends_no_step(before: str) -> None:
    """DescribeStacks and its events come from copies that lag behind what was just asked."""
    update = step(built("prod"), "VersionMigrate", "CFUpdate")

    def told(status: str, token: str) -> list[tuple[str, dict[str, Any]]]:
        stack = {"StackName": "prod-shop", "StackId": "arn", "StackStatus": status}
        event = {
            "StackName": "prod-shop",
            "StackId": "arn",
            "EventId": "e",
            "ResourceStatus": status,
            "PhysicalResourceId": "arn",
            "ResourceType": "AWS::CloudFormation::Stack",
            "Timestamp": "2030-01-01T00:00:00Z",
            "ClientRequestToken": token,
        }
        made = {**stack, "CreationTime": "2030-01-01T00:00:00Z"}
        events = ("describe_stack_events", {"StackEvents": [event]})
        return [("describe_stacks", {"Stacks": [made]}), events]

    ours = short(update.token)
    answers = [
        told(before, "of-another"),
        told("UPDATE_IN_PROGRESS", ours),
        told("UPDATE_COMPLETE", ours),
    ]
    with recorded(*itertools.chain.from_iterable(answers)) as at:
        found = [at.observe(update).status for _ in answers]

    assert found == [ACTIVE, ACTIVE, DONE]


EMPTY: dict[str, Any] = {"StackEvents": []}


@dataclasses.dataclass(frozen=True, slots=True)
class Recorded(Stacks):
    """Steps on answers that were recorded."""

    stacks: CloudFormation

    def of(self, _: Any) -> CloudFormation:
        return self.stacks


class recorded:  # noqa: N801 - used as a function
    """CloudFormation that gives these answers, and no other."""

    def __init__(self, *answers: tuple[str, dict[str, Any]]) -> None:
        session = botocore.session.get_session()
        given = {"aws_access_key_id": "x", "aws_secret_access_key": "y"}
        once = Config(retries={"total_max_attempts": 1})
        client = session.create_client("cloudformation", REGION, config=once, **given)
        self._stub = Stubber(client)
        for method, answer in answers:
            self._stub.add_response(method, answer)
        self._at = Recorded(Aws(), CloudFormation(client))

    def __enter__(self) -> Recorded:
        self._stub.activate()
        return self._at

    def __exit__(self, *_: object) -> None:
        self._stub.deactivate()


def test_a_change_set_as_aws_describes_it_is_classed_by_replacement() -> None:
    def change(resource: str, type_: str, replacement: str) -> dict[str, Any]:
        return {
            "Type": "Resource",
            "ResourceChange": {
                "Action": "Modify",
                "LogicalResourceId": resource,
                "ResourceType": type_,
                "Replacement": replacement,
                "Scope": ["Properties"],
                "Details": [],
            },
        }

    changes = [
        change("WebTask", "AWS::ECS::TaskDefinition", "True"),
        change("WebService", "AWS::ECS::Service", "False"),
    ]
    table = change("WebQueue", "AWS::SQS::Queue", "Conditional")
    answer = {"Status": "CREATE_COMPLETE", "Changes": changes}
    worse = {"Status": "CREATE_COMPLETE", "Changes": [*changes, table]}
    given = [
        ("describe_change_set", answer),
        ("delete_change_set", {}),
        ("describe_change_set", worse),
        ("delete_change_set", {}),
    ]
    with recorded(*given) as at:
        plan = step(built("prod"), "CFPlan", "CFPlan")
        told, after = at.planned(plan), at.planned(plan)

    assert (told.impact, after.impact) == (Impact.NOP, Impact.DOWNTIME)
    assert after.reasons[-1] == (
        "WebQueue (AWS::SQS::Queue): Modify, replacement Conditional: DOWNTIME"
    )
