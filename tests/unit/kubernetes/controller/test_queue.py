"""The queue's promises: no key lost, never two workers on one key, every namespace its turn."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fairlead.errors import Rejected
from fairlead.kubernetes.api_errors import Busy
from fairlead.kubernetes.controller.queue import Backlog, Queue, QueueOptions, Work
from fairlead.kubernetes.objects import Key
from tests.fakes.kubernetes.hand_clock import HandClock, settle

NAMESPACES = ("red", "green", "blue")
KEYS = [Key(namespace, name) for namespace in NAMESPACES for name in "abc"]
A, B = Key("red", "a"), Key("red", "b")


class Promises(RuleBasedStateMachine):
    """Any order of adds, takes, ends and failures, beside a model of what is owed."""

    def __init__(self) -> None:
        super().__init__()
        self.backlog = Backlog(QueueOptions(first_delay=1, longest_delay=8))
        self.now = 0.0
        self.owed: set[Key] = set()
        self.later: dict[Key, float] = {}
        self.working: set[Key] = set()
        self.patience: dict[Key, int] = {}

    def _owe(self, key: Key) -> None:
        self.owed.add(key)
        if key not in self.working and key not in self.patience:
            ahead = sum(1 for other in self.patience if other.namespace == key.namespace)
            self.patience[key] = (ahead + 1) * len(NAMESPACES)

    @rule(key=st.sampled_from(KEYS))
    def add(self, key: Key) -> None:
        self.backlog.add(key, self.now)
        self._owe(key)

    @rule(key=st.sampled_from(KEYS), wait=st.floats(0, 10))
    def add_later(self, key: Key, wait: float) -> None:
        self.backlog.add_at(key, self.now + wait)
        self.later[key] = min(self.later.get(key, self.now + wait), self.now + wait)

    @rule(seconds=st.floats(0, 5))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        due = sorted((when, key) for key, when in self.later.items() if when <= self.now)
        for _, key in due:
            del self.later[key]
            self._owe(key)
        taken = self.backlog.take(self.now)
        free = self.owed - self.working
        if taken is None:
            assert not free, "a key was lost"
            return
        assert taken not in self.working, "two workers on one key"
        assert taken in free, "nobody asked for it"
        self.owed.discard(taken)
        self.working.add(taken)
        self.patience.pop(taken)
        for key in self.patience:
            self.patience[key] -= 1
            assert self.patience[key] > 0, "a namespace was passed over"

    @precondition(lambda self: self.working)
    @rule(data=st.data(), fails=st.booleans())
    def end(self, data: st.DataObject, fails: bool) -> None:  # noqa: FBT001  a drawn value
        key = data.draw(st.sampled_from(sorted(self.working)))
        if fails:
            wait = self.backlog.failed(key, self.now, chance=1.0)
            self.later[key] = min(self.later.get(key, self.now + wait), self.now + wait)
            assert 1 <= wait <= 8
        else:
            self.backlog.forget(key)
            assert self.backlog.failures(key) == 0
        self.backlog.done(key, self.now)
        self.working.discard(key)
        if key in self.owed:
            self._owe(key)

    @invariant()
    def counts_agree(self) -> None:
        assert self.backlog.working == len(self.working)
        assert len(self.backlog) == len(self.owed)

    def teardown(self) -> None:
        """Everything owed is handed out in the end."""
        for key in sorted(self.working):
            self.backlog.done(key, self.now)
        owed = self.owed | set(self.later)
        given: set[Key] = set()
        while (taken := self.backlog.take(self.now + 100)) is not None:
            given.add(taken)
            self.backlog.done(taken, self.now + 100)
        assert given == owed


TestPromises = Promises.TestCase
TestPromises.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def test_failures_back_off_to_a_bound_and_are_forgotten() -> None:
    backlog = Backlog(QueueOptions(first_delay=1, longest_delay=10))

    waits = [backlog.failed(A, 0, chance=1.0) for _ in range(6)]
    backlog.forget(A)

    assert waits == [1, 2, 4, 8, 10, 10]
    assert backlog.failed(A, 0, chance=1.0) == 1


def test_changes_soon_after_a_look_are_one_look_after_the_rest() -> None:
    backlog = Backlog(QueueOptions(rest=0.1))
    backlog.add(A, 10.0)
    assert backlog.take(10.0) == A
    backlog.add(A, 10.0)
    backlog.done(A, 10.01)

    backlog.add(A, 10.02)
    backlog.add(A, 10.05)

    assert backlog.take(10.1) is None
    assert len(backlog) == 1
    assert backlog.take(10.12) == A
    backlog.done(A, 10.12)
    assert backlog.take(11.0) is None
    assert len(backlog) == 0


def test_a_rest_holds_up_no_other_key_and_none_that_waited_long() -> None:
    backlog = Backlog(QueueOptions(rest=0.1))
    for key in (A, B):
        backlog.add(key, 10.0)
        assert backlog.take(10.0) == key
        backlog.done(key, 10.0)
        if key == A:
            backlog.add(A, 10.0)

    backlog.add(B, 12.0)

    assert {backlog.take(12.0), backlog.take(12.0)} == {A, B}


def test_a_failed_key_that_changes_is_looked_at_after_its_rest() -> None:
    backlog = Backlog(QueueOptions(first_delay=8, rest=0.1))
    backlog.add(A, 10.0)
    backlog.take(10.0)
    backlog.failed(A, 10.0, chance=1.0)
    backlog.done(A, 10.0)

    backlog.add(A, 10.0)

    assert backlog.next_due() == pytest.approx(10.1)
    assert backlog.take(10.2) == A


def test_jitter_spreads_failures_over_half_the_wait() -> None:
    backlog = Backlog(QueueOptions(first_delay=8))

    assert backlog.failed(A, 0, chance=0.0) == 4
    assert backlog.failed(B, 0, chance=0.5) == 6


def test_a_huge_number_of_failures_does_not_overflow() -> None:
    backlog = Backlog(QueueOptions(longest_delay=10))

    assert max(backlog.failed(A, 0, chance=0.0) for _ in range(5000)) == 5


class Rig:
    """A running queue whose workers stop at a gate."""

    def __init__(self, queue: Queue, clock: HandClock) -> None:
        self.queue = queue
        self.clock = clock
        self.started: list[Key] = []
        self.at_once = 0
        self.gate = asyncio.Event()

    async def work(self, key: Key) -> float | None:
        self.started.append(key)
        self.at_once = max(self.at_once, self.queue.backlog.working)
        await self.gate.wait()
        return None


@contextlib.asynccontextmanager
async def running(work: Work | None = None, **queue_options: Any) -> AsyncIterator[Rig]:
    clock = HandClock()
    rig = Rig(Queue(QueueOptions(**queue_options), clock.clock(), chance=lambda: 1.0), clock)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(rig.queue.run(work or rig.work))
        yield rig
        rig.gate.set()
        rig.queue.close()


async def test_many_adds_are_one_look() -> None:
    async with running() as rig:
        rig.gate.set()
        for _ in range(100):
            rig.queue.add(A)
        await settle()

    assert rig.started == [A]


async def test_a_change_during_the_work_is_looked_at_after_it() -> None:
    async with running() as rig:
        rig.queue.add(A)
        await settle()
        rig.queue.add(A)
        await settle()
        during = list(rig.started)
        rig.gate.set()
        await settle()

    assert during == [A]
    assert rig.started == [A, A]


async def test_workers_are_bounded() -> None:
    async with running(workers=3) as rig:
        for key in KEYS:
            rig.queue.add(key)
        await settle()
        started = len(rig.started)
        rig.gate.set()
        await settle()

    assert started == 3
    assert rig.at_once == 3
    assert sorted(rig.started) == sorted(KEYS)


async def test_a_flood_in_one_namespace_does_not_hold_up_another() -> None:
    async with running(workers=1) as rig:
        for number in range(500):
            rig.queue.add(Key("flood", str(number)))
        await settle()
        rig.queue.add(Key("calm", "one"))
        rig.gate.set()
        await settle()
        place = rig.started.index(Key("calm", "one"))

    assert place <= 2


async def test_a_failed_key_comes_back_later_and_others_go_on() -> None:
    seen: Counter[Key] = Counter()

    async def work(key: Key) -> float | None:
        seen[key] += 1
        if key == A and seen[A] < 3:
            raise Rejected("spec is wrong", hint="correct it")
        return None

    async with running(work, first_delay=1.0) as rig:
        rig.queue.add(A)
        rig.queue.add(B)
        await settle()
        at_first = dict(seen)
        await rig.clock.advance(1.0)
        await settle()
        await rig.clock.advance(2.0)
        await settle()
        await rig.clock.advance(100.0)

    assert at_first == {A: 1, B: 1}
    assert seen == {A: 3, B: 1}
    assert rig.queue.backlog.failures(A) == 0


async def test_a_crash_in_the_work_is_one_keys_failure() -> None:
    async def work(key: Key) -> float | None:
        if key == A:
            raise ZeroDivisionError
        return None

    async with running(work) as rig:
        rig.queue.add(A)
        rig.queue.add(B)
        await settle()

    assert rig.queue.backlog.failures(A) == 1
    assert rig.queue.backlog.failures(B) == 0


async def test_the_server_s_retry_after_is_kept() -> None:
    seen: list[float] = []

    async def work(key: Key) -> float | None:
        seen.append(rig.clock.seconds)
        if len(seen) == 1:
            raise Busy("too many requests", hint="later", retry_after=30)
        return None

    async with running(work, first_delay=1.0) as rig:
        rig.queue.add(A)
        await settle()
        await rig.clock.advance(29)
        await rig.clock.advance(2)
        await settle()

    assert seen == [0, 30]


async def test_work_may_ask_to_look_again() -> None:
    seen: list[float] = []

    async def work(key: Key) -> float | None:
        seen.append(rig.clock.seconds)
        return 60.0 if len(seen) == 1 else None

    async with running(work) as rig:
        rig.queue.add(A)
        await settle()
        await rig.clock.advance(61)
        await settle()

    assert seen == [0, 60]


async def test_stuck_work_is_given_up() -> None:
    async def work(key: Key) -> float | None:
        await asyncio.Event().wait()
        return None

    async with running(work, work_seconds=0.01) as rig:
        rig.queue.add(A)
        async with asyncio.timeout(30):
            while not rig.queue.backlog.failures(A):
                await settle()


async def test_closing_lets_running_work_end() -> None:
    ended = asyncio.Event()

    async def work(key: Key) -> float | None:
        await rig.gate.wait()
        ended.set()
        return None

    async with running(work) as rig:
        rig.queue.add(A)
        await settle()
        rig.queue.close()
        rig.queue.add(B)

    assert ended.is_set()
    assert rig.queue.backlog.working == 0


async def test_idle_is_when_nothing_waits_and_nobody_works() -> None:
    async with running(workers=1) as rig:
        await rig.queue.idle()
        rig.queue.add(A)
        rig.queue.add(B)
        waiting = asyncio.create_task(rig.queue.idle())
        await settle()
        busy = waiting.done()
        rig.gate.set()
        await waiting

    assert not busy
    assert rig.started == [A, B]


@pytest.mark.parametrize("earlier", [5, 20])
async def test_of_two_times_the_earlier_counts(earlier: float) -> None:
    async with running() as rig:
        rig.gate.set()
        rig.queue.add_after(A, earlier)
        rig.queue.add_after(A, 10)
        await rig.clock.advance(min(earlier, 10))
        await settle()
        await rig.clock.advance(100)
        await settle()

    assert rig.started == [A]
