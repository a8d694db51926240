"""What checks are asked about in these tests: a shop whose slots are called after their slots."""

import datetime as dt

from fairlead import errors
from fairlead.domain.rollouts import messages
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.ports import Names
from tests.unit.domain.rollouts.world import START, version

NOW = START
MINUTE = dt.timedelta(minutes=1)


def about(share: int = 10, since: dt.datetime = NOW - 10 * MINUTE) -> messages.Measure:
    return messages.Measure("team/shop", 7, (), version("v1"), version("v2"), share, since)


def naming(asked: messages.Measure, slot: Slot) -> Names:
    if asked.name != "team/shop":
        raise errors.NotFound(f"no such rollout: {asked.name}", hint="look at their list")
    name = "shop" if slot is Slot.PRIMARY else f"shop-{slot.value}"
    arguments = {"namespace": "team", "target": name, "service": name, "port": "80"}
    return Names("istio", arguments)
