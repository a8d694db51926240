"""What people see of queues: what waits, who is there, and work that nobody serves."""

from datetime import timedelta

from fairlead.engine import service, visibility
from fairlead.engine.store import protocol
from fairlead.engine.testing import START, HandWoundClock
from tests import machines
from tests.engines import Setup, engine, handlers, name, tell
from tests.outside_world import OutsideWorld

PROD = "kubernetes@prod"


async def queues(running: service.Engine, wall: HandWoundClock) -> list[visibility.QueueView]:
    return await running.read(lambda session: visibility.queues(session, wall.now()))


async def unserved(running: service.Engine, wall: HandWoundClock, key: str) -> str:
    def read(session: protocol.Session) -> str:
        view = visibility.stream(session, name(f"fan/{key}"))
        return visibility.unserved(session, view, wall.now())

    return await running.read(read)


async def test_work_without_a_worker_waits_and_is_told_after_a_grace(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, Setup(perform=False)).running() as running:
        await tell(running, "fan/a", machines.Load(("x", "y")), queue=PROD)
        (early,) = await queues(running, wall)
        wall.advance(visibility.GRACE)
        (late,) = await queues(running, wall)
        told = await running.read(lambda session: visibility.problems(session, wall.now()))

    assert early == visibility.QueueView(PROD, 2, START, (), ("fan Carry",), START)
    assert early.problem(START) is None
    assert late == early
    assert told == ["no worker serves kubernetes@prod since 2030-01-01 00:00:00 UTC"]


async def test_a_stream_hears_of_its_own_queue_alone(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, Setup(perform=False)).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)), queue=PROD)
        await tell(running, "fan/b", machines.Load(("x",)))
        early = [await unserved(running, wall, each) for each in "ab"]
        wall.advance(visibility.GRACE)
        late = [await unserved(running, wall, each) for each in "ab"]

    assert early == ["", ""]
    assert late == [
        "no worker serves kubernetes@prod since 2030-01-01 00:00:00 UTC",
        "no worker serves streams without a queue since 2030-01-01 00:00:00 UTC",
    ]


async def test_a_stream_that_was_moved_after_it_was_read_hears_of_its_new_queue(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    moved = name("fan/a")
    async with engine(store, wall, Setup(perform=False)).running() as running:
        await tell(running, moved, machines.Load(("x",)))
        before = await running.read(lambda s: visibility.stream(s, moved))
        await running.move([moved], PROD)
        wall.advance(visibility.GRACE)
        told = await running.read(lambda s: visibility.unserved(s, before, wall.now()))

    assert told == "no worker serves kubernetes@prod since 2030-01-01 00:00:00 UTC"


async def test_a_worker_that_serves_another_queue_is_no_help(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    cast = Setup(queues={"kubernetes@test": handlers(OutsideWorld().carry)})
    async with engine(store, wall, cast).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)), queue=PROD)
        found = await queues(running, wall)

    assert [(one.name, one.waiting, len(one.workers)) for one in found] == [
        (PROD, 1, 0),
        ("kubernetes@test", 0, 1),
    ]


async def test_a_type_that_no_worker_of_the_queue_performs_is_named(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    cast = Setup(queues={PROD: handlers(OutsideWorld().carry)})
    async with engine(store, wall, cast).running() as running:
        call = machines.Call(name("echo/a"), name("echo/b"), 0)
        await tell(running, "echo/a", call, queue=PROD)
        (found,) = await queues(running, wall)

    assert (found.waiting, found.unserved) == (1, ("echo Nothing",))
    told = found.problem(START + timedelta(minutes=1))
    assert told == (
        "no worker of kubernetes@prod performs echo Nothing since 2030-01-01 00:00:00 UTC"
    )


def test_streams_without_a_queue_are_told_of_as_such() -> None:
    view = visibility.QueueView("", 1, START, (), ("fan Carry",), START)

    told = view.problem(START + visibility.GRACE)

    assert told == "no worker serves streams without a queue since 2030-01-01 00:00:00 UTC"
