"""One batch at a time: what must not wait goes first, and no batch grows without bound."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from fairlead import errors
from fairlead.engine import messages, runner, writer
from fairlead.engine.store import protocol
from fairlead.engine.testing import HandWoundClock
from tests import machines
from tests.engines import PATIENCE, Home, Setup, engine, handlers, state, tell, until
from tests.outside_world import OutsideWorld
from tests.tampered import TamperedStore, Tampering

SUBMITTER = Setup(perform=False)


class Halt:
    """Stops a store's writes until a test lets them go on."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.reached = threading.Event()
        self.writes: list[protocol.Writes] = []

    def __call__(self, call: str, subject: Any) -> None:
        if call == "write":
            self.writes.append(subject)
            self.reached.set()
            assert self.go.wait(PATIENCE)

    async def halted(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, PATIENCE)


async def test_claims_and_the_like_go_before_all_commands_that_wait(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    halt = Halt()
    line = Tampering(before=halt)
    async with engine(TamperedStore(store, line), wall, SUBMITTER).running() as running:
        first = asyncio.create_task(tell(running, "counter/first", machines.Add(1)))
        await halt.halted()
        many = [
            asyncio.create_task(tell(running, f"counter/{number}", machines.Add(1)))
            for number in range(1000)
        ]
        await asyncio.sleep(0)
        job = asyncio.create_task(running.write(lambda s: (s.rows("count_rows"), len(halt.writes))))
        await asyncio.sleep(0)
        halt.go.set()

        _, written_before = await job
        await asyncio.gather(first, *many)

    assert written_before == 1


async def test_whoever_finds_no_place_waits_in_turn_and_may_leave(
    store: protocol.Store, wall: HandWoundClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "MAX_INBOX", 3)
    halt = Halt()
    line = Tampering(before=halt)
    order: list[int] = []

    async def ask(number: int) -> None:
        await tell(running, "counter/a", machines.Add(number))
        order.append(number)

    async with engine(TamperedStore(store, line), wall, SUBMITTER).running() as running:
        asking = [asyncio.create_task(ask(number)) for number in range(1, 9)]
        await halt.halted()
        asking[5].cancel()
        waiting = running._runner._writers[0]._inbox.qsize()
        halt.go.set()
        await asyncio.gather(*asking, return_exceptions=True)

        assert await state(running, "counter/a") == {"total": 36 - 6}
    assert waiting <= 3
    assert order == [1, 2, 3, 4, 5, 7, 8]


async def test_large_commands_find_fewer_places(
    store: protocol.Store, wall: HandWoundClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "MAX_INBOX_BYTES", 100_000)
    halt, note = Halt(), "x" * 30_000
    order: list[int] = []

    async def ask(number: int, note: str = note) -> None:
        await tell(running, "counter/a", machines.Add(number, note))
        order.append(number)

    tampered = TamperedStore(store, Tampering(before=halt))
    async with engine(tampered, wall, SUBMITTER).running() as running:
        asking = [asyncio.create_task(ask(number)) for number in range(1, 9)]
        # Small, but behind large ones; and one that is larger than all of the room.
        asking += [asyncio.create_task(ask(9, "")), asyncio.create_task(ask(10, note * 4))]
        await halt.halted()
        waiting = len(running._runner._places._waiting)
        asking[5].cancel()
        halt.go.set()
        await asyncio.gather(*asking, return_exceptions=True)

    assert waiting == 6
    assert order == [1, 2, 3, 4, 5, 7, 8, 9, 10]


async def test_whoever_would_make_the_waiting_too_large_is_refused_and_comes_again(
    store: protocol.Store, wall: HandWoundClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "MAX_INBOX", 1)
    monkeypatch.setattr(runner, "MAX_WAITING_BYTES", 100_000)
    halt, note = Halt(), "x" * 30_000
    tampered = TamperedStore(store, Tampering(before=halt))

    async with engine(tampered, wall, SUBMITTER).running() as running:
        asking = [
            asyncio.create_task(tell(running, "counter/a", machines.Add(1, note), f"add {number}"))
            for number in range(6)
        ]
        await halt.halted()
        with pytest.raises(errors.Unavailable, match="too many commands wait for the store: 4"):
            await asking[5]
        asking[4].cancel()
        asking[5] = asyncio.create_task(tell(running, "counter/a", machines.Add(1), "add 5"))
        await asyncio.sleep(0)
        halt.go.set()
        done = await asyncio.gather(*asking, return_exceptions=True)

        kinds = [type(each).__name__ for each in done]
        assert kinds == [*["Receipt"] * 4, "CancelledError", "Receipt"]
        assert await state(running, "counter/a") == {"total": 5}
        await tell(running, "counter/a", machines.Add(1, note))


async def test_answers_of_effects_need_no_place(
    store: protocol.Store, wall: HandWoundClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler that submits waits for a place; with an answer behind it, it would for ever."""
    monkeypatch.setattr(runner, "MAX_INBOX", 1)
    outside = OutsideWorld()

    async def carry(effect: machines.Carry, context: Any) -> object:
        await tell(running, "counter/a", machines.Add(1), f"{context.idempotency_key} counted")
        return await outside.carry(effect, context)

    cast = Setup(handlers(carry))
    async with engine(store, wall, cast).running() as running:
        pieces = tuple(f"p{number}" for number in range(30))
        await tell(running, "fan/a", machines.Load(pieces))

        async def carried() -> bool:
            return len((await state(running, "fan/a"))["carried"]) == 30

        await until(carried)
        assert await state(running, "counter/a") == {"total": 30}


async def test_whoever_waits_for_a_place_is_told_that_the_engine_stopped(
    store: protocol.Store, wall: HandWoundClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "MAX_INBOX", 2)
    async with engine(store, wall, SUBMITTER).running() as running:
        asking = [
            asyncio.create_task(tell(running, "counter/a", machines.Add(1))) for _ in range(9)
        ]
        await asyncio.sleep(0)

    outcomes = await asyncio.gather(*asking, return_exceptions=True)

    kinds = [type(each) for each in outcomes]
    assert set(kinds) <= {messages.Receipt, errors.Unavailable}
    assert kinds[:2] == [messages.Receipt] * 2


def sizes(halt: Halt) -> list[int]:
    return [sum(len(event.data) for event in writes.events) for writes in halt.writes]


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(writer, "MAX_BATCH_BYTES", 100_000)
    return 100_000


async def together(halt: Halt, asks: Callable[[], list[Any]]) -> list[Any]:
    """All of them in the inbox before the first batch is written."""
    halt.go.clear()
    tasks = [asyncio.ensure_future(each) for each in asks()]
    await asyncio.sleep(0.05)
    halt.go.set()
    return await asyncio.gather(*tasks)


async def test_a_batch_is_bounded_by_the_bytes_that_it_decides(
    store: protocol.Store, wall: HandWoundClock, small_batches: int
) -> None:
    halt, note = Halt(), "x" * 30_000
    async with engine(
        TamperedStore(store, Tampering(before=halt)), wall, SUBMITTER
    ).running() as running:
        receipts = await together(
            halt,
            lambda: [tell(running, f"counter/{n % 7}", machines.Add(1, note)) for n in range(40)],
        )

    assert [receipt.events for receipt in receipts] == [1] * 40
    assert max(sizes(halt)) < small_batches + 40_000
    assert sum(len(writes.events) for writes in halt.writes) == 40
    # Each stream's own commands in the order of submission, also those that were put off.
    assert [receipt.first for receipt in receipts[0::7]] == [1, 2, 3, 4, 5, 6]


async def test_a_batch_is_bounded_by_the_bytes_that_it_loads(
    store: protocol.Store, wall: HandWoundClock, small_batches: int
) -> None:
    halt = Halt()
    halt.go.set()
    cargo = machines.Load(tuple("x" * 1000 for _ in range(40)))
    async with engine(
        TamperedStore(store, Tampering(before=halt)), wall, SUBMITTER
    ).running() as running:
        for number in range(12):
            await tell(running, f"fan/{number}", cargo)
        halt.writes.clear()
        receipts = await together(
            halt,
            lambda: [tell(running, f"fan/{n % 12}", machines.Load(("y",))) for n in range(36)],
        )

    assert sorted(receipt.first for receipt in receipts) == [2] * 12 + [3] * 12 + [4] * 12
    assert [receipts[n].first for n in (5, 17, 29)] == [2, 3, 4]
    loaded = [sum(len(row.state) for row in writes.states) for writes in halt.writes]
    assert max(loaded) < small_batches + 10_000


async def test_one_state_larger_than_a_batch_is_taken_alone(
    store: protocol.Store, wall: HandWoundClock, small_batches: int
) -> None:
    large = machines.Load(tuple("x" * 1000 for _ in range(small_batches // 500)))
    async with engine(store, wall, SUBMITTER).running() as running:
        await tell(running, "fan/a", large)
        receipts = await asyncio.gather(
            *(tell(running, "fan/a", machines.Load((str(n),))) for n in range(5)),
            *(tell(running, f"counter/{n}", machines.Add(1)) for n in range(5)),
        )

    assert [receipt.first for receipt in receipts] == [2, 3, 4, 5, 6, 1, 1, 1, 1, 1]


async def test_a_stream_that_another_session_locks_holds_up_no_other(
    postgres_home: Home, wall: HandWoundClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has one lock for the whole file."""
    monkeypatch.setattr(writer, "_BLOCKED_SECONDS", 3600.0)
    line = Tampering()
    tampered = TamperedStore(postgres_home.store(), line)
    async with engine(tampered, wall, SUBMITTER).running() as running:
        for stream in ("counter/a", "counter/b"):
            await tell(running, stream, machines.Add(1))
        with psycopg.connect(postgres_home.address) as other:
            other.execute("SELECT 1 FROM streams WHERE name = 'counter/a' FOR UPDATE")
            outcomes = await asyncio.gather(
                tell(running, "counter/a", machines.Add(1)),
                tell(running, "counter/b", machines.Add(1)),
                tell(running, "counter/a", machines.Add(1)),
                return_exceptions=True,
            )
            # Known to be locked: answered without a look, so nobody waits for it.
            looks = line.calls["load"]
            again = await asyncio.gather(
                tell(running, "counter/a", machines.Add(1)), return_exceptions=True
            )
            assert line.calls["load"] == looks
            assert (await tell(running, "counter/b", machines.Add(1))).first == 3

        assert [type(each) for each in (*outcomes, *again)] == [
            errors.Unavailable, messages.Receipt, errors.Unavailable, errors.Unavailable,
        ]  # fmt: skip
        assert running.counts.troubles == 0


async def test_a_store_that_refuses_every_write_is_not_connected_to_without_pause(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    """Read only, or out of disk: each answer that is handed in again found a broken session."""
    outside, line = OutsideWorld(), Tampering()
    outside.gate.clear()
    pieces = tuple(f"p{number}" for number in range(50))

    async with engine(
        TamperedStore(store, line), wall, Setup(handlers(outside.carry))
    ).running() as running:
        await tell(running, "fan/a", machines.Load(pieces))
        await until(lambda: asyncio.sleep(0.01, len(outside.asked) == 50))
        line.before = refuse_writes
        before = line.calls["open"]
        outside.gate.set()
        await asyncio.sleep(3)
        opened = line.calls["open"] - before
        line.before = lambda *_: None

        async def carried() -> bool:
            return len((await state(running, "fan/a"))["carried"]) == 50

        await until(carried)

    assert 1 <= opened <= 9
    assert sorted(outside.asked) == sorted(pieces)


def refuse_writes(call: str, _: Any) -> None:
    if call == "write":
        raise errors.Unavailable("cannot write to a database that is read only", hint="a test")
