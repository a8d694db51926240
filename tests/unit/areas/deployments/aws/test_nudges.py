"""Events of EventBridge: whoever waits for a stack looks at once, and nobody else."""

import json
from datetime import timedelta
from typing import Any

import pytest

from fairlead.areas.deployments.aws import nudges
from fairlead.areas.deployments.domain import messages
from fairlead.clients.aws.events import EventQueue
from fairlead.engine.messages import parse_stream
from fairlead.engine.testing import HandWoundClock
from tests.aws import Cloud
from tests.engines import events, state, until
from tests.unit.areas.deployments.recorded import RecordedPlatform
from tests.unit.areas.deployments.test_core import built, request

pytestmark = [pytest.mark.xdist_group("moto"), pytest.mark.slow]
ARN = "arn:aws:cloudformation:eu-west-1:123456789012:stack"


def event(stack: str = "prod-shop", source: str = "aws.cloudformation", **detail: Any) -> str:
    told = {"stack-id": f"{ARN}/{stack}/0a1b", "status-details": {"status": "UPDATE_COMPLETE"}}
    kind = "CloudFormation Stack Status Change"
    return json.dumps({"source": source, "detail-type": kind, "detail": {**told, **detail}})


async def test_a_change_wakes_whoever_waits_for_it(
    cloud: Cloud, sqlite_home: Any, wall: HandWoundClock
) -> None:
    """Time stands still: nothing but the events makes anybody look."""
    client = cloud.client("sqs")
    url = client.create_queue(QueueName="stacks")["QueueUrl"]
    platform = RecordedPlatform(statuses=["UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"])
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        await request(engine, "d1")

        async def polled() -> bool:
            return "StillUnderway" in await events(engine, "deployment/d1")

        async def planned() -> bool:
            return bool((await state(engine, "deployment/d1"))["status"] == "RUNNING")

        await until(polled)
        async with nudges.listening(EventQueue(client, url), engine):
            for body in ("no JSON", event("other-app"), event(source="aws.evil"), event(), event()):
                client.send_message(QueueUrl=url, MessageBody=body)
            await until(planned)

            async def emptied() -> bool:
                names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
                left = client.get_queue_attributes(QueueUrl=url, AttributeNames=names)
                return not any(int(each) for each in left["Attributes"].values())

            await until(emptied)

    assert wall.now() - HandWoundClock().now() == timedelta()


async def test_only_what_is_under_way_is_looked_at(sqlite_home: Any, wall: HandWoundClock) -> None:
    platform = RecordedPlatform(exists=True)
    async with built(sqlite_home.store(), wall, platform).running() as engine:
        await request(engine, "d1")

        async def underway() -> bool:
            found = await state(engine, "deployment/d1")
            return sum(bool(each["polls"]) for each in found["steps"]) == 2

        await until(underway)
        told = await engine.read(lambda s: nudges.looks(s, event()))
        strange = ["", "[]", event("prod"), event("-"), event("../../x"), '{"detail": 1}']
        ignored = await engine.read(lambda s: [nudges.looks(s, each) for each in strange])

    at = parse_stream("deployment/d1")
    steps = [messages.ObserveAgain(name, 1) for name in ("PGUpsert", "CFPlan")]
    assert ignored == [[]] * len(strange)
    assert told == [(at, each) for each in steps]
