"""A refusal and a rollout's status, written in the same moment, both stay."""

import asyncio

import pytest

from fairlead.adapters.canaries import owner as owners
from fairlead.adapters.canaries.figures import Figures
from fairlead.adapters.canaries.kinds import CANARIES
from fairlead.adapters.kubernetes import rights
from fairlead.adapters.kubernetes.objects import Key
from fairlead.domain.rollouts import messages
from fairlead.intents.kubernetes import InvalidSpec
from tests.unit.adapters.canaries.around import canary
from tests.unit.adapters.canaries.stage import set_up


async def test_a_refusal_is_not_taken_back_by_a_status_of_the_same_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owners, "PAUSE_SECONDS", 0.0)
    told = {"type": "Paused", "status": "True", "reason": "Paused", "message": "held"}
    status = {"phase": "Paused", "conditions": [told], "observedGeneration": 1}
    async with set_up(canary()) as stage:
        station, obj = stage.case().station, stage.case().obj
        station.begin(stage.desk.gear.turns)
        owner = owners.Owner(stage.desk, Figures())
        await asyncio.gather(
            owner.publish(messages.PublishStatus(stage.name, 7, status)),
            station.refuse(obj, InvalidSpec("spec: senseless", hint="edit it")),
        )
        key = Key("bay", obj["metadata"]["name"])
        found = await stage.hand.get(rights.resource(CANARIES), key)

    conditions = {one["type"]: one["status"] for one in found["status"]["conditions"]}
    assert conditions == {"Paused": "True", "Accepted": "False"}
