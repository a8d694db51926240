"""What is done for a rollout beside its machine: put right once, and not looked at while right."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from fairlead.adapters.canaries import names, reading
from fairlead.adapters.canaries.duties import Care
from fairlead.adapters.canaries.figures import Figures
from fairlead.adapters.canaries.kinds import CANARIES
from fairlead.adapters.kubernetes import rights
from fairlead.adapters.kubernetes.objects import Key
from fairlead.domain.rollouts.messages import EnsureVersion, Slot
from tests.unit.adapters.canaries.around import canary
from tests.unit.adapters.canaries.stage import Stage, set_up

CALLED = names.embedded("shop")
Change = Callable[[Stage], Awaitable[object]]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """Both slots and all Services are there."""
    obj = canary()
    del obj["metadata"]["uid"]
    async with set_up(obj) as made:
        case = made.case()
        version = reading.wanted(case.reading, case.around)
        for order, slot in enumerate((Slot.PRIMARY, Slot.CANARY), 1):
            await made.platform.ensure(EnsureVersion(made.name, order, slot, version, 2))
        await care(made).tend(case.station, case.obj)
        yield made


def care(stage: Stage) -> Care:
    return Care(stage.desk, stage.platform, stage.router, stage.canaries, Figures())


def stand(stage: Stage) -> tuple[object, ...]:
    return care(stage)._stand(stage.case())


def patched(kind: str, name: str) -> Change:
    """A hand on one of the children, known to our caches."""
    api = {"Deployment": names.DEPLOYMENTS, "Service": names.SERVICES}[kind]

    async def change(stage: Stage) -> None:
        spec = {"replicas": 7} if kind == "Deployment" else {"selector": {"app": "nobody"}}
        done = await stage.hand.patch(rights.resource(api), Key("bay", name), {"spec": spec})
        stage.desk.cache(stage.case(), api).wrote(done)

    return change


async def respelled(stage: Stage) -> None:
    """The object itself, in its spec."""
    case = stage.case()
    change = {"spec": {"keep": 3}}
    done = await stage.hand.patch(rights.resource(CANARIES), case.key, change)
    case.station.held.objects.wrote(done)
    around = case.station.surroundings(done)
    stage.canaries.observe(done, around)


async def asked(stage: Stage) -> None:
    """The machine asks for another scale, which is not yet written anywhere."""
    case = stage.case()
    version = reading.wanted(case.reading, case.around)
    wish = EnsureVersion(stage.name, 9, Slot.CANARY, version, 5)
    stage.desk.ledger.perform(case.uid, Slot.CANARY.value, 9, wish)


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
    ids=["primary", "canary", "service", "canary service", "spec", "wish"],
)
async def test_all_that_decides_how_children_should_be_is_noticed(
    stage: Stage, change: Change
) -> None:
    before = stand(stage)

    await change(stage)

    assert stand(stage) != before


async def test_what_decides_nothing_is_not_noticed(stage: Stage) -> None:
    before, case = stand(stage), stage.case()
    labels = {"metadata": {"labels": {"team": "shop"}}}
    done = await stage.hand.patch(rights.resource(CANARIES), case.key, labels)
    case.station.held.objects.wrote(done)

    assert stand(stage) == before


async def test_a_rollout_in_order_is_asked_nothing_and_a_changed_one_is_put_back(
    stage: Stage,
) -> None:
    carer, case = care(stage), stage.case()
    await carer.tend(case.station, case.obj)
    writes = len(stage.server.writes)
    await carer.tend(case.station, case.obj)
    assert len(stage.server.writes) == writes

    await patched("Service", CALLED.services[Slot.CANARY])(stage)
    await carer.tend(case.station, case.obj)

    service = await stage.hand.get(
        rights.resource(names.SERVICES), Key("bay", CALLED.services[Slot.CANARY])
    )
    assert service["spec"]["selector"] == {"app": "shop-canary"}


async def test_one_that_never_made_sense_is_let_alone(stage: Stage) -> None:
    case = stage.case()
    await patched("Service", CALLED.services[Slot.CANARY])(stage)
    stage.canaries.refused.add(case.uid)
    writes = len(stage.server.writes)

    await care(stage).tend(case.station, case.obj)

    assert len(stage.server.writes) == writes
