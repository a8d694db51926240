"""What is done for a rollout beside its machine: put right once, and not looked at while right."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from fairlead.areas.rollouts.domain.messages import EnsureVersion
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes import names, parsing
from fairlead.areas.rollouts.kubernetes.child_reconciler import ChildReconciler
from fairlead.areas.rollouts.kubernetes.collectors import RolloutMetrics
from fairlead.areas.rollouts.kubernetes.kinds import CANARIES
from fairlead.kubernetes.objects import Key
from tests.unit.areas.rollouts.kubernetes.cluster import RolloutHarness, set_up
from tests.unit.areas.rollouts.kubernetes.snapshot import canary

CALLED = names.embedded("shop")
Change = Callable[[RolloutHarness], Awaitable[object]]


@pytest.fixture
async def harness() -> AsyncIterator[RolloutHarness]:
    """Both slots and all Services are there."""
    obj = canary()
    del obj["metadata"]["uid"]
    async with set_up(obj) as made:
        context = made.context()
        version = parsing.desired(context.parsed, context.snapshot)
        for order, slot in enumerate((Slot.PRIMARY, Slot.CANARY), 1):
            await made.platform.ensure(EnsureVersion(made.name, order, slot, version, 2))
        await care(made).after_reconcile(context.controller, context.obj)
        yield made


def care(harness: RolloutHarness) -> ChildReconciler:
    return ChildReconciler(
        harness.contexts, harness.platform, harness.router, harness.canaries, RolloutMetrics()
    )


def stand(harness: RolloutHarness) -> tuple[object, ...]:
    return care(harness)._stand(harness.context())


def patched(kind: str, name: str) -> Change:
    """A hand on one of the children, known to our caches."""
    api = {"Deployment": names.DEPLOYMENTS, "Service": names.SERVICES}[kind]

    async def change(harness: RolloutHarness) -> None:
        spec = {"replicas": 7} if kind == "Deployment" else {"selector": {"app": "nobody"}}
        done = await harness.hand.patch(api, Key("bay", name), {"spec": spec})
        harness.contexts.cache(harness.context(), api).wrote(done)

    return change


async def respelled(harness: RolloutHarness) -> None:
    """The object itself, in its spec."""
    context = harness.context()
    change = {"spec": {"keep": 3}}
    done = await harness.hand.patch(CANARIES, context.key, change)
    context.controller.held.objects.wrote(done)
    snapshot = context.controller.cached_snapshot(done)
    harness.canaries.observe(done, snapshot)


async def asked(harness: RolloutHarness) -> None:
    """The machine asks for another scale, which is not yet written anywhere."""
    context = harness.context()
    version = parsing.desired(context.parsed, context.snapshot)
    desired = EnsureVersion(harness.name, 9, Slot.CANARY, version, 5)
    harness.contexts.orders.perform(context.uid, Slot.CANARY.value, 9, desired)


@pytest.mark.parametrize(
    "change",
    [
        patched("Deployment", CALLED.primary),
        patched("Deployment", CALLED.deployments[Slot.CANARY]),
        patched("Service", CALLED.service),
        patched("Service", CALLED.services[Slot.CANARY]),
        respelled,
        asked,
    ],
    ids=["primary", "canary", "service", "canary service", "spec", "request"],
)
async def test_all_that_decides_how_children_should_be_is_noticed(
    harness: RolloutHarness, change: Change
) -> None:
    before = stand(harness)

    await change(harness)

    assert stand(harness) != before


async def test_what_decides_nothing_is_not_noticed(harness: RolloutHarness) -> None:
    before, context = stand(harness), harness.context()
    labels = {"metadata": {"labels": {"team": "shop"}}}
    done = await harness.hand.patch(CANARIES, context.key, labels)
    context.controller.held.objects.wrote(done)

    assert stand(harness) == before


async def test_a_rollout_in_order_is_asked_nothing_and_a_changed_one_is_put_back(
    harness: RolloutHarness,
) -> None:
    carer, context = care(harness), harness.context()
    await carer.after_reconcile(context.controller, context.obj)
    writes = len(harness.server.writes)
    await carer.after_reconcile(context.controller, context.obj)
    assert len(harness.server.writes) == writes

    await patched("Service", CALLED.services[Slot.CANARY])(harness)
    await carer.after_reconcile(context.controller, context.obj)

    service = await harness.hand.get(names.SERVICES, Key("bay", CALLED.services[Slot.CANARY]))
    assert service["spec"]["selector"] == {"app": "shop-canary"}


async def test_one_that_never_made_sense_is_let_alone(harness: RolloutHarness) -> None:
    context = harness.context()
    await patched("Service", CALLED.services[Slot.CANARY])(harness)
    harness.canaries.refused.add(context.uid)
    writes = len(harness.server.writes)

    await care(harness).after_reconcile(context.controller, context.obj)

    assert len(harness.server.writes) == writes
