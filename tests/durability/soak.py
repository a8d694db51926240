"""A soak: three workers of two program versions on PostgreSQL, and one fault after another.

    python -m tests.durability.soak [--minutes 60]        (make soak, SOAK_MINUTES)

Prints memory and lag over time, then what was lost and what was done twice; ends with 1 where
either is not 0. The database is three nodes under Patroni, so that it can lose its leader.
"""

import argparse
import asyncio
import dataclasses
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from fairlead import errors
from tests.durability import checks, load, outside, story, worker
from tools.servers import faketime, patroni

SIZE = story.Size(depots=1, trips=4, legs=5, at_once=4)
LEG_SECONDS = 0.2
LEASE_SECONDS = 5.0
STEP_SECONDS = 60
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens, and how often."""

    minutes: float
    faults: Sequence[str]
    """Names of Soak's methods, in turn for as long as there is time; each at least once."""

    calm_seconds: float = 20.0
    """Between two faults."""

    order_seconds: float = 1.0
    sample_seconds: float = 60.0

    @property
    def size(self) -> story.Size:
        # One a second: the bell is what two versions of the program take turns at.
        return dataclasses.replace(SIZE, strikes=int(self.minutes * 60))


WORKER_FAULTS = ("kill_a_worker", "pause_a_worker", "step_a_clock")
LONG = (
    *(*WORKER_FAULTS, "fill_the_disk"),
    *(*WORKER_FAULTS, "kill_the_leader"),
    *(*WORKER_FAULTS, "pause_the_leader"),
    *(*WORKER_FAULTS, "cut_the_leader_off"),
    *(*WORKER_FAULTS, "hand_over"),
)
# Without those for which Patroni's lock has to run out: these are in test_failover.
SHORT = (*WORKER_FAULTS, "fill_the_disk", "hand_over")


@dataclass(frozen=True, slots=True)
class Sample:
    """How it stood at one moment."""

    seconds: float
    performed: int
    waiting: int | None
    """Effects that are not done; None while the database does not answer."""

    lag_seconds: float | None
    """How long the oldest of them has been due."""

    megabytes: Sequence[int]
    """Memory of each worker."""

    faults: int


@dataclass(slots=True)
class Report:
    """What came of it."""

    samples: list[Sample] = field(default_factory=list)
    stood_still: dict[str, list[float]] = field(default_factory=dict)
    """Seconds in which nothing was done, by fault."""

    expected: int = 0
    lost: int = 0
    doubled: int = 0
    again: int = 0
    """Effects asked for once more under the key they had, which the outside knows."""

    fault: str = ""
    """What the store says of itself that must not be."""

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.fault)


class Soak:
    """The workers, the database, and what can befall them."""

    def __init__(
        self, cluster: patroni.PatroniCluster, story_setup: story.StorySetup, folder: Path
    ) -> None:
        self._cluster = cluster
        self._story_setup = story_setup
        self._folder = folder
        self._clock = faketime.Clock(folder / "clock")
        self._random = random.Random(1)
        # Two of the old program and one of the new; one of them lives by a clock of its own.
        self._manners: list[tuple[Sequence[str], Sequence[str]]] = [
            ((), self._clock.command()),
            (("--far",), ()),
            (("--next-program",), ()),
        ]
        self.workers: list[subprocess.Popen[bytes]] = []

    def hire(self) -> None:
        for number in range(len(self._manners)):
            self.workers.append(self._start(number))

    def dismiss(self) -> None:
        for each in self.workers:
            each.kill()
            each.wait()

    def memory(self) -> list[int]:
        return [_megabytes(each.pid) for each in self.workers]

    async def kill_a_worker(self) -> None:
        number = self._random.randrange(len(self.workers))
        await self._replace(number)

    async def pause_a_worker(self) -> None:
        """Past its lease, so that it wakes to a world that went on."""
        victim = self._random.choice(self.workers)
        victim.send_signal(signal.SIGSTOP)
        await asyncio.sleep(2 * LEASE_SECONDS)
        victim.send_signal(signal.SIGCONT)

    async def step_a_clock(self) -> None:
        self._clock.step(self._random.choice((-STEP_SECONDS, 0, STEP_SECONDS)))

    async def fill_the_disk(self) -> None:
        await asyncio.to_thread(self._cluster.leader().fill_disk)
        # Patroni may not have noticed yet; what is performed just now would pass for progress.
        async with asyncio.timeout(story.PATIENCE):
            while await self._is_silent():  # noqa: ASYNC110 - a server sets no event
                await asyncio.sleep(0.1)

    async def kill_the_leader(self) -> None:
        await self._lose_leader(patroni.Node.kill, patroni.Node.start)

    async def pause_the_leader(self) -> None:
        await self._lose_leader(patroni.Node.pause, patroni.Node.resume)

    async def cut_the_leader_off(self) -> None:
        await self._lose_leader(patroni.Node.cut, patroni.Node.mend)

    async def hand_over(self) -> None:
        await asyncio.to_thread(self._cluster.hand_over)

    def set_clock_right(self) -> None:
        self._clock.step(0)

    async def mend(self) -> None:
        """All nodes follow again, and all workers live: one may have found no database."""
        await asyncio.to_thread(self._cluster.wait_until_whole)
        for number, each in enumerate(self.workers):
            if each.poll() is not None:
                await self._replace(number)

    async def _is_silent(self) -> bool:
        waiting, _ = await asyncio.to_thread(_backlog, self._story_setup.database)
        return waiting is None

    async def _lose_leader(
        self, begin: Callable[[patroni.Node], None], end: Callable[[patroni.Node], None]
    ) -> None:
        leader = self._cluster.leader()
        await asyncio.to_thread(begin, leader)
        await asyncio.to_thread(self._cluster.wait_for_another_leader, leader)
        # On this thread: what a node starts lives as long as the thread that started it.
        end(leader)

    async def _replace(self, number: int) -> None:
        victim = self.workers[number]
        victim.kill()
        await asyncio.to_thread(victim.wait)
        self.workers[number] = self._start(number)

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        options, before = self._manners[number]
        log = self._folder / f"worker-{number}.log"
        return worker.start(self._story_setup, log, options, before)


async def run(plan: Plan, folder: Path, say: Callable[[str], None] = print) -> Report:
    """With servers and workers of its own, all gone at the end."""
    report = Report()
    with patroni.PatroniCluster() as cluster:
        database = await asyncio.to_thread(cluster.databases.create_database, "soak")
        story_setup = story.StorySetup(
            database, folder / "rollout", plan.size, LEG_SECONDS, LEASE_SECONDS
        )
        await asyncio.to_thread(story_setup.store().migrate)
        soak = Soak(cluster, story_setup, folder)
        soak.hire()
        try:
            async with (
                load.running_load(story_setup, plan.order_seconds) as (coming, progress),
                _sampling(plan, soak, story_setup, report, say),
            ):
                await load.at_work(coming.running, soak.workers)
                await _befall(plan, soak, progress, report)
                soak.set_clock_right()
        except TimeoutError:
            report.fault = "work was left, or stood still, for too long"
        finally:
            soak.dismiss()
        _judge(dataclasses.replace(story_setup, size=coming.total), report)
    return report


async def _befall(plan: Plan, soak: Soak, progress: load.Progress, report: Report) -> None:
    deadline = time.monotonic() + plan.minutes * 60
    for number, name in enumerate(itertools.cycle(plan.faults)):
        if number >= len(plan.faults) and time.monotonic() > deadline:
            return
        await progress.next()
        progress.restart()
        fault: Callable[[], Awaitable[None]] = getattr(soak, name)
        await fault()
        await soak.mend()
        await progress.next()
        report.stood_still.setdefault(name, []).append(round(progress.longest, 1))
        await asyncio.sleep(plan.calm_seconds)


@asynccontextmanager
async def _sampling(
    plan: Plan,
    soak: Soak,
    story_setup: story.StorySetup,
    report: Report,
    say: Callable[[str], None],
) -> AsyncIterator[None]:
    begun = time.monotonic()

    async def sample() -> None:
        say("minute  performed  waiting    lag  memory of workers  faults")
        while True:
            waiting, lag = await asyncio.to_thread(_backlog, story_setup.database)
            performed = outside.Outside(story_setup.rollout).count()
            faults = sum(map(len, report.stood_still.values()))
            now = time.monotonic() - begun
            seen = Sample(now, performed, waiting, lag, soak.memory(), faults)
            report.samples.append(seen)
            say(_line(seen))
            await asyncio.sleep(plan.sample_seconds)

    async with AsyncExitStack() as left:
        sampling = asyncio.create_task(sample())
        left.callback(sampling.cancel)
        yield


def _backlog(database: str) -> tuple[int | None, float | None]:
    """What is not done, and since when the oldest of it is due."""
    question = """
        SELECT count(*), extract(epoch FROM now()) - min(due_at) / 1000.0 FROM outbox
    """
    try:
        with psycopg.connect(database, connect_timeout=2) as connection:
            found = connection.execute(question).fetchone()
    except psycopg.Error:
        return None, None
    assert found is not None
    return int(found[0]), max(0.0, float(found[1] or 0))


def _judge(story_setup: story.StorySetup, report: Report) -> None:
    expected = set(story_setup.size.effects())
    accepted = outside.Outside(story_setup.rollout).accepted()
    report.expected = len(expected)
    report.lost = len(expected - accepted.keys())
    report.doubled = sum(len(keys) - 1 for keys in accepted.values())
    report.doubled += len(accepted.keys() - expected)
    try:
        report.again = checks.check(story_setup)
    except AssertionError as error:
        report.fault = report.fault or str(error) or "the store is not as the events say"


def _line(seen: Sample) -> str:
    waiting = "-" if seen.waiting is None else f"{seen.waiting}"
    lag = "-" if seen.lag_seconds is None else f"{seen.lag_seconds:.1f} s"
    memory = " ".join(f"{each}" for each in seen.megabytes)
    return (
        f"{seen.seconds / 60:6.1f}  {seen.performed:9d}  {waiting:>7}  {lag:>6}"
        f"  {memory + ' MB':>17}  {seen.faults:6d}"
    )


def _megabytes(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * _PAGE // 1_000_000


def summary(report: Report) -> str:
    stood_still = (
        f"  {name.replace('_', ' ')}: {min(spans)} to {max(spans)} s, {len(spans)} times"
        for name, spans in report.stood_still.items()
    )
    return "\n".join(
        (
            "longest time in which nothing was done, by fault:",
            *stood_still,
            f"effects: {report.expected}, asked for again under their key: {report.again}",
            f"lost: {report.lost}",
            f"doubled: {report.doubled}",
            *([f"store: {report.fault}"] if report.fault else []),
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60.0)
    minutes = parser.parse_args().minutes
    try:
        patroni.check()
        with tempfile.TemporaryDirectory(prefix="fairlead-soak-") as folder:
            report = asyncio.run(run(Plan(minutes, LONG), Path(folder)))
    except errors.FairleadError as error:
        print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)  # noqa: T201 - a program
        return error.exit_code
    print(summary(report))  # noqa: T201 - a program
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
