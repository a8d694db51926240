"""Tasks that take too long are ended, others are left alone, and no timer stays behind."""

import asyncio

from fairlead.engine.deadlines import Deadlines

LIMIT = 0.05


class Works:
    """Tasks under deadlines, and what became of them."""

    def __init__(self) -> None:
        self.deadlines = Deadlines()
        self.ended: list[str] = []
        self.late: list[str] = []
        self.lasted: dict[str, float] = {}

    def start(
        self, name: str, until: asyncio.Event, seconds: float = LIMIT
    ) -> "asyncio.Task[None]":
        return asyncio.create_task(self._work(name, until, seconds))

    async def _work(self, name: str, until: asyncio.Event, seconds: float) -> None:
        task = asyncio.current_task()
        assert task is not None
        began = asyncio.get_running_loop().time()
        self.deadlines.begin(task, began, seconds)
        try:
            await until.wait()
            self.ended.append(name)
        finally:
            self.lasted[name] = asyncio.get_running_loop().time() - began
            if self.deadlines.end(task, seconds):
                self.late.append(name)


async def test_a_task_is_ended_when_its_time_is_over_and_the_next_in_its_turn() -> None:
    works, never = Works(), asyncio.Event()

    first = works.start("first", never)
    await asyncio.sleep(LIMIT / 2)
    second = works.start("second", never)

    await asyncio.wait([first, second])
    assert works.late == ["first", "second"]
    assert min(works.lasted.values()) >= LIMIT
    assert first.cancelled()
    assert second.cancelled()


async def test_a_task_that_ends_in_time_is_left_alone() -> None:
    works, soon, never = Works(), asyncio.Event(), asyncio.Event()

    quick, slow = works.start("quick", soon), works.start("slow", never)
    soon.set()

    await asyncio.wait([quick, slow])
    assert (works.ended, works.late) == (["quick"], ["slow"])


async def test_limits_of_different_length_do_not_wait_for_each_other() -> None:
    works, never = Works(), asyncio.Event()

    patient = works.start("patient", never, 60.0)
    hasty = works.start("hasty", never)

    await asyncio.wait([hasty])
    assert not patient.done()
    patient.cancel()


async def test_after_a_pause_a_new_task_has_its_whole_time() -> None:
    works, soon, never = Works(), asyncio.Event(), asyncio.Event()
    soon.set()
    await works.start("quick", soon)
    await asyncio.sleep(LIMIT / 2)

    await asyncio.wait([works.start("slow", never)])

    assert works.lasted["slow"] >= LIMIT


async def test_one_timer_serves_any_number_of_tasks() -> None:
    works, never = Works(), asyncio.Event()
    timers = scheduled()

    tasks = [works.start(str(n), never, 60.0) for n in range(100)]
    await asyncio.sleep(0)

    assert scheduled() - timers == 1
    for task in tasks:
        task.cancel()


def scheduled() -> int:
    return len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]  # asyncio has no other way to count them
