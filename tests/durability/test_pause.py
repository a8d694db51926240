"""A worker that sleeps past its lease: others take over, and its late answers count nothing."""

import asyncio
import dataclasses
import os
import signal
import subprocess
from pathlib import Path

from fairlead.engine import service, visibility
from tests.durability import checks, outside, story, worker
from tests.durability.conftest import NewStorySetup

SIZE = story.Size(trips=2, legs=3, strikes=1)
TWICE = dataclasses.replace(SIZE, depots=2)


async def test_a_worker_stopped_past_its_lease_goes_on_under_a_new_fence(
    new_story_setup: NewStorySetup, tmp_path: Path
) -> None:
    story_setup = new_story_setup("pause", SIZE)
    world = outside.Outside(story_setup.rollout)
    async with story.engine(story_setup, story_setup.store(), perform=False).running() as door:
        with worker.worker(story_setup, tmp_path / "slow.log", "--stop-at=2") as slow:
            await story.order(door, SIZE)
            await _stopped(slow)
            old = await _fence(door, slow)
            with worker.worker(story_setup, tmp_path / "quick.log"):
                await story.over(door, SIZE)
                told, accepted = await _feed(door), world.accepted()

                # It wakes with an answer in its hands, for an effect that others have done.
                slow.send_signal(signal.SIGCONT)
                await _until_fence_after(door, slow, old)

                assert await _feed(door) == told
                # What it held besides it may do once more, under the key it always had.
                assert world.accepted() == accepted
                checks.check(story_setup)

            asked = world.count()
            await story.order(door, TWICE)
            await story.over(door, TWICE)
            assert {each.pid for each in world.requests()[asked:]} == {slow.pid}
            checks.check(dataclasses.replace(story_setup, size=TWICE))


async def _stopped(process: subprocess.Popen[bytes]) -> None:
    flags = os.WSTOPPED | os.WEXITED | os.WNOWAIT
    seen = await asyncio.to_thread(os.waitid, os.P_PID, process.pid, flags)
    assert seen is not None
    assert seen.si_code == os.CLD_STOPPED


async def _fence(door: service.Engine, process: subprocess.Popen[bytes]) -> int:
    """The fence under which a worker holds its work; 0 if it has none."""
    rows = await door.read(lambda session: session.rows("live_workers", now=0))
    return max((row[0] for row in rows if row[1].endswith(f":{process.pid}")), default=0)


async def _until_fence_after(
    door: service.Engine, process: subprocess.Popen[bytes], old: int
) -> None:
    async with asyncio.timeout(story.PATIENCE):
        while await _fence(door, process) <= old:  # noqa: ASYNC110 - a row sets no event
            await asyncio.sleep(0.05)


async def _feed(door: service.Engine) -> list[visibility.EventView]:
    """All of it: transactions of other tests hold the feed back for a moment."""
    while True:
        found = await door.read(
            lambda session: visibility.feed(session, visibility.Place(), 10_000)
        )
        if len(found) >= SIZE.events:
            return found
