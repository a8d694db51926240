"""Tasks of ECS: begun once for each token on moto's server, and each end that AWS may tell."""

import json
from typing import Any

import botocore.session
import pytest
from botocore.stub import Stubber

from fairlead import errors
from fairlead.clients.aws.session import Account, Aws
from fairlead.clients.aws.tasks import Container, Ended, Tasks
from tests.aws import REGION, Cloud

pytestmark = pytest.mark.xdist_group("moto")
MIGRATE = Container("shop-migrate", {"Name": "migrate", "Image": "shop:1", "Memory": 256})


def register_instance(cloud: Cloud, cluster: str = "main") -> None:
    """A machine for tasks: moto runs none on a cluster without."""
    ec2, ecs = cloud.client("ec2"), cloud.client("ecs")
    ecs.create_cluster(clusterName=cluster)
    image = ec2.describe_images()["Images"][0]["ImageId"]
    made = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1)["Instances"][0]
    document = json.dumps({"instanceId": made["InstanceId"], "region": REGION})
    ecs.register_container_instance(cluster=cluster, instanceIdentityDocument=document)


def test_a_task_is_begun_once_for_each_token(cloud: Cloud) -> None:
    register_instance(cloud)
    tasks = Tasks(Aws(cloud.url).client("ecs", Account(REGION)), "main")

    first, again, other = (tasks.run(MIGRATE, token) for token in ("d1", "d1", "d2"))

    assert first == again != other
    families = cloud.client("ecs").list_task_definitions()["taskDefinitionArns"]
    assert len(families) == 1


def test_a_task_runs_until_it_has_stopped(cloud: Cloud) -> None:
    register_instance(cloud)
    tasks = Tasks(Aws(cloud.url).client("ecs", Account(REGION)), "main")
    arn = tasks.run(MIGRATE, "d1")

    assert tasks.ended(arn) is None


@pytest.fixture
def recorded() -> Any:
    given = {"aws_access_key_id": "x", "aws_secret_access_key": "y"}
    client = botocore.session.get_session().create_client("ecs", region_name=REGION, **given)
    with Stubber(client) as stub:
        yield stub, Tasks(client, "main")


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ({"lastStatus": "RUNNING"}, None),
        ({"lastStatus": "DEPROVISIONING"}, None),
        (
            {
                "lastStatus": "STOPPED",
                "stopCode": "EssentialContainerExited",
                "containers": [{"name": "m", "exitCode": 0}],
            },
            Ended(),
        ),
        (
            {
                "lastStatus": "STOPPED",
                "stopCode": "EssentialContainerExited",
                "containers": [{"name": "m", "exitCode": 3}],
            },
            Ended("the task exited with code 3"),
        ),
        (
            {
                "lastStatus": "STOPPED",
                "stopCode": "EssentialContainerExited",
                "containers": [{"name": "m", "reason": "OutOfMemoryError"}],
            },
            Ended("the task ended without an exit code: OutOfMemoryError"),
        ),
        (
            {
                "lastStatus": "STOPPED",
                "stopCode": "TaskFailedToStart",
                "stoppedReason": "CannotPullContainerError",
            },
            Ended("TaskFailedToStart: CannotPullContainerError"),
        ),
        (
            {"lastStatus": "STOPPED", "stopCode": "SpotInterruption"},
            Ended("SpotInterruption: no reason given"),
        ),
    ],
)
def test_each_end_of_a_task_is_told(recorded: Any, task: Any, expected: Ended | None) -> None:
    stub, tasks = recorded
    stub.add_response("describe_tasks", {"tasks": [{"taskArn": "arn", **task}]})

    assert tasks.ended("arn") == expected


def test_a_task_that_ecs_forgot_has_failed(recorded: Any) -> None:
    stub, tasks = recorded
    missing = [{"arn": "arn", "reason": "MISSING"}]
    stub.add_response("describe_tasks", {"tasks": [], "failures": missing})

    assert tasks.ended("arn") == Ended("the task is gone, and how it ended is not known")


def test_no_room_for_a_task_is_tried_again(recorded: Any) -> None:
    stub, tasks = recorded
    stub.add_response("list_tasks", {"taskArns": []})
    stub.add_response("list_tasks", {"taskArns": []})
    stub.add_response("list_task_definitions", {"taskDefinitionArns": ["known"]})
    stub.add_response("run_task", {"tasks": [], "failures": [{"reason": "RESOURCE:MEMORY"}]})

    with pytest.raises(errors.Unavailable, match="no task could be started: RESOURCE:MEMORY"):
        tasks.run(MIGRATE, "d1")
