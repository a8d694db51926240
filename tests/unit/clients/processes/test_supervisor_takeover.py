"""A control plane comes and goes; the programs stay, and no stranger is taken for one."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.clients.processes import Phase, Supervisor, clean_up, orphans
from fairlead.clients.processes import identity as identities
from fairlead.clients.processes.identity import Identity
from fairlead.clients.processes.records import Folder, Record
from tests.unit.clients.processes.programs import python, shop_program, until

FOREVER = "import time; time.sleep(600)"


async def test_the_next_control_plane_takes_the_process_over(tmp_path: Path) -> None:
    async with Supervisor(tmp_path).running() as first:
        await first.ensure(shop_program())
        before = await first.ready("shop")
    assert identities.identify(before.pid or 0) is not None

    async with Supervisor(tmp_path).running() as second:
        after = await second.ready("shop")
        await second.ensure(shop_program())
        again = second.instance("shop")
        await second.stop("shop")

    assert (after.pid, after.port, after.restarts) == (before.pid, before.port, 0)
    assert again.pid == before.pid
    assert identities.identify(before.pid or 0) is None


async def test_it_survives_a_control_plane_that_is_killed(tmp_path: Path) -> None:
    script = f"""
import asyncio, pathlib, sys
from fairlead.clients.processes import Supervisor
from tests.unit.clients.processes.programs import shop_program
async def main():
    async with Supervisor(pathlib.Path({str(tmp_path)!r})).running() as supervisor:
        await supervisor.ensure(shop_program())
        print("pid", (await supervisor.ready("shop")).pid, flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""
    plane = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=subprocess.PIPE
    )
    assert plane.stdout is not None
    await plane.stdout.readuntil(b"pid ")
    pid = int(await plane.stdout.readline())
    plane.kill()
    await plane.wait()

    async with Supervisor(tmp_path).running() as supervisor:
        found = await supervisor.ready("shop")
        os.kill(pid, signal.SIGKILL)
        while supervisor.instance("shop").phase is Phase.HEALTHY:
            await supervisor.changed("shop")
        restarted = await supervisor.ready("shop")
        await supervisor.stop("shop")

    assert found.pid == pid
    assert restarted.restarts == 1


async def test_a_program_that_ended_meanwhile_is_started_again(tmp_path: Path) -> None:
    async with Supervisor(tmp_path).running() as first:
        await first.ensure(shop_program())
        before = await first.ready("shop")
    assert before.pid is not None
    os.killpg(before.pid, signal.SIGKILL)

    async with Supervisor(tmp_path).running() as second:
        after = await second.ready("shop")
        await second.stop("shop")

    assert after.pid != before.pid
    assert after.port == before.port


async def test_a_reused_process_id_is_noticed(tmp_path: Path) -> None:
    stranger = await asyncio.create_subprocess_exec(sys.executable, "-c", FOREVER)
    theirs = identities.identify(stranger.pid)
    assert theirs is not None
    earlier = Identity(theirs.pid, theirs.started - 1, theirs.boot)
    folder = Folder(tmp_path)
    folder.make()
    folder.keep(Record(shop_program(), earlier, 0, 0))

    async with Supervisor(tmp_path).running() as supervisor:
        instance = await supervisor.ready("shop")
        await supervisor.stop("shop")

    assert instance.pid != stranger.pid
    assert identities.lives(theirs)
    stranger.kill()
    await stranger.wait()


async def test_a_process_whose_record_was_never_written_is_found_by_its_mark(
    tmp_path: Path,
) -> None:
    async with Supervisor(tmp_path).running() as first:
        await first.ensure(shop_program())
        before = await first.ready("shop")
    # As if the control plane had died between the start and the record of it.
    Folder(tmp_path).keep(Record(shop_program(), None, before.port, 0))

    async with Supervisor(tmp_path).running() as second:
        after = await second.ready("shop")
        await second.stop("shop")

    assert after.pid == before.pid


async def test_two_control_planes_on_one_folder_are_refused(tmp_path: Path) -> None:
    async with Supervisor(tmp_path).running():
        with pytest.raises(errors.Conflict, match="another control plane"):
            async with Supervisor(tmp_path).running():
                pass


async def test_a_broken_record_is_said_and_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "shop.program.json").write_text("{")

    with pytest.raises(errors.Corrupt, match="cannot read"):
        async with Supervisor(tmp_path).running():
            pass


async def test_clean_up_ends_what_the_folder_started_and_nothing_else(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "ours:theirs"
    async with Supervisor(ours).running() as one, Supervisor(theirs).running() as other:
        mine = await one.ensure(shop_program())
        kept = await other.ensure(shop_program())
        await one.ready("shop")
    (ours / "shop.program.json").unlink()

    ended = await clean_up(ours)
    left = identities.identify(kept.pid or 0)
    await clean_up(theirs)

    assert [found.pid for found in ended] == [mine.pid]
    assert left is not None
    assert identities.identify(kept.pid or 0) is None


async def test_a_process_that_left_its_group_is_an_orphan_until_it_is_ended(
    tmp_path: Path,
) -> None:
    text = """
import os, time
if os.fork() == 0:
    os.setsid()
    print("away", flush=True)
time.sleep(600)
"""
    async with Supervisor(tmp_path).running() as supervisor:
        instance = await supervisor.ensure(python("runaway", text))
        await until(supervisor.orphans)
        found = supervisor.orphans()

        await orphans.end(found)
        left = supervisor.orphans()
        await supervisor.stop("runaway")

    assert [each.pid for each in found] != [instance.pid]
    assert left == ()
