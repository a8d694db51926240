"""An object that goes: what was adopted is given back in steps that the proxies show."""

import dataclasses
import datetime as dt

import pytest

from fairlead.areas.rollouts.domain.messages import SetRoute
from fairlead.areas.rollouts.kubernetes.child_reconciler import ChildReconciler
from fairlead.areas.rollouts.kubernetes.collectors import RolloutMetrics
from fairlead.areas.rollouts.kubernetes.kinds import CANARIES
from fairlead.areas.rollouts.kubernetes.providers.istio import VIRTUAL_SERVICES
from fairlead.errors import NotFound
from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.objects import Key, Object
from fairlead.traffic.routes import only_split
from tests.unit.areas.rollouts.kubernetes.cluster import RolloutHarness, set_up
from tests.unit.areas.rollouts.kubernetes.snapshot import canary

WHERE = {"namespace": "bay", "name": "shop"}
SPEC = {"hosts": ["shop"], "http": [{"route": [{"destination": {"host": "shop-service"}}]}]}


class Hand:
    """A clock that is wound by hand."""

    def __init__(self, at: dt.datetime) -> None:
        self.at = at

    def now(self) -> dt.datetime:
        return self.at


async def left(harness: RolloutHarness, clock: Hand) -> list[tuple[float, list[object]]]:
    """Until the object is gone: seconds that each reconcile waits, and the weights meanwhile."""
    care = ChildReconciler(
        harness.contexts, harness.platform, harness.router, harness.canaries, RolloutMetrics()
    )
    controller = harness.context().controller
    steps: list[tuple[float, list[object]]] = []
    while (obj := controller.held.objects.get(Key("bay", "shop"))) is not None:
        again = await care.after_reconcile(controller, obj)
        route = await harness.hand.get(VIRTUAL_SERVICES, Key("bay", "shop"))
        steps.append((again, [one.get("weight") for one in route["spec"]["http"][0]["route"]]))
        clock.at += dt.timedelta(seconds=again)
        assert len(steps) < 9
    return steps


async def test_weight_then_backend_leave_and_then_the_object() -> None:
    obj: Object = canary(provider={"istio": {"vsName": "shop", "delay": 3}})
    del obj["metadata"]["uid"]
    async with set_up(obj, (VIRTUAL_SERVICES, {"metadata": WHERE, "spec": SPEC})) as harness:
        clock = Hand(harness.contexts.controller_context.clock.now())
        harness.contexts.controller_context = dataclasses.replace(
            harness.contexts.controller_context, clock=Clock(now=clock.now)
        )
        await harness.router.route(SetRoute(harness.name, 1, only_split(50)))
        clock.at += dt.timedelta(seconds=1)
        context = harness.context()
        deleted = await harness.hand.delete(CANARIES, Key("bay", "shop"))
        context.controller.held.objects.wrote(deleted)

        steps = await left(harness, clock)

        assert steps == [
            (3.0, [100, 0]),
            (3.0, [None]),
            (0.0, [None]),
        ]
        route = await harness.hand.get(VIRTUAL_SERVICES, Key("bay", "shop"))
        assert route["spec"] == SPEC
        with pytest.raises(NotFound):
            await harness.hand.get(CANARIES, Key("bay", "shop"))
