"""A refusal and a rollout's status, written in the same moment, both stay."""

import asyncio

import pytest

from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.domain.status import Condition, RolloutStatus
from fairlead.areas.rollouts.kubernetes import status_writer as owners
from fairlead.areas.rollouts.kubernetes.collectors import RolloutMetrics
from fairlead.areas.rollouts.kubernetes.kinds import CANARIES
from fairlead.kubernetes.kinds import InvalidSpec
from fairlead.kubernetes.objects import Key
from tests.unit.areas.rollouts.kubernetes.cluster import set_up
from tests.unit.areas.rollouts.kubernetes.snapshot import canary


async def test_a_refusal_is_not_undone_by_a_status_of_the_same_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owners, "PAUSE_SECONDS", 0.0)
    told = Condition("Paused", "True", "Paused", "held")
    status = RolloutStatus(phase="Paused", conditions=[told], observed_generation=1, round=7)
    async with set_up(canary()) as harness:
        controller, obj = harness.context().controller, harness.context().obj
        controller.begin(harness.contexts.controller_context.write_locks)
        owner = owners.StatusWriter(harness.contexts, RolloutMetrics())
        await asyncio.gather(
            owner.publish(messages.PublishStatus(harness.name, status)),
            controller.refuse(obj, InvalidSpec("spec: senseless", hint="edit it")),
        )
        key = Key("bay", obj["metadata"]["name"])
        found = await harness.hand.get(CANARIES, key)

    conditions = {one["type"]: one["status"] for one in found["status"]["conditions"]}
    assert conditions == {"Paused": "True", "Accepted": "False"}
